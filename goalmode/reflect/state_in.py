"""What GenericAgent holds when it takes up a goal for which nothing was saved -> the goal's first checkpoint.

Its own account of what it did is the model's prose, which would close the next conversation. So its notes are taken,
and of what it did the calls alone, each with its outcome, and the files that its tools wrote.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goalmode.context.phrases import claims_completion
from goalmode.domain.goal import Goal
from goalmode.domain.text import head_tail, one_line, sendable
from goalmode.domain.work import (
    MAX_WRITTEN,
    Checkpoint,
    ItemKind,
    ItemStatus,
    Provenance,
    WorkItem,
    WorkState,
    normal,
)
from goalmode.errors import BadInput
from goalmode.orchestrator.skip import refusal
from goalmode.reflect.offer import COUNTERPARTS, WRITES_FILE, output_of, subject
from goalmode.state import imported
from goalmode.state.store import Store
from goalmode.tools.builtin.checkpoint import MAX_KEY_INFO
from goalmode.tools.builtin.files import MAX_NOTED
from goalmode.tools.named import is_file
from goalmode.tools.paths import Workspace

MAX_FACTS = 30
"""Calls that are taken, the newest."""

MAX_FACT = 200
"""Characters of one of them."""

_TOOLS = (*COUNTERPARTS.values(), "web_scan", "web_execute_js")
"""What works. That it saved or asked something is no fact about the work."""

_LINE = re.compile(rf"\[Agent\]\s*(?:调用工具\s*)?(?P<fact>(?:{'|'.join(_TOOLS)})\s*(?:$|[,:(，：（→]|->).*)")
"""A line of `history_info` that is a call and not a sentence about one.

PyPI's package writes `调用工具NAME, args: …` where a reply has no summary.
"""

_AGE = re.compile(r"\n?\[SYSTEM\] 此为[^\n]*工作记忆[。\n]*")
"""What it adds to `key_info` from task to task."""

_BESIDE = ("related_sop", "in_plan_mode")
"""What `working` may hold besides: an SOP to read again, the file of a plan."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a conversation that GenericAgent holds. `ok`: None where the conversation does not tell."""

    tool: str
    arguments: Mapping[str, Any]
    ok: bool | None = None
    exit_code: int | None = None

    @property
    def fact(self) -> str:
        told = {True: "ok", False: "failed", None: "not known"}[self.ok]
        outcome = told if self.exit_code is None else f"exit {self.exit_code}"
        return f"{self.tool}: {one_line(subject(self.tool, self.arguments), MAX_FACT)} → {outcome}"


def take_over(store: Store, goal: Goal, main: Any) -> WorkState | None:
    """Save what GenericAgent holds with a goal for which nothing was saved and that can be woken just now.

    Args:
        main: its module `agentmain`.

    Returns what was saved, None if nothing was.
    """
    if refusal(store, goal) is not None:
        return None
    agent = main.agent
    calls = list(calls_of(getattr(agent.llmclient.backend, "history", None)))
    written = files_of(calls, _directory(main), Workspace(Path(goal.workspace)))
    facts = [*facts_of(getattr(agent, "history", None)), *(call.fact for call in calls)]
    work = held(getattr(_handler(main), "working", None), facts, written)
    if work == WorkState() or not imported.take_over(store, goal.id, work, now=store.clock.now()):
        return None
    return work


def of_file(state: Mapping[str, Any]) -> WorkState:
    """What a state file holds beside what Goal Mode writes: `working` and `history_info`, as a handler has them.

    Raises:
        BadInput: one of them is of another kind.
    """
    working, lines = state.get("working", {}), state.get("history_info", [])
    if not isinstance(working, dict):
        raise BadInput("working", working, "a JSON object, such as one with key_info")
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise BadInput("history_info", lines, "a list of texts")
    return held(working, facts_of(lines))


