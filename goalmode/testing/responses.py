"""A step as an OpenAI response: one JSON body, or the events of a stream and the places to stall and to cut. Pure.

Items that were made after reasoning say so in their ids, so that a later request that gives them back without it is
refused, as by the real server.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from goalmode.model.lint_responses import lint
from goalmode.testing.pieces import Event, Wire, marked, pieces, refused, tokens
from goalmode.testing.steps import ABSENT, AUTO, Completion, Status, StubCall

_THOUGHT = re.compile(r"(?:fc|msg)_(\d+)(?:_\d+)?_thought")

_ENDINGS: Mapping[str | None, tuple[str, str | None]] = {
    AUTO: ("completed", None),
    "stop": ("completed", None),
    "tool_calls": ("completed", None),
    "length": ("incomplete", "max_output_tokens"),
    None: ("incomplete", None),
    **{
        word: ("incomplete", word)
        for word in ("max_output_tokens", "max_messages", "content_filter", "steered")
    },
}
"""The words of a chat completion, and the reasons of an incomplete response; any other word is a status."""


def refusal(request: Mapping[str, Any]) -> Status | None:
    """A strict provider's answer to a request that it does not take, None if it does."""
    given, tools = request.get("input"), request.get("tools", [])
    items = [{"type": "message", "role": "user", "content": given}] if isinstance(given, str) else given
    if not isinstance(items, list) or not isinstance(tools, list):
        return refused(400, "Invalid type for 'input' or 'tools': expected an array")
    for name in (
        "messages",
        "max_tokens",
        "max_completion_tokens",
        "response_format",
        "stream_options.include_usage",
    ):
        if name in request:
            return refused(400, f"Unknown parameter: '{name}'.", "unknown_parameter")
    found = lint(items, tools, thought=_thought(items))
    if not found and (forged := _forged(items)) is not None:
        said = f"The encrypted content {forged[:8]} could not be verified."
        return refused(400, said, "invalid_encrypted_content")
    return refused(404 if "not found. Items" in found[0] else 400, found[0]) if found else None


def whole(step: Completion, request: Mapping[str, Any], number: int) -> dict[str, Any]:
    """The body of an answer that is not a stream."""
    if step.error is not None:
        return {"error": dict(step.error)}
    return _response(step, request, number, ended=True)


def stream(step: Completion, request: Mapping[str, Any], number: int) -> Iterator[Event]:
    """The events of a stream, and marks."""
    for sequence, event in enumerate(_unnumbered(step, request, number)):
        yield {**event, "sequence_number": sequence} if isinstance(event, Mapping) else event


def _unnumbered(step: Completion, request: Mapping[str, Any], number: int) -> Iterator[Event]:
    begun = _response(step, request, number, ended=False)
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    yield from marked(_content(step, number), step)
    if step.cut_after is not None:
        return
    if step.error is not None:
        code = step.error.get("code") or step.error.get("type")
        yield {"type": "error", "code": code, "message": step.error.get("message", ""), "param": None}
    elif step.done:
        response = _response(step, request, number, ended=True)
        status = response["status"]
        event = status if status in ("completed", "failed", "incomplete") else "completed"
        yield {"type": f"response.{event}", "response": response}


def _content(step: Completion, number: int) -> Iterator[tuple[dict[str, Any], int]]:
    """Each event of the output with its length in characters."""
    start = 0
    for index, item in enumerate(_items(step, number)):
        at = {"output_index": index, "item_id": item["id"]}
        match item["type"]:
            case "reasoning":
                yield _added(index, {**item, "summary": [], "encrypted_content": ""}), 0
                yield from ((event, 0) for event in _reasoning(at, step.reasoning or ""))
            case "message":
                yield _added(index, {**item, "status": "in_progress", "content": []}), 0
                for n, part in enumerate(item["content"]):
                    yield from _part({**at, "content_index": n}, part, start, step)
                start += len(step.text)
            case _:
                yield _added(index, {**item, "status": "in_progress", "arguments": ""}), 0
                for piece in pieces(item["arguments"], start, step):
                    yield {"type": "response.function_call_arguments.delta", **at, "delta": piece}, len(piece)
                start += len(item["arguments"])
                if item["status"] == "completed":
                    done = {"arguments": item["arguments"], "name": item["name"]}
                    yield {"type": "response.function_call_arguments.done", **at, **done}, 0
        yield {"type": "response.output_item.done", "output_index": index, "item": item}, 0


def _reasoning(at: Mapping[str, Any], text: str) -> Iterator[dict[str, Any]]:
    at = {**at, "summary_index": 0}
    name = "response.reasoning_summary"
    yield {"type": f"{name}_part.added", **at, "part": {"type": "summary_text", "text": ""}}
    yield {"type": f"{name}_text.delta", **at, "delta": text}
    yield {"type": f"{name}_text.done", **at, "text": text}
    yield {"type": f"{name}_part.done", **at, "part": {"type": "summary_text", "text": text}}


