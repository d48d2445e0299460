"""What single chat servers refuse beyond `goalmode.model.lint`, in words like their own. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from goalmode.model.wire.openai_dialects import SHORT_ID


def lint_mistral(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every violation of Mistral's rules."""
    return [*_ids(messages), *_roles(messages)]


def lint_reasoning(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every violation of DeepSeek's and Kimi's rules for thinking."""
    return [
        f"Missing `reasoning_content` field in the assistant message at message index {n}"
        for n, message in enumerate(messages)
        if message.get("tool_calls") and not isinstance(message.get("reasoning_content"), str)
    ]


def _ids(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for message in messages:
        ids = [call["id"] for call in message.get("tool_calls") or ()]
        if message["role"] == "tool":
            ids.append(message["tool_call_id"])
        for id_ in ids:
            if not SHORT_ID.fullmatch(id_):
                yield f"Tool call id was {id_} but must be a-z, A-Z, 0-9, with a length of 9."


def _roles(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for one, other in itertools.pairwise(message["role"] for message in messages):
        if (one, other) == ("tool", "user"):
            yield "Unexpected role 'user' after role 'tool'"
