"""The tools on offer in GenericAgent: its own for the work, ours for saving state and for endings.

Ours are added to its list of tools, which its loop hands on with every request, and to its handler, which finds a
tool's method by its name. The lists are its own and can be changed, so that no text convention is needed and the
provider itself holds the model to the schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from anyio import to_thread

from goalmode.domain.calls import SUBSTANTIVE, Effect
from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.messages import ToolSpec
from goalmode.domain.questions import MAX_OPTION, MAX_OPTIONS, Asking, QuestionKind
from goalmode.domain.text import sendable
from goalmode.domain.work import StatePatch
from goalmode.errors import GoalmodeError
from goalmode.reflect.relay import Relay
from goalmode.tools.builtin.files import MAX_NOTED
from goalmode.tools.builtin.memory import MEMORY_TOOLS
from goalmode.tools.paths import Workspace
from goalmode.tools.registry import Registry, Tool, ToolContext, ToolOutput

Entry = dict[str, Any]
"""One tool in GenericAgent's list: `{"type": "function", "function": {"name": …}}`."""

SECONDS = 7_200.0
"""Longest run of one of its tools. They have limits of their own, of 10 minutes at most."""

ASK = "ask_user"
LONG_TERM = "start_long_term_update"

_EFFECTS = {"file_read": Effect.READ, "web_scan": Effect.READ, ASK: Effect.CONTROL}
"""What does not write. Of a tool that nobody knows it is not known."""

WRITES_FILE = ("file_write", "file_patch")

COUNTERPARTS: Mapping[str, str] = {
    "shell": "code_run",
    "read_file": "file_read",
    "write_file": "file_write",
    "edit_file": "file_patch",
}
"""What a goal, or a movement of its workflow, that allows one of our tools allows of GenericAgent's."""

_FAILED = re.compile(r"(?:由于设置了show_linenos[^\n]*\n)?(?:Error:|\[Error\])", re.IGNORECASE)
"""A text that its tool returns in place of a result, with what stands before each file that is read."""

_SUBJECTS = ("path", "script", "code", "question", "switch_tab_id")


class Offer(Registry):
    """Our tools and GenericAgent's. A movement that allows some of ours allows their counterparts."""

    def offering(self, names: Collection[str] | None) -> Registry:
        return Offer(super().offering(None if names is None else allowed(names)))


def allowed(names: Collection[str]) -> frozenset[str]:
    """The names, with those of the counterparts."""
    return frozenset(names) | {COUNTERPARTS[name] for name in names if name in COUNTERPARTS}


def offer(builtin: Registry, schema: Sequence[Entry], relay: Relay, names: Collection[str] | None) -> Offer:
    """All the tools of one wakeup.

    Args:
        builtin: ours, of which those are taken that save state or lead to an ending.
        schema: GenericAgent's own list; without its `start_long_term_update` there is no long-term memory.
        names: of the tools that read or write that the goal allows; None: all.
    """
    theirs = {name_of(entry): entry for entry in schema}
    kept = [tool for tool in builtin if tool.effect not in SUBSTANTIVE]
    if LONG_TERM not in theirs:
        kept = [tool for tool in kept if tool not in MEMORY_TOOLS]
    taken = {tool.name for tool in builtin} | {LONG_TERM}
    added = [_tool(entry, relay) for name, entry in theirs.items() if name not in taken]
    found = Offer([*kept, *added])
    return Offer(found.offering(names))


def ours(registry: Registry) -> frozenset[str]:
    """The names of the tools that our loop runs itself."""
    return frozenset(tool.name for tool in registry if tool.effect not in SUBSTANTIVE and tool.name != ASK)


def entry_of(spec: ToolSpec) -> Entry:
    """One of our tools as GenericAgent lists tools."""
    function = {"name": spec.name, "description": spec.description, "parameters": dict(spec.parameters)}
    return {"type": "function", "function": function}


def name_of(entry: Mapping[str, Any]) -> str:
    return str(entry.get("function", {}).get("name", ""))


def _tool(entry: Entry, relay: Relay) -> Tool:
    function = entry["function"]
    name, told = name_of(entry), function.get("parameters", {}).get("properties", {})
    # Loose: GenericAgent takes numbers as texts, and arguments that it does not tell of.
    spec = ToolSpec(
        name,
        str(function.get("description", "")),
        {"type": "object", "properties": {argument: {} for argument in told}},
    )
    run = partial(_run, relay, name)
    return Tool(spec, _EFFECTS.get(name, Effect.WRITE), run, partial(subject, name), SECONDS)


async def _run(relay: Relay, name: str, context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    output = await relay.run(context.call_id)
    if name == ASK:
        return replace(output, exit=asks(arguments))
    if name in WRITES_FILE and output.ok:
        written = await to_thread.run_sync(_written, context.workspace, str(arguments.get("path", "")))
        return replace(output, patch=written)
    return output


def asks(arguments: Mapping[str, Any]) -> Exit:
    """The ending that its `ask_user` leads to."""
    text = sendable(str(arguments.get("question") or "")).strip() or "(GenericAgent asked without a question)"
    given = arguments.get("candidates")
    named = [sendable(str(one)).strip()[:MAX_OPTION] for one in given] if isinstance(given, list) else []
    options = tuple(dict.fromkeys(one for one in named if one))[:MAX_OPTIONS]
    question = Asking(QuestionKind.INPUT, text, options=options)
    return Exit(ExitReason.NEEDS_USER_INPUT, text, {"missing_info": text, "tool": ASK}, question=question)


def output_of(data: object) -> ToolOutput:
    """What one of its tools returned, as its loop shows it to the model."""
    structured = isinstance(data, dict | list)
    text = json.dumps(data, ensure_ascii=False, default=str) if structured else str(data)
    ok, code = _FAILED.match(text) is None, None
    if isinstance(data, dict):
        ok = data.get("status") != "error"
        code = data.get("exit_code")
    return ToolOutput(sendable(text), ok, exit_code=code if isinstance(code, int) else None)


def _written(root: Path, path: str) -> StatePatch | None:
    """A file that was written, if it is one of the workspace."""
    workspace = Workspace(root)
    try:
        clean = workspace.normalise(path)
        seen = workspace.observe(clean)
    except GoalmodeError:
        return None
    if seen.sha256 is None or len(clean) > MAX_NOTED:
        return None
    return StatePatch(written=((clean, seen.sha256),))


def subject(name: str, arguments: Mapping[str, Any]) -> str:
    """What a call of one of its tools is about: a path, a script."""
    found = next((str(arguments[key]) for key in _SUBJECTS if arguments.get(key)), "")
    return found or ("(code in the reply)" if name == "code_run" else "")
