"""What a strict OpenAI Responses server refuses about a request, in words like its own. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from goalmode.model.lint import NAME, unsendable
from goalmode.model.strict_json import json_object

Item = Mapping[str, Any]

_ROLES = frozenset({"system", "developer", "user", "assistant"})
_PRELUDE = frozenset({"system", "developer"})
_ID_PREFIXES = {"function_call": "fc", "reasoning": "rs", "message": "msg"}
_PARTS = {"assistant": ("output_text", "refusal")}
MAX_ID = 64


def lint(
    items: Sequence[Any], tools: Sequence[Any] = (), *, thought: Mapping[str, str] | None = None
) -> list[str]:
    """Every violation; empty for a request that may be sent.

    Args:
        items: the request's `input`.
        thought: which reasoning item the server made each of its other items after, by id.
    """
    if not items:
        return ["Invalid 'input': empty array. Expected an array with minimum length 1"]
    for n, item in enumerate(items):
        if not isinstance(item, Mapping):
            return [f"Invalid type for 'input[{n}]': expected an object"]
    found = [said for n, item in enumerate(items) for said in _item(f"input[{n}]", item)]
    return [*found, *_order(items), *_pairs(items), *_reasoning(items, thought or {}), *_tools(tools)]


def _item(at: str, item: Item) -> Iterator[str]:
    if (said := unsendable(item)) is not None:
        yield f"{at}: {said}"
    kind = item.get("type", "message")
    if (id_ := item.get("id")) is not None and (prefix := _ID_PREFIXES.get(kind)) is not None:
        if not isinstance(id_, str) or not id_.startswith(prefix):
            yield f"Invalid '{at}.id': '{id_}'. Expected an ID that begins with '{prefix}'."
        elif len(id_) > MAX_ID:
            yield f"Invalid '{at}.id': string too long. Expected a string with maximum length {MAX_ID}"
    match kind:
        case "message":
            yield from _message(at, item)
        case "function_call":
            yield from _call(at, item)
        case "function_call_output":
            if not isinstance(item.get("call_id"), str) or not item["call_id"]:
                yield f"Missing required parameter: '{at}.call_id'."
            if not isinstance(item.get("output"), str | list):
                yield f"Missing required parameter: '{at}.output'."
        case "reasoning":
            yield from _thought(at, item)
        case _:
            yield f"Invalid value: '{kind}'. ({at}.type)"


def _message(at: str, item: Item) -> Iterator[str]:
    role, content = item.get("role"), item.get("content")
    if role not in _ROLES:
        yield f"Invalid value: '{role}'. Supported values are: {', '.join(sorted(_ROLES))}. ({at}.role)"
    if isinstance(content, list):
        allowed = _PARTS.get(str(role), ("input_text", "input_image", "input_file"))
        for k, part in enumerate(content):
            kind = part.get("type") if isinstance(part, Mapping) else None
            if kind not in allowed:
                supported = " and ".join(f"'{word}'" for word in allowed)
                yield f"Invalid value: '{kind}'. Supported values are: {supported}. ({at}.content[{k}])"
            elif kind in ("input_text", "output_text") and not isinstance(part.get("text"), str):
                yield f"Missing required parameter: '{at}.content[{k}].text'."
    elif not isinstance(content, str):
        yield f"Invalid type for '{at}.content': expected a string or an array"
    if not content:
        yield f"Invalid '{at}.content': empty"


def _call(at: str, item: Item) -> Iterator[str]:
    call_id, name, arguments = item.get("call_id"), item.get("name"), item.get("arguments")
    if not isinstance(call_id, str) or not call_id:
        yield f"Missing required parameter: '{at}.call_id'."
    elif len(call_id) > MAX_ID:
        yield f"Invalid '{at}.call_id': string too long. Expected a string with maximum length {MAX_ID}"
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield f"Invalid '{at}.name': string does not match pattern. Expected '^[a-zA-Z0-9_-]{{1,64}}$'"
    if not isinstance(arguments, str) or json_object(arguments) != arguments:
        yield f"Invalid '{at}.arguments': a string that holds a JSON object is expected"
    if item.get("status", "completed") != "completed":
        yield f"Invalid '{at}.status': a call that was never completed"


def _thought(at: str, item: Item) -> Iterator[str]:
    if not isinstance(item.get("id"), str):
        yield f"Missing required parameter: '{at}.id'."
    if not isinstance(item.get("summary"), list):
        yield f"Missing required parameter: '{at}.summary'."
    if not isinstance(item.get("encrypted_content"), str) or not item["encrypted_content"]:
        yield (
            f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` is set to false. "
            "Try again with `store` set to true, or remove this item from your input."
        )


def _order(items: Sequence[Item]) -> Iterator[str]:
    first = next((item for item in items if item.get("role") not in _PRELUDE), None)
    if first is None or first.get("role") != "user":
        yield "the first item after the system part must be a message from the user"
    ids = Counter(str(item["id"]) for item in items if item.get("id") is not None)
    for id_ in (id_ for id_, times in ids.items() if times > 1):
        yield f"Duplicate item found with id {id_}. Remove duplicate items from your input and try again."


def _pairs(items: Sequence[Item]) -> Iterator[str]:
    """Each call answered once, by the items directly after the calls of its turn; no call id used twice."""
    seen: Counter[str] = Counter()
    open_ids: list[str] = []
    answering = False
    for item in [*items, {"type": "end"}]:
        kind, call_id = item.get("type", "message"), str(item.get("call_id"))
        if kind == "function_call_output":
            answering = True
            if call_id in open_ids:
                open_ids.remove(call_id)
            else:
                yield f"No tool call found for function call output with call_id {call_id}."
            continue
        if open_ids and (answering or kind != "function_call"):
            # OpenAI itself finds an output anywhere; DeepSeek's server does not, and the wording is the same.
            yield from (f"No tool output found for function call {open_id}." for open_id in open_ids)
            open_ids = []
        answering = False
        if kind == "function_call":
            open_ids.append(call_id)
            seen[call_id] += 1
            if seen[call_id] == 2:
                yield f"Duplicate value for 'call_id' of '{call_id}'"


def _reasoning(items: Sequence[Item], thought: Mapping[str, str]) -> Iterator[str]:
    before: set[str] = set()
    for item, following in zip(items, [*items[1:], {}], strict=True):
        kind, id_ = item.get("type", "message"), str(item.get("id"))
        if kind == "reasoning":
            before.add(id_)
            next_kind = following.get("type", "message") if following else None
            said_by_model = next_kind != "message" or following.get("role") == "assistant"
            if next_kind not in ("reasoning", "function_call", "message") or not said_by_model:
                yield f"Item '{id_}' of type 'reasoning' was provided without its required following item."
        elif (needed := thought.get(id_)) is not None and needed not in before:
            yield (
                f"Item '{id_}' of type '{kind}' was provided without its required 'reasoning' item: '{needed}'."
            )


def _tools(tools: Sequence[Any]) -> Iterator[str]:
    names: Counter[str] = Counter()
    for n, tool in enumerate(tools):
        name = tool.get("name") if isinstance(tool, Mapping) else None
        if not isinstance(name, str) or not NAME.fullmatch(name):
            yield f"Missing required parameter: 'tools[{n}].name'."
            continue
        names[name] += 1
        if names[name] == 2:
            yield f"tools[{n}]: Tool names must be unique ('{name}')"
        if tool.get("type") != "function":
            yield f"Invalid value: '{tool.get('type')}'. (tools[{n}].type)"
        if "strict" not in tool or not isinstance(tool.get("parameters"), Mapping | None):
            yield f"Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"'"
