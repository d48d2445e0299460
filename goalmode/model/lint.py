"""What a strict OpenAI chat server refuses about a conversation, in words like its own. Pure.

The scripted model and the stub provider hold every request to it, so that no test passes on a conversation that a real
provider would refuse.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from goalmode.model import strict_json

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})
_PRELUDE = frozenset({"system", "developer"})
_UNSENDABLE = re.compile("[\x00\ud800-\udfff]")
_SUSPECT = re.compile(r"[\ud800-\udfff]|\\u0000")

Wire = Mapping[str, Any]


def lint(messages: Sequence[Any], tools: Sequence[Any] = ()) -> list[str]:
    """Every violation, the first in the conversation first; empty for a request that may be sent."""
    if not messages:
        return ["[] is too short - 'messages'"]
    for n, message in enumerate(messages):
        if not isinstance(message, Mapping) or message.get("role") not in _ROLES:
            return [f"messages[{n}]: an object with a known 'role' is expected"]
    found = [v for n, message in enumerate(messages) for v in _message(n, message)]
    return [*found, *_order(messages), *_pairs(messages), *_tools(tools)]


def _message(n: int, message: Wire) -> Iterator[str]:
    at = f"messages[{n}]"
    if (text := unsendable(message)) is not None:
        yield f"{at}: {text}"
    content, calls = message.get("content"), message.get("tool_calls")
    if not isinstance(content, str | list | None):
        yield f"Invalid type for '{at}.content': expected a string or an array"
    match message["role"]:
        case "assistant":
            if calls is not None and not (isinstance(calls, list) and calls):
                yield f"Invalid '{at}.tool_calls': empty array. Expected an array with minimum length 1"
            if not content and not calls:
                yield f"Invalid assistant message: content or tool_calls must be set ({at})"
            for k, call in enumerate(calls if isinstance(calls, list) else ()):
                yield from _call(f"{at}.tool_calls[{k}]", call)
        case "tool":
            if not isinstance(message.get("tool_call_id"), str) or content is None:
                yield f"Missing required parameter: '{at}.tool_call_id' or '{at}.content'"
        case _ if content is None:
            yield f"Invalid value for '{at}.content': expected a string, got null"


def _call(at: str, call: object) -> Iterator[str]:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(call, Mapping) or not isinstance(function, Mapping) or call.get("type") != "function":
        yield f"Invalid value: '{at}': a call of type 'function' is expected"
        return
    if not isinstance(call.get("id"), str) or not call["id"]:
        yield f"Missing required parameter: '{at}.id'"
    name, arguments = function.get("name"), function.get("arguments")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield f"Invalid '{at}.function.name': string does not match pattern. Expected '^[a-zA-Z0-9_-]{{1,64}}$'"
    value = _parsed(arguments)
    if not isinstance(value, dict):
        yield f"Invalid '{at}.function.arguments': a string that holds a JSON object is expected"
    elif (said := unsendable(value)) is not None:
        yield f"Invalid '{at}.function.arguments': {said}"


def _parsed(arguments: object) -> Any:
    try:
        return strict_json.loads(arguments) if isinstance(arguments, str) else None
    except ValueError:
        return None


def _order(messages: Sequence[Wire]) -> Iterator[str]:
    roles = [m["role"] for m in messages]
    first = next((n for n, role in enumerate(roles) if role not in _PRELUDE), None)
    if first is None or roles[first] != "user":
        yield "the first message after the system part must be from the user"
    for n in range(1, len(roles)):
        if roles[n] == roles[n - 1] == "user":
            yield f"roles must alternate: messages[{n - 1}] and messages[{n}] are both from the user"


def _pairs(messages: Sequence[Wire]) -> Iterator[str]:
    """Each call answered once, directly after its message; no answer without a call; no id used twice."""
    seen: Counter[str] = Counter()
    open_ids: list[str] = []
    answered: dict[str, int] = {}
    for n, message in enumerate([*messages, {"role": "end"}]):
        if message["role"] == "tool":
            id_ = str(message.get("tool_call_id"))
            if id_ in open_ids:
                open_ids.remove(id_)
                answered[id_] = n
            elif id_ in answered:
                first = answered[id_]
                yield (
                    f"Duplicate value for 'tool_call_id' of '{id_}', in messages[{first}] and messages[{n}]"
                )
            else:
                yield (
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding "
                    f"message with 'tool_calls' (messages[{n}])"
                )
            continue
        if open_ids:
            yield (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                "'tool_call_id'. The following tool_call_ids did not have response messages: "
                + ", ".join(open_ids)
            )
        ids = [
            str(c["id"]) for c in message.get("tool_calls") or () if isinstance(c, Mapping) and c.get("id")
        ]
        open_ids, answered = list(ids), {}
        for id_ in ids:
            seen[id_] += 1
            if seen[id_] == 2:
                yield f"Duplicate value for 'id' of '{id_}' in 'tool_calls' (messages[{n}])"


def _tools(tools: Sequence[Any]) -> Iterator[str]:
    names: Counter[str] = Counter()
    for n, tool in enumerate(tools):
        function = tool.get("function") if isinstance(tool, Mapping) else None
        name = function.get("name") if isinstance(function, Mapping) else None
        if not isinstance(name, str) or not NAME.fullmatch(name):
            yield f"Invalid 'tools[{n}].function.name': Expected '^[a-zA-Z0-9_-]{{1,64}}$'"
            continue
        names[name] += 1
        if names[name] == 2:
            yield f"tools[{n}]: Tool names must be unique ('{name}')"
        parameters = function.get("parameters") if isinstance(function, Mapping) else None
        if parameters is not None and not isinstance(parameters, Mapping):
            yield f"Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"'"


def unsendable(value: object) -> str | None:
    """What is wrong with the strings inside `value`, None if nothing is."""
    # Most conversations hold nothing of the kind: that is seen at once in their JSON, and only else is it looked for.
    suspect = _SUSPECT.search(json.dumps(value, ensure_ascii=False))
    return None if suspect is None else _found_in(value)


def _found_in(value: object) -> str | None:
    match value:
        case str():
            found = _UNSENDABLE.search(value)
            if found is None:
                return None
            return "NUL in a string" if found.group() == "\x00" else "lone surrogate in a string"
        case Mapping():
            parts = [*value.keys(), *value.values()]
        case list() | tuple():
            parts = list(value)
        case _:
            return None
    return next((said for part in parts if (said := _found_in(part)) is not None), None)