def _part(
    at: Mapping[str, Any], part: Mapping[str, Any], start: int, step: Completion
) -> Iterator[tuple[dict[str, Any], int]]:
    """A message's text, which counts towards the characters, or its refusal, which does not."""
    kind = part["type"]
    key = "text" if kind == "output_text" else "refusal"
    text, counts = part[key], kind == "output_text"
    more: dict[str, Any] = {"logprobs": []} if counts else {}
    yield {"type": "response.content_part.added", **at, "part": {**part, key: ""}}, 0
    for piece in pieces(text, start, step) if counts else [text]:
        yield {"type": f"response.{kind}.delta", **at, "delta": piece, **more}, len(piece) if counts else 0
    yield {"type": f"response.{kind}.done", **at, key: text, **more}, 0
    yield {"type": "response.content_part.done", **at, "part": part}, 0


def _added(index: int, item: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "response.output_item.added", "output_index": index, "item": item}


def _items(step: Completion, number: int) -> list[dict[str, Any]]:
    """The output. The last item of an incomplete response is incomplete itself."""
    thought = "_thought" if step.reasoning is not None else ""
    items: list[dict[str, Any]] = []
    if step.reasoning is not None:
        summary = [{"type": "summary_text", "text": step.reasoning}]
        items.append(
            {
                "type": "reasoning",
                "id": f"rs_{number}",
                "summary": summary,
                "encrypted_content": _sealed(number),
            }
        )
    if step.text or step.refusal:
        parts: list[dict[str, Any]] = []
        if step.text:
            parts.append({"type": "output_text", "text": step.text, "annotations": [], "logprobs": []})
        if step.refusal:
            parts.append({"type": "refusal", "refusal": step.refusal})
        message = {"type": "message", "id": f"msg_{number}{thought}", "role": "assistant", "content": parts}
        items.append({**message, "status": "completed"})
    items += [_call(call, number, n, thought) for n, call in enumerate(step.calls)]
    if _ending(step)[0] == "incomplete" and items and items[-1]["type"] != "reasoning":
        items[-1]["status"] = "incomplete"
    return items


def _call(call: StubCall, number: int, position: int, thought: str) -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"fc_{number}_{position}{thought}",
        "call_id": f"call_{number}_{position}" if call.id == AUTO else call.id or "",
        "name": call.name,
        "arguments": call.arguments,
        "status": "completed",
    }


def _response(step: Completion, request: Mapping[str, Any], number: int, *, ended: bool) -> dict[str, Any]:
    status, reason = _ending(step) if ended else ("in_progress", None)
    usage = _usage(step, request) if ended else None
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 0,
        "model": str(request.get("model", "")),
        "status": status,
        "error": {"code": "server_error", "message": "The server had an error."}
        if status == "failed"
        else None,
        "incomplete_details": {"reason": reason} if status == "incomplete" and reason else None,
        "output": _items(step, number) if ended else [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": request.get("tools", []),
        **({} if usage == ABSENT else {"usage": usage}),
        **(step.extra if ended else {}),
    }


def _ending(step: Completion) -> tuple[str, str | None]:
    return _ENDINGS.get(step.finish, (str(step.finish), None))


def _usage(step: Completion, request: Mapping[str, Any]) -> Mapping[str, Any] | str | None:
    """The step's usage, written in this format if it is in the other's."""
    given = step.usage
    if given == AUTO:
        said = tokens(step.text + "".join(call.name + call.arguments for call in step.calls))
        given = {"prompt_tokens": tokens(json.dumps(request, ensure_ascii=False)), "completion_tokens": said}
    if not isinstance(given, Mapping) or "prompt_tokens" not in given:
        return given
    cached = (given.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
    return {
        "input_tokens": given["prompt_tokens"],
        "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": 0},
        "output_tokens": given["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": given["prompt_tokens"] + given["completion_tokens"],
    }


def _sealed(number: int | str) -> str:
    return f"gAAAAABsealed{number}"


def _thought(items: list[Any]) -> dict[str, str]:
    """Which reasoning item each item that is given back was made after."""
    ids = [str(item.get("id")) for item in items if isinstance(item, Mapping)]
    return {id_: f"rs_{match[1]}" for id_ in ids if (match := _THOUGHT.fullmatch(id_)) is not None}


def _forged(items: list[Any]) -> str | None:
    """Encrypted content that this server did not make, or made for another item."""
    for item in items:
        if item.get("type") == "reasoning" and item["encrypted_content"] != _sealed(
            item["id"].removeprefix("rs_")
        ):
            return str(item["encrypted_content"])
    return None


WIRE = Wire("/v1/responses", refusal, whole, stream)
