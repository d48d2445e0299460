"""Which step answers a request: a list in order, or a rule over the request. Also out of a JSON file."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from goalmode.testing.steps import ScriptError, Step, step_from_json, text

Rule = Callable[[Mapping[str, Any], int], Step | None]
"""(the parsed request, how many valid ones came before) -> the answer; None if there is none left."""

PHRASES = (
    "all done",
    "all set",
    "task is complete",
    "work is complete",
    "final delivery",
    "nothing left to do",
    "everything is finished",
    "收口",
    "已完成",
    "全部完成",
    "最终交付",
    "任务完成",
)
CLOSING = "All done. The task is complete; this is the final delivery. 任务完成，收口。"


def in_order(steps: Sequence[Step], *, forever: bool = False) -> Rule:
    """Each request gets the next step; with `forever` the last one again and again."""

    def rule(request: Mapping[str, Any], number: int) -> Step | None:
        if forever and steps:
            return steps[min(number, len(steps) - 1)]
        return steps[number] if number < len(steps) else None

    return rule


def closing_after(
    limit: int, otherwise: Rule, *, phrases: Sequence[str] = PHRASES, reply: str = CLOSING
) -> Rule:
    """A model that its own history talks into stopping: closing prose and no tool once a request's text holds `limit`
    completion phrases, else what `otherwise` says, as if the closing replies had never been asked for."""
    lock, closed = threading.Lock(), 0

    def rule(request: Mapping[str, Any], number: int) -> Step | None:
        nonlocal closed
        with lock:
            if count_phrases(request, phrases) >= limit:
                closed += 1
                return text(reply)
            return otherwise(request, number - closed)

    return rule


def count_phrases(request: Mapping[str, Any], phrases: Sequence[str] = PHRASES) -> int:
    """How often the texts of a request's messages hold one of the phrases."""
    messages = request.get("messages") or request.get("input") or ()
    contents = [request.get("system"), *(m.get("content", m.get("output")) for m in messages)]
    said = "\n".join(text for content in contents for text in _texts(content)).lower()
    return sum(said.count(phrase.lower()) for phrase in phrases)


def _texts(content: object) -> Iterator[str]:
    """The texts of a message's content, which is a text or a list of parts, in any format."""
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        yield from _texts(part.get("text") or part.get("content"))


def rule_from_json(script: Any) -> Rule:
    """A list of steps, or `{"steps": […], "completion_phrases": {"limit": N, "phrases": […], "reply": "…"}}`.

    The last step may say `"forever": true`.

    Raises:
        ScriptError: anything else; the message says where.
    """
    whole = {"steps": script} if isinstance(script, list) else script
    if not isinstance(whole, dict) or not isinstance(whole.get("steps"), list):
        raise ScriptError("a script is a list of steps, or an object with 'steps'")
    if unknown := sorted(set(whole) - {"steps", "completion_phrases"}):
        raise ScriptError(f"unknown field {unknown[0]!r}; known are steps, completion_phrases")
    steps = whole["steps"]
    made: list[Step] = []
    for number, step in enumerate(steps):
        try:
            made.append(step_from_json(step if isinstance(step, dict) else {"step": step}))
        except ScriptError as wrong:
            raise ScriptError(f"steps[{number}]: {wrong}") from None
    rule = in_order(made, forever=bool(steps) and bool(steps[-1].get("forever")))
    closing = whole.get("completion_phrases")
    if closing is None:
        return rule
    if not isinstance(closing, dict) or not isinstance(closing.get("limit"), int):
        raise ScriptError("completion_phrases needs a 'limit', a number")
    options = {key: closing[key] for key in ("phrases", "reply") if key in closing}
    return closing_after(closing["limit"], rule, **options)
