"""A step as a chat completion: one JSON body, or the events of a stream and the places to stall and to cut. Pure."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from goalmode.testing.steps import ABSENT, AUTO, Completion, StubCall

PIECE = 16
"""Characters of text or arguments in one chunk of a stream."""


class Mark(Enum):
    """A place in a stream where something happens."""

    STALL = "stall"
    CUT = "cut"


def whole(step: Completion, request: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The body of an answer that is not a stream."""
    if step.error is not None:
        return {"error": dict(step.error)}
    message: dict[str, Any] = {"role": "assistant", "content": step.text or None, "refusal": step.refusal}
    if step.reasoning is not None:
        message["reasoning_content"] = step.reasoning
    if step.calls:
        message["tool_calls"] = [_head(call, number, n, call.arguments) for n, call in enumerate(step.calls)]
    choice = {"index": 0, "message": message, "finish_reason": _finish(step), **step.extra}
    usage = _usage(step, request)
    return {
        **_envelope("chat.completion", request, number),
        "choices": [choice],
        **({} if usage == ABSENT else {"usage": usage}),
    }


def stream(
    step: Completion, request: Mapping[str, Any], number: int
) -> Iterator[dict[str, Any] | str | Mark]:
    """The events of a stream: chunks, `[DONE]`, and marks."""
    envelope = _envelope("chat.completion.chunk", request, number)

    def chunk(delta: Mapping[str, Any], **choice: Any) -> dict[str, Any]:
        whole_choice = {"index": 0, "delta": delta, "finish_reason": None, **choice}
        return {**envelope, "choices": [whole_choice]}

    yield chunk({"role": "assistant", "content": ""})
    sent = 0
    for delta, length in _deltas(step, number):
        for mark, at in ((Mark.STALL, step.stall_after), (Mark.CUT, step.cut_after)):
            if at == sent and length:
                yield mark
        yield chunk(delta)
        sent += length
    if step.stall_after is not None and step.stall_after >= sent:
        yield Mark.STALL
    if step.cut_after is not None:
        yield Mark.CUT
    if step.error is not None:
        yield {"error": dict(step.error)}
        return
    yield chunk({}, finish_reason=_finish(step), **step.extra)
    usage = _usage(step, request)
    if usage != ABSENT and (request.get("stream_options") or {}).get("include_usage"):
        yield {**envelope, "choices": [], "usage": usage}
    if step.done:
        yield "[DONE]"


def _deltas(step: Completion, number: int) -> Iterator[tuple[dict[str, Any], int]]:
    """Each delta with its length in characters; pieces end where something is to happen."""
    marks = [at for at in (step.stall_after, step.cut_after) if at is not None]
    start = 0
    if step.reasoning:
        yield {"reasoning_content": step.reasoning}, 0
    for piece in _pieces(step.text, start, marks):
        yield {"content": piece}, len(piece)
    start += len(step.text)
    if step.refusal:
        yield {"refusal": step.refusal}, 0
    for n, call in enumerate(step.calls):
        yield {"tool_calls": [{"index": n, **_head(call, number, n, "")}]}, 0
        for piece in _pieces(call.arguments, start, marks):
            yield {"tool_calls": [{"index": n, "function": {"arguments": piece}}]}, len(piece)
        start += len(call.arguments)


def _pieces(text: str, start: int, marks: list[int]) -> Iterator[str]:
    ends = {*range(PIECE, len(text), PIECE), *(at - start for at in marks if 0 < at - start < len(text))}
    begin = 0
    for end in [*sorted(ends), len(text)]:
        if end > begin:
            yield text[begin:end]
        begin = end


def _head(call: StubCall, number: int, position: int, arguments: str) -> dict[str, Any]:
    head: dict[str, Any] = {"type": "function", "function": {"name": call.name, "arguments": arguments}}
    if call.id is not None:
        head["id"] = f"call_{number}_{position}" if call.id == AUTO else call.id
    return head


def _finish(step: Completion) -> str | None:
    if step.finish != AUTO:
        return step.finish
    return "tool_calls" if step.calls else "stop"


def _usage(step: Completion, request: Mapping[str, Any]) -> Mapping[str, Any] | str | None:
    if step.usage != AUTO:
        return step.usage
    prompt = _tokens(json.dumps(request, ensure_ascii=False))
    said = _tokens(step.text + "".join(call.name + call.arguments for call in step.calls))
    return {"prompt_tokens": prompt, "completion_tokens": said, "total_tokens": prompt + said}


def _tokens(text: str) -> int:
    return max(1, math.ceil(len(text.encode("utf-8", "replace")) / 4))


def _envelope(kind: str, request: Mapping[str, Any], number: int) -> dict[str, Any]:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": 0, "model": str(request.get("model", ""))}
