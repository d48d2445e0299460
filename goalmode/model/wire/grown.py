"""A conversation as JSON, of which only what is new is encoded: it is sent again with every turn, longer each time."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from goalmode.domain.messages import Assistant, Message, System, ToolResult, ToolSpec, User
from goalmode.model import strict_json

Translate = Callable[[Sequence[Message]], Sequence[Any]]


class Grown:
    """What was sent last of one conversation. A conversation that began anew is encoded as a whole.

    Args:
        translate: gives a conversation as the format's messages.
        offer: gives tools as the format wants them.
        by_parts: whether it gives the same of its parts, one after the other, but that users' messages in a row may
            become one.
    """

    def __init__(
        self, translate: Translate, offer: Callable[[Sequence[ToolSpec]], Sequence[Any]], *, by_parts: bool
    ) -> None:
        self._translate, self._offer, self._by_parts = translate, offer, by_parts
        self._offered: Sequence[ToolSpec] = ()
        self._tools = b""
        self._known: Sequence[Message] = ()
        self._encoded = b""

    def items(self, conversation: Sequence[Message]) -> bytes:
        """The messages as the items of a JSON array, without its brackets."""
        if not self._by_parts:
            return _joined(b"", self._translate(conversation))
        known = len(self._known)
        if known > len(conversation) or not all(map(operator.is_, self._known, conversation)):
            known, self._encoded = 0, b""
        end = _end(conversation)
        if end > known:
            self._encoded = _joined(self._encoded, self._translate(conversation[known:end]))
            known, self._known = end, conversation[:end]
        return _joined(self._encoded, self._translate(conversation[known:]))

    def tools(self, specs: Sequence[ToolSpec]) -> bytes:
        """The tools as the items of a JSON array: at most calls those of the call before."""
        if len(specs) != len(self._offered) or not all(map(operator.is_, specs, self._offered)):
            self._offered, self._tools = specs, _joined(b"", self._offer(specs))
        return self._tools


def _end(conversation: Sequence[Message]) -> int:
    """How many messages come before the part that another user's message could still be added to."""
    for place in range(len(conversation), 0, -1):
        match conversation[place - 1]:
            case User():
                continue
            case Assistant(text=text, calls=calls) if not calls and not text.strip():
                continue  # Not sent by formats that refuse it, so that two users' messages meet.
            case Assistant() | System() | ToolResult():
                return place
    return 0


def _joined(before: bytes, messages: Sequence[Any]) -> bytes:
    new = b",".join(map(strict_json.encoded, messages))
    return b",".join(part for part in (before, new) if part)
