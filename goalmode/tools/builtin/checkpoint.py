"""`update_working_checkpoint` and `verify`: what the agent saves of its work, so that the next wakeup has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal

from anyio import to_thread

from goalmode.domain.calls import Effect
from goalmode.domain.messages import ToolSpec
from goalmode.domain.text import one_line, sendable
from goalmode.domain.work import ItemKind, StatePatch, WorkItem, WorkState, apply, normal, too_many
from goalmode.errors import ToolError
from goalmode.tools.named import files_named
from goalmode.tools.paths import Workspace
from goalmode.tools.registry import Tool, ToolContext, ToolOutput, tool

MAX_KEY_INFO = 8_000
MAX_SUMMARY = 4_000
MAX_ITEM = 1_000
MAX_EVIDENCE = 2_000
MAX_ITEMS = 50
"""Items of one call: done, pending, failed approaches and deliverables together."""
MAX_NEXT_STEPS = 20
_TOLD = 20

_TEXT = {"anyOf": [{"type": "string"}, {"type": "null"}]}
_TEXTS = {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}
_APPROACH = {
    "type": "object",
    "properties": {"approach": {"type": "string"}, "outcome": {"type": "string"}},
    "required": ["approach"],
    "additionalProperties": False,
}
_APPROACHES = {
    "anyOf": [
        {"type": "array", "items": {"anyOf": [{"type": "string"}, _APPROACH]}},
        {"type": "null"},
    ]
}
_PROPERTIES: dict[str, object] = {
    "key_info": {**_TEXT, "description": f"Facts, decisions, paths; at most {MAX_KEY_INFO} characters."},
    "summary": {**_TEXT, "description": f"Where the work stands; at most {MAX_SUMMARY} characters."},
    "next_steps": {**_TEXTS, "description": f"What to do next, in order; at most {MAX_NEXT_STEPS}."},
    "done": {**_TEXTS, "description": "Things finished."},
    "pending": {**_TEXTS, "description": "Things that still await verification; settle each with `verify`."},
    "failed_approaches": {**_APPROACHES, "description": "What was tried and failed, each with its outcome."},
    "deliverables": {**_TEXTS, "description": "Paths of products in the workspace."},
}
_SPEC = ToolSpec(
    "update_working_checkpoint",
    "Save what the next wakeup must know: it starts without this conversation and sees only what is saved here. "
    "Give only what changed: key_info, summary and next_steps replace the earlier ones unless they are empty, the "
    "other lists add to them.",
    {"type": "object", "properties": _PROPERTIES, "required": [], "additionalProperties": False},
)


async def _save(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    given = {name: value for name, value in arguments.items() if not _empty(value)}
    if not given:
        names = ", ".join(_PROPERTIES)
        raise ToolError(f"update_working_checkpoint: nothing to save; give at least one of {names}")

    def text(name: str, limit: int) -> str | None:
        return None if name not in given else _clean(context, name, given[name], limit)

    def items(name: str, limit: int = MAX_ITEM) -> tuple[str, ...]:
        return tuple(_item(context, name, value, limit) for value in given.get(name, ()))

    steps = items("next_steps") if "next_steps" in given else None
    if steps is not None and len(steps) > MAX_NEXT_STEPS:
        raise ToolError(
            f"next_steps: {len(steps)} are too many, give at most the {MAX_NEXT_STEPS} that come first"
        )
    count = sum(len(given.get(name, ())) for name in ("done", "pending", "failed_approaches", "deliverables"))
    if count > MAX_ITEMS:
        raise ToolError(f"{count} items in one call are too many, give at most {MAX_ITEMS}")
    patch = StatePatch(
        key_info=text("key_info", MAX_KEY_INFO),
        summary=text("summary", MAX_SUMMARY),
        next_steps=steps,
        done=items("done"),
        pending=items("pending"),
        failed=_approaches(context, given.get("failed_approaches", ())),
        found=tuple(_path(context, path) for path in given.get("deliverables", ())),
    )
    after = apply(context.work, patch, wakeup=0)
    if problem := too_many(context.work, after):
        raise ToolError(f"update_working_checkpoint: nothing is saved; {problem}")
    return ToolOutput(_saved(context.work, after, patch), patch=patch)


def _empty(value: object) -> bool:
    """Many a model fills in every field: what says nothing is no wish to forget what was saved."""
    return value is None or value == [] or (isinstance(value, str) and not value.strip())


def _subject(arguments: Mapping[str, Any]) -> str:
    """What was saved. The lists with their lengths: a bare "done" would read as a claim in a later context."""
    return ", ".join(f"{k} ({len(v)})" if isinstance(v, list) else k for k, v in arguments.items())


update_working_checkpoint = Tool(_SPEC, Effect.STATE, _save, _subject)


@tool(effect="state", brief="item")
async def verify(
    context: ToolContext,
    item: Annotated[str, "The item's label, such as W3, or its exact text."],
    outcome: Literal["passed", "failed"],
    evidence: Annotated[str, "What showed it: the command and its result, the file and what is in it."],
) -> ToolOutput:
    """Record that a saved item was verified, or that its verification failed. The verification rests on the files
    that the item and the evidence name: when one of them changes, the item awaits verification again.
    """
    found = context.work.item(item)
    if found is None:
        raise ToolError(f"verify: there is no item {one_line(item, 80)!r}; {_open_items(context.work)}")
    if found.kind is ItemKind.FAILED_APPROACH:
        raise ToolError(f"verify: {found.label} is a failed approach; {_open_items(context.work)}")
    seen = _item(context, "evidence", evidence, MAX_EVIDENCE)
    passed = outcome == "passed"
    patch = StatePatch(verified={found.label: (passed, seen)})
    if passed:
        looked_at = partial(files_named, Workspace(context.workspace), f"{found.text}\n{seen}")
        patch = replace(patch, rests_on={found.label: await to_thread.run_sync(looked_at)})
    return ToolOutput(f"{found.label} {outcome}", patch=patch)


def _clean(context: ToolContext, name: str, text: str, limit: int) -> str:
    """What may be stored of a model's text; a text that is too long is refused, never cut."""
    if len(text) > limit:
        raise ToolError(f"{name}: {len(text)} characters are too long, give at most {limit}")
    return context.redact(sendable(text))


