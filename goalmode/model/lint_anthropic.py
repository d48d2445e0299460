"""What a strict Anthropic messages server refuses about a request, in words like its own. Pure.

Stricter than the provider in one thing: it joins neighbours of one role by itself, here they must alternate.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from goalmode.model.lint import NAME, unsendable
from goalmode.model.wire.anthropic_blocks import SERVER_CALLS, THINKING, is_server_result

Wire = Mapping[str, Any]

MAX_MARKS = 4
"""Blocks with `cache_control` in one request."""

_ID = re.compile(r"[a-zA-Z0-9_-]+")
_FIELDS = {
    *("model", "messages", "max_tokens", "system", "tools", "tool_choice", "temperature", "top_p", "top_k"),
    *("stop_sequences", "stream", "metadata", "thinking", "output_config", "service_tier", "cache_control"),
    *("container", "inference_geo"),
}
_USERS = frozenset({"text", "image", "document", "search_result", "tool_result", "container_upload"})
_ASSISTANTS = THINKING | {
    "text",
    "tool_use",
    "server_tool_use",
    "mcp_tool_use",
    "compaction",
    "container_upload",
}
_MUST = {
    "text": ("text", str),
    "thinking": ("thinking", str),
    "redacted_thinking": ("data", str),
    "tool_result": ("tool_use_id", str),
}


def lint(request: Wire) -> list[str]:
    """Every violation, the first in the request first; empty for a request that may be sent."""
    messages = request.get("messages")
    broken = [*_fields(request), *_shape(messages)]
    if broken or not isinstance(messages, list):
        return broken
    return [
        *_system(request.get("system")),
        *_tools(request.get("tools", ())),
        *(said for n, message in enumerate(messages) for said in _message(n, message)),
        *_order(messages),
        *_pairs(messages),
        *_server_pairs(messages),
        *_whole(request, messages),
    ]


def _fields(request: Wire) -> Iterator[str]:
    if (said := unsendable(request)) is not None:
        yield f"The request body is not valid JSON: {said}"
    for name, kind in (("model", str), ("max_tokens", int), ("messages", list)):
        if not isinstance(request.get(name), kind):
            yield f"{name}: Field required"
    for name in sorted(set(request) - _FIELDS):
        yield f"{name}: Extra inputs are not permitted"
    if not isinstance(request.get("tools", []), list):
        yield "tools: Input should be a valid array"
    temperature = request.get("temperature", 0)
    if not isinstance(temperature, int | float) or not 0 <= temperature <= 1:
        yield "temperature: range: 0..1"


def _shape(messages: object) -> Iterator[str]:
    """Whether the messages have roles and blocks at all, so that the rest may be looked at."""
    if not isinstance(messages, list):
        return
    if not messages:
        yield "messages: at least one message is required"
    for n, message in enumerate(messages):
        if not isinstance(message, Mapping) or message.get("role") not in ("user", "assistant"):
            yield f"messages.{n}.role: Input should be 'user' or 'assistant'"
        elif not isinstance(message.get("content"), str | list):
            yield f"messages.{n}.content: Input should be a valid array"
        else:
            known = _USERS if message["role"] == "user" else _ASSISTANTS
            for k, block in enumerate(_blocks(message)):
                kind = block.get("type") if isinstance(block, Mapping) else None
                theirs = message["role"] == "assistant" and str(kind).endswith("_tool_result")
                if kind not in known and not theirs:
                    yield (
                        f"messages.{n}.content.{k}: Input tag '{kind}' found using 'type' does not match any of "
                        f"the expected tags: {', '.join(sorted(known))}"
                    )


def _blocks(message: Wire) -> Sequence[Any]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _system(system: object) -> Iterator[str]:
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system or []
    if not isinstance(blocks, list) or not all(
        isinstance(b, Mapping) and b.get("type") == "text" for b in blocks
    ):
        yield "system: Input should be a valid list of text blocks"
        return
    for block in blocks:
        yield from _text("system", block.get("text"))


def _text(at: str, text: object) -> Iterator[str]:
    if text == "":
        yield f"{at}: text content blocks must be non-empty"
    elif isinstance(text, str) and not text.strip():
        yield f"{at}: text content blocks must contain non-whitespace text"


def _tools(tools: Sequence[Any]) -> Iterator[str]:
    names: Counter[str] = Counter()
    for n, tool in enumerate(tools):
        at = f"tools.{n}.custom"
        if not isinstance(tool, Mapping) or not isinstance(tool.get("name"), str):
            yield f"{at}.name: Field required"
            continue
        if not NAME.fullmatch(tool["name"]):
            yield f"{at}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'"
        names[tool["name"]] += 1
        if names[tool["name"]] == 2:
            yield "tools: Tool names must be unique."
        schema = tool.get("input_schema")
        if not isinstance(schema, Mapping) or schema.get("type") != "object":
            yield f"{at}.input_schema.type: Input should be 'object'"


def _message(n: int, message: Wire) -> Iterator[str]:
    blocks = _blocks(message)
    if message["role"] == "user" and not message["content"]:
        yield f"messages.{n}: user messages must have non-empty content"
    for k, block in enumerate(blocks):
        yield from _block(f"messages.{n}.content.{k}", block)
    if message["role"] == "assistant" and blocks and blocks[-1]["type"] in THINKING:
        yield f"messages.{n}: The final block in an assistant message cannot be `{blocks[-1]['type']}`."


def _block(at: str, block: Wire) -> Iterator[str]:
    kind = block["type"]
    field, type_ = _MUST.get(kind, ("type", str))
    if not isinstance(block.get(field), type_):
        yield f"{at}.{kind}.{field}: Field required"
    match kind:
        case "text":
            yield from _text("messages", block.get("text"))
        case "thinking" if not block.get("signature"):
            yield f"{at}.thinking.signature: Field required"
        case "tool_use":
            yield from _call(f"{at}.tool_use", block)
        case "tool_result" if not isinstance(block.get("content", ""), str | list):
            yield f"{at}.tool_result.content: Input should be a valid string"
    if kind in THINKING and "cache_control" in block:
        yield f"{at}.{kind}.cache_control: Extra inputs are not permitted"


def _call(at: str, block: Wire) -> Iterator[str]:
    if not isinstance(block.get("id"), str) or not _ID.fullmatch(block["id"]):
        yield f"{at}.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
    if not isinstance(block.get("name"), str) or not NAME.fullmatch(block["name"]):
        yield f"{at}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'"
    if not isinstance(block.get("input"), Mapping):
        yield f"{at}.input: Input should be a valid dictionary"


def _order(messages: Sequence[Wire]) -> Iterator[str]:
    if messages[0]["role"] != "user":
        yield 'messages: first message must use the "user" role'
    for one, other in itertools.pairwise(messages):
        if one["role"] == other["role"]:
            yield (
                'messages: roles must alternate between "user" and "assistant", '
                f'but found multiple "{one["role"]}" roles in a row'
            )
    if messages[-1]["role"] == "assistant" and not _is_paused(_blocks(messages[-1])):
        yield (
            "This model does not support assistant message prefill. "
            "The conversation must end with a user message."
        )


def _is_paused(blocks: Sequence[Wire]) -> bool:
    """Whether a reply may be sent back as the end: the provider's own tools or a compaction interrupted it."""
    return any(b["type"] == "compaction" or b["type"] in SERVER_CALLS for b in blocks)


