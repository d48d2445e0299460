"""WIRE-VALID, written down once more and without the package's own lint: what any strict provider accepts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_UNSENDABLE = re.compile("[\x00\ud800-\udfff]")
_SUSPECT = re.compile(rb"u0000|u[dD][89a-fA-F]")
"""Without one of these escapes strict JSON in strict UTF-8 can hold neither NUL nor surrogate."""


def violations(raw: bytes) -> list[str]:
    """Everything that a strict provider would refuse in one request's body; empty if nothing."""
    try:
        body = json.loads(raw.decode("utf-8", "strict"), parse_constant=_no_constant)
    except ValueError as error:
        return [f"not strict UTF-8 and JSON: {error}"]
    messages = body["messages"]
    dirty = _unsendable(body, "body") if _SUSPECT.search(raw) else ()
    return [*dirty, *_pairs(messages), *_shapes(messages), *_opening(messages)]


def _unsendable(value: Any, at: str) -> Iterator[str]:
    if isinstance(value, str):
        if _UNSENDABLE.search(value):
            yield f"{at}: NUL or lone surrogate"
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _unsendable(key, at)
            yield from _unsendable(item, f"{at}.{key}")
    elif isinstance(value, Sequence):
        for number, item in enumerate(value):
            yield from _unsendable(item, f"{at}[{number}]")


def _pairs(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Each call is followed, before any other role, by exactly one result; no result stands alone; ids are unique."""
    waiting: list[str] = []
    ever: set[str] = set()
    for number, message in enumerate([*messages, {"role": "end"}]):
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                yield f"messages[{number}]: a result without its call, or a second one"
            else:
                waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            yield f"messages[{number}]: calls without a result: {waiting}"
        waiting = [call["id"] for call in message.get("tool_calls") or ()]
        if len(set(waiting)) != len(waiting) or ever & set(waiting):
            yield f"messages[{number}]: ids of calls are used twice"
        ever |= set(waiting)


def _shapes(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for number, message in enumerate(messages):
        calls = message.get("tool_calls")
        if message["role"] == "assistant" and not message.get("content") and not calls:
            yield f"messages[{number}]: an assistant message with neither text nor calls"
        if calls == []:
            yield f"messages[{number}]: an empty list of calls"
        for call in calls or ():
            function = call["function"]
            if not NAME.fullmatch(function["name"]):
                yield f"messages[{number}]: the name {function['name']!r}"
            yield from _arguments(function["arguments"], f"messages[{number}].arguments")


def _arguments(text: Any, at: str) -> Iterator[str]:
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except (TypeError, ValueError):
        value = None
    if not isinstance(value, dict):
        yield f"{at}: no string that holds a JSON object"
    elif "\\u" in text:
        yield from _unsendable(value, at)


def _opening(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    roles = [m["role"] for m in messages]
    later = [role for role in roles if role != "system"]
    if later[:1] != ["user"]:
        yield "the first message after the system part is not the user's"
    if any(a == b == "user" for a, b in pairwise(roles)):
        yield "two user messages in a row"


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is no JSON")