def held(working: object, facts: Iterable[str], written: tuple[str, ...] = ()) -> WorkState:
    """The work state that these make: notes, the newest facts, each once and none with a closing phrase, and files."""
    kept = {normal(fact): one_line(sendable(fact), MAX_FACT) for fact in facts if not claims_completion(fact)}
    items = [
        WorkItem(number, ItemKind.DONE, ItemStatus.CLAIMED, fact, provenance=Provenance.TOOL)
        for number, fact in enumerate(list(kept.values())[-MAX_FACTS:], 1)
    ]
    key_info = _key_info(working if isinstance(working, Mapping) else {})
    saved = Checkpoint(key_info, provenance=Provenance.TOOL) if key_info or items or written else Checkpoint()
    return WorkState(tuple(items), saved, written=written)


def facts_of(history_info: object) -> Iterator[str]:
    """The calls among its lines, which are summaries in the model's words otherwise."""
    for line in history_info if isinstance(history_info, list) else ():
        found = _LINE.fullmatch(line.strip()) if isinstance(line, str) else None
        if found is not None:
            yield found["fact"]


def calls_of(history: object) -> Iterator[Call]:
    """The calls of its conversation, in order."""
    blocks = list(_blocks(history))
    results = {b["tool_use_id"]: b.get("content") for b in blocks if isinstance(b.get("tool_use_id"), str)}
    for block in blocks:
        name, given, uid = block.get("name"), block.get("input"), block.get("id")
        if block.get("type") != "tool_use" or name not in _TOOLS or not isinstance(given, dict):
            continue
        known = isinstance(uid, str) and uid in results
        output = output_of(_data(results[uid])) if known else None
        yield Call(name, given) if output is None else Call(name, given, output.ok, output.exit_code)


def files_of(calls: Iterable[Call], directory: Path | None, workspace: Workspace) -> tuple[str, ...]:
    """Files of the workspace that its tools have written and that are there, the newest last.

    Args:
        directory: that its relative paths are of; None: it is not known.
    """
    found: dict[str, None] = {}
    for call in calls:
        path = call.arguments.get("path")
        if call.tool not in WRITES_FILE or not call.ok or not isinstance(path, str) or not path:
            continue
        if directory is None and not path.startswith("/"):
            continue
        try:
            clean = workspace.normalise(str((directory or Path()) / path))
        except BadInput:
            continue
        if len(clean) <= MAX_NOTED and is_file(workspace, clean):
            found.pop(clean, None)
            found[clean] = None
    return tuple(found)[-MAX_WRITTEN:]


def _key_info(working: Mapping[Any, Any]) -> str:
    own = _text(working, "key_info")
    beside = [f"{name}: {text}" for name in _BESIDE if (text := one_line(_text(working, name), MAX_FACT))]
    return head_tail("\n".join(filter(None, [own, *beside])), MAX_KEY_INFO)


def _text(working: Mapping[Any, Any], name: str) -> str:
    value = working.get(name)
    return _AGE.sub("", sendable(value)).strip() if isinstance(value, str) else ""


def _blocks(history: object) -> Iterator[Mapping[str, Any]]:
    for message in history if isinstance(history, list) else ():
        content = message.get("content") if isinstance(message, Mapping) else None
        yield from (
            block for block in (content if isinstance(content, list) else ()) if isinstance(block, Mapping)
        )


def _data(content: object) -> object:
    """What a tool returned, as its loop had it before it made a text of it."""
    if isinstance(content, list):
        content = "".join(str(block.get("text", "")) for block in content if isinstance(block, Mapping))
    try:
        return json.loads(content) if isinstance(content, str) else content
    except (ValueError, RecursionError):
        return content


def _handler(main: Any) -> Any:
    """Its last task's; None before the first one."""
    return getattr(main.agent, "handler", None)


def _directory(main: Any) -> Path | None:
    """Where its tools work: its last task's directory, else the one that the next task's will be."""
    cwd = getattr(_handler(main), "cwd", None)
    if isinstance(cwd, str) and cwd:
        return Path(cwd)
    root = getattr(main, "script_dir", None)
    return Path(root) / "temp" if isinstance(root, str) and root else None