def _item(context: ToolContext, name: str, text: str, limit: int) -> str:
    if not text.strip():
        raise ToolError(f"{name}: it is blank")
    return _clean(context, name, text.strip(), limit)


def _path(context: ToolContext, path: str) -> str:
    """Judged as the model wrote it: cleaning first would make a good name of a bad one."""
    clean = Workspace(context.workspace).normalise(path)
    return _item(context, "deliverables", clean, MAX_ITEM)


def _approaches(context: ToolContext, values: Iterable[str | dict[str, str]]) -> dict[str, str]:
    """Approaches with their outcomes; one that is named twice in a call was tried once, and has the later outcome."""
    found: dict[str, tuple[str, str]] = {}
    for value in values:
        approach, outcome = _approach(context, value)
        first, before = found.get(normal(approach), (approach, ""))
        found[normal(approach)] = first, outcome or before
    return dict(found.values())


def _approach(context: ToolContext, value: str | dict[str, str]) -> tuple[str, str]:
    given = {"approach": value} if isinstance(value, str) else value
    approach = _item(context, "failed_approaches", given["approach"], MAX_ITEM)
    return approach, _clean(context, "failed_approaches", given.get("outcome", "").strip(), MAX_ITEM)


def _saved(before: WorkState, after: WorkState, patch: StatePatch) -> str:
    told = [
        f"{name} ({len(text)} characters)"
        for name, text in (("key_info", patch.key_info), ("summary", patch.summary))
        if text is not None
    ]
    if patch.next_steps is not None:
        told.append(f"{len(patch.next_steps)} next steps")
    texts = (("done", patch.done), ("pending", patch.pending))
    told += [f"{name} {_labels(after, saved)}" for name, saved in texts if saved]
    failed = [item for text in patch.failed if (item := after.approach(text)) is not None]
    told += [f"failed {' '.join(item.label for item in failed)}"] if failed else []
    told += [f"{len(patch.found)} deliverables"] if patch.found else []
    again = [_tried_again(item) for item in failed if before.approach(item.text) is not None]
    return "\n".join([f"saved: {', '.join(told)}", *again])


def _tried_again(item: WorkItem) -> str:
    outcome = f", outcome: {one_line(item.evidence, 200)}" if item.evidence else ""
    return f"{item.label}: tried {item.count} times already{outcome}; choose another way"


def _labels(state: WorkState, texts: Iterable[str]) -> str:
    labels = [item.label for text in texts if (item := state.item(text)) is not None]
    return " ".join(dict.fromkeys(labels))


def _open_items(state: WorkState) -> str:
    pending = [f"{item.label}: {one_line(item.text, 60)}" for item in state.pending]
    if not pending:
        return "no item awaits verification"
    more = f"; and {len(pending) - _TOLD} more" if len(pending) > _TOLD else ""
    return "awaiting verification: " + "; ".join(pending[:_TOLD]) + more
