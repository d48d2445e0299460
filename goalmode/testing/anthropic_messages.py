"""A step as an Anthropic message: one JSON body, or the events of a stream. Pure.

What the provider does by itself is done here too: thinking is signed (`goalmode.testing.anthropic_thinking`), a turn
that pauses has called one of the provider's own tools, and the next answer begins with that call's result.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from goalmode.model.lint_anthropic import lint
from goalmode.model.strict_json import json_object
from goalmode.testing.anthropic_thinking import misplaced, signature
from goalmode.testing.pieces import Event, Wire, marked, pieces, tokens
from goalmode.testing.steps import ABSENT, AUTO, Completion, Status, StubCall

Block = dict[str, Any]
Delta = tuple[dict[str, Any], int]
"""A piece of an answer, and how many characters of text or arguments it holds."""

_STOPS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
"""The words of the other formats, so that one script serves all."""

_OTHER_WORDS = {401: "authentication_error", 404: "not_found_error"}


def refused(status: int, message: str) -> Status:
    """An answer in Anthropic's shape to a request that is not taken."""
    kind = _OTHER_WORDS.get(status, "invalid_request_error")
    return Status(status, {"type": "error", "error": {"type": kind, "message": message}})


def refusal(request: Mapping[str, Any]) -> Status | None:
    """A strict provider's answer to a request that it does not take, None if it does."""
    found = lint(request) or misplaced(request)
    return refused(400, found[0]) if found else None


def whole(step: Completion, request: Mapping[str, Any], number: int) -> Mapping[str, Any]:
    """The body of an answer that is not a stream."""
    if step.error is not None:
        return {"type": "error", "error": dict(step.error)}
    content = [{**block, **_written(block, raw)} for block, raw in _content(step, request, number)]
    message = _envelope(request, number) | {"content": content} | _ending(step)
    return message | ({} if (usage := _usage(step, request)) == ABSENT else {"usage": usage})


def stream(step: Completion, request: Mapping[str, Any], number: int) -> Iterator[Event]:
    """The events of a stream, and marks."""
    usage = _usage(step, request)
    message = {**_envelope(request, number), "content": [], "stop_reason": None, "stop_sequence": None}
    begun = {**usage, "output_tokens": 1} if isinstance(usage, Mapping) else usage
    yield {"type": "message_start", "message": message | ({} if begun == ABSENT else {"usage": begun})}
    yield {"type": "ping"}
    yield from marked(_events(step, request, number), step)
    if step.cut_after is not None:
        return
    if step.error is not None:
        yield {"type": "error", "error": dict(step.error)}
        return
    delta = {"type": "message_delta", "delta": _ending(step)}
    yield delta if usage == ABSENT else {**delta, "usage": usage}
    if step.done:
        yield {"type": "message_stop"}


def _events(step: Completion, request: Mapping[str, Any], number: int) -> Iterator[Delta]:
    """The events of each block with their length in characters."""
    start = 0
    for index, (block, raw) in enumerate(_content(step, request, number)):
        begun, deltas = _opened(block, raw, start, step)
        yield {"type": "content_block_start", "index": index, "content_block": begun}, 0
        for delta, length in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}, length
        yield {"type": "content_block_stop", "index": index}, 0
        start += len(raw)


def _opened(block: Block, raw: str, start: int, step: Completion) -> tuple[Block, list[Delta]]:
    """A block as it begins, and the deltas that fill it."""
    match block["type"]:
        case "text":
            parts = pieces(raw, start, step)
            return {**block, "text": ""}, [({"type": "text_delta", "text": p}, len(p)) for p in parts]
        case "tool_use":
            parts = pieces(raw, start, step)
            deltas = [({"type": "input_json_delta", "partial_json": p}, len(p)) for p in parts]
            return {**block, "input": {}}, deltas
        case "thinking":
            thought = {"type": "thinking_delta", "thinking": block["thinking"]}
            signed = {"type": "signature_delta", "signature": block["signature"]}
            return {**block, "thinking": "", "signature": ""}, [(thought, 0), (signed, 0)]
        case _:
            return block, []


def _content(step: Completion, request: Mapping[str, Any], number: int) -> list[tuple[Block, str]]:
    """The blocks of the answer; of text and calls also what is written in them, as it is."""
    found: list[Block] = [
        {"type": f"{block['name']}_tool_result", "tool_use_id": block["id"], "content": []}
        for block in _waiting(request)
    ]
    if step.reasoning is not None:
        signed = signature(request, found, step.reasoning)
        found.append({"type": "thinking", "thinking": step.reasoning, "signature": signed})
    found += [dict(block) for block in step.blocks]
    content = [(block, "") for block in found]
    if step.text:
        content.append(({"type": "text"}, step.text))
    content += [(_call(call, number, n), call.arguments) for n, call in enumerate(step.calls)]
    if step.finish == "pause_turn":
        search = {"type": "server_tool_use", "id": f"srvtoolu_{number}", "name": "web_search"}
        content.append(({**search, "input": {"query": "more"}}, ""))
    if step.finish == "compaction":
        content.append(({"type": "compaction", "content": "What was said before, in short."}, ""))
    return content


def _waiting(request: Mapping[str, Any]) -> list[Block]:
    """Calls of the provider's own tools in the newest reply that have no result."""
    replies = [message["content"] for message in request["messages"] if message["role"] == "assistant"]
    newest = replies[-1] if replies and isinstance(replies[-1], list) else []
    answered = {block.get("tool_use_id") for block in newest}
    return [b for b in newest if b["type"] == "server_tool_use" and b["id"] not in answered]


def _call(call: StubCall, number: int, position: int) -> Block:
    head: Block = {"type": "tool_use", "name": call.name}
    if call.id is not None:
        head["id"] = f"toolu_{number}_{position}" if call.id == AUTO else call.id
    return head


def _written(block: Block, raw: str) -> Block:
    match block["type"]:
        case "text":
            return {"text": raw}
        case "tool_use":
            return {"input": json.loads(json_object(raw) or "{}")}
        case _:
            return {}


def _ending(step: Completion) -> dict[str, Any]:
    if step.refusal is not None:
        details = {"type": "refusal", "category": None, "explanation": step.refusal}
        return {"stop_reason": "refusal", "stop_sequence": None, "stop_details": details, **step.extra}
    word = step.finish
    if word == AUTO:
        word = "tool_use" if step.calls else "end_turn"
    return {"stop_reason": _STOPS.get(word, word) if word else word, "stop_sequence": None, **step.extra}


def _usage(step: Completion, request: Mapping[str, Any]) -> Mapping[str, Any] | str | None:
    """Usage in this format's counts, also where the step gives the other format's."""
    given = step.usage
    if given == AUTO:
        said = step.text + "".join(call.name + call.arguments for call in step.calls)
        return {"input_tokens": tokens(json.dumps(request)), "output_tokens": tokens(said)}
    if not isinstance(given, Mapping) or "prompt_tokens" not in given:
        return given
    cached = given.get("prompt_tokens_details", {}).get("cached_tokens", 0)
    return {
        "input_tokens": given["prompt_tokens"] - cached,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": given["completion_tokens"],
    }


def _envelope(request: Mapping[str, Any], number: int) -> dict[str, Any]:
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": str(request.get("model", "")),
    }


WIRE = Wire(
    "/v1/messages", refusal, whole, stream, key=("x-api-key", ""), needs="anthropic-version", refused=refused
)