def _pairs(messages: Sequence[Wire]) -> Iterator[str]:
    """Each call answered once, by the blocks at the head of the next message; no answer without a call."""
    seen: set[str] = set()
    asked: list[str] = []
    for n, message in enumerate([*messages, {"role": "end", "content": []}]):
        blocks = _blocks(message)
        texts = [k for k, b in enumerate(blocks) if b["type"] != "tool_result"]
        head = [str(b.get("tool_use_id")) for b in blocks[: texts[0] if texts else len(blocks)]]
        answers = [str(b.get("tool_use_id")) for b in blocks if b["type"] == "tool_result"]
        if missing := [id_ for id_ in asked if id_ not in head]:
            yield (
                f"messages.{n - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
                "next message."
            )
        for id_, count in Counter(answers).items():
            if id_ not in asked:
                yield (
                    f"messages.{n}: unexpected `tool_use_id` found in `tool_result` blocks: {id_}. Each `tool_result` "
                    "block must have a corresponding `tool_use` block in the previous message."
                )
            elif count > 1:
                yield f"messages.{n}: each tool_use must have a single result. Found multiple for id: {id_}"
        asked = [str(b.get("id")) for b in blocks if b["type"] == "tool_use"]
        if seen & set(asked) or len(set(asked)) < len(asked):
            yield f"messages.{n}: `tool_use` ids must be unique"
        seen |= set(asked)


def _server_pairs(messages: Sequence[Wire]) -> Iterator[str]:
    """Each call of the provider's own tools has its result; at the end, or beside calls of ours, it may still come."""
    open_calls: dict[str, str] = {}
    for n, message in enumerate(messages):
        blocks = _blocks(message)
        if message["role"] != "assistant":
            continue
        for block in blocks:
            if block["type"] in SERVER_CALLS:
                open_calls[str(block.get("id"))] = str(block.get("name"))
            elif is_server_result(block):
                id_ = str(block.get("tool_use_id"))
                if open_calls.pop(id_, None) is None:
                    yield f"messages.{n}: unexpected `tool_use_id` found in `{block['type']}` blocks: {id_}"
        if n < len(messages) - 1 and not any(block["type"] == "tool_use" for block in blocks):
            for id_, name in open_calls.items():
                yield (
                    f"messages.{n}: `{name}` tool use with id `{id_}` was found without a corresponding "
                    f"`{name}_tool_result` block"
                )


def _whole(request: Wire, messages: Sequence[Wire]) -> Iterator[str]:
    blocks = [block for message in messages for block in _blocks(message)]
    if not request.get("tools") and any(b["type"] in ("tool_use", "tool_result") for b in blocks):
        yield "Requests which include `tool_use` or `tool_result` blocks must define tools"
    system = request.get("system")
    everything = [*blocks, *request.get("tools", ()), *(system if isinstance(system, list) else ())]
    marks = sum("cache_control" in block for block in everything)
    if marks > MAX_MARKS:
        yield f"A maximum of {MAX_MARKS} blocks with cache_control may be provided. Found {marks}."
