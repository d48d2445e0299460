"""A step as a chat completion: one JSON body, or the events of a stream and the places to stall and to cut. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from goalmode.model.lint import lint
from goalmode.testing.pieces import Event, Wire, marked, pieces, refused, tokens
from goalmode.testing.steps import ABSENT, AUTO, Completion, Status, StubCall


def refusal(request: Mapping[str, Any]) -> Status | None:
    """A strict provider's answer to a request that it does not take, None if it does."""
    messages, tools = request.get("messages"), request.get("tools", [])
    if not isinstance(messages, list) or not isinstance(tools, list) or request.get("tools") == []:
        return refused(400, "Invalid type for 'messages' or 'tools': expected a non-empty array")
    found = lint(messages, tools)
    return refused(400, found[0]) if found else None


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


def stream(step: Completion, request: Mapping[str, Any], number: int) -> Iterator[Event]:
    """The events of a stream: chunks, `[DONE]`, and marks."""
    envelope = _envelope("chat.completion.chunk", request, number)

    def chunk(delta: Mapping[str, Any], **choice: Any) -> dict[str, Any]:
        whole_choice = {"index": 0, "delta": delta, "finish_reason": None, **choice}
        return {**envelope, "choices": [whole_choice]}

    yield chunk({"role": "assistant", "content": ""})
    yield from marked(((chunk(delta), length) for delta, length in _deltas(step, number)), step)
    if step.cut_after is not None:
        return
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
    start = 0
    if step.reasoning:
        yield {"reasoning_content": step.reasoning}, 0
    for piece in pieces(step.text, start, step):
        yield {"content": piece}, len(piece)
    start += len(step.text)
    if step.refusal:
        yield {"refusal": step.refusal}, 0
    for n, call in enumerate(step.calls):
        yield {"tool_calls": [{"index": n, **_head(call, number, n, "")}]}, 0
        for piece in pieces(call.arguments, start, step):
            yield {"tool_calls": [{"index": n, "function": {"arguments": piece}}]}, len(piece)
        start += len(call.arguments)


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
    prompt = tokens(json.dumps(request, ensure_ascii=False))
    said = tokens(step.text + "".join(call.name + call.arguments for call in step.calls))
    return {"prompt_tokens": prompt, "completion_tokens": said, "total_tokens": prompt + said}


def _envelope(kind: str, request: Mapping[str, Any], number: int) -> dict[str, Any]:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": 0, "model": str(request.get("model", ""))}


WIRE = Wire("/v1/chat/completions", refusal, whole, stream)
