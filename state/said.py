"""What was said in a wakeup, between messages and the JSON in which the journal keeps them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from goalmode.domain.messages import Assistant, Message, Reply, System, ToolCall, ToolResult, User
from goalmode.errors import StoreUnreadable
from goalmode.state import mapping

_Kind = TypeVar("_Kind", dict[str, Any], list[Any])


def reply_to_json(reply: Reply | Assistant) -> dict[str, Any]:
    calls = [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in reply.calls]
    return {"v": mapping.VERSION, "text": reply.text, "calls": calls}


def reply_from_json(stored: str) -> Assistant:
    """A stored reply as a message; what a provider wanted back untouched is not kept beyond its wakeup.

    Raises:
        StoreUnreadable: it has a shape we do not know.
    """
    value = _stored(stored, dict, {})
    [text] = _texts({"text": "", **value}, "text")
    calls = (_texts(call, "id", "name", "arguments") for call in _objects(value.get("calls", [])))
    return Assistant(text, tuple(ToolCall(*call) for call in calls))


def messages_to_json(messages: Sequence[Message]) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = []
    for message in messages:
        match message:
            case ToolResult():
                rows.append(
                    {"role": "tool", "id": message.call_id, "name": message.name, "text": message.text}
                )
            case Assistant():
                raise TypeError("a reply is stored by its intent")
            case User() | System():
                rows.append({"role": "user", "text": message.text})
    return rows


def messages_from_json(stored: str) -> tuple[Message, ...]:
    """What followed a stored reply: results and prompts.

    Raises:
        StoreUnreadable: it has a shape we do not know.
    """
    return tuple(
        ToolResult(*_texts(row, "id", "name", "text"))
        if row.get("role") == "tool"
        else User(*_texts(row, "text"))
        for row in _objects(_stored(stored, list, []))
    )


def _stored(stored: str, kind: type[_Kind], empty: _Kind) -> _Kind:
    try:
        value = json.loads(stored) if stored else empty
    except (ValueError, RecursionError) as error:
        raise StoreUnreadable(f"stored messages are no JSON: {error}") from None
    if not isinstance(value, kind):
        raise StoreUnreadable(f"stored messages are {_start(value)}, another shape was expected")
    return value


def _objects(value: object) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(row, dict) for row in value):
        raise StoreUnreadable(f"stored messages are {_start(value)}, a list of objects was expected")
    return value


def _texts(row: Mapping[str, Any], *names: str) -> list[str]:
    for name in names:
        if not isinstance(row.get(name), str):
            raise StoreUnreadable(
                f"a stored message's {name} is {_start(row.get(name))}, a text was expected"
            )
    return [row[name] for name in names]


def _start(value: object) -> str:
    return repr(value)[:80]
