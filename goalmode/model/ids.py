"""Unique ids for tool calls: models leave them out, repeat them in one reply, and use them again in later ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from goalmode.domain.messages import Assistant, Message, ToolCall

_USABLE = re.compile(r"[!-~]{1,256}")
"""Visible ASCII without blanks: what every wire format can carry."""


def used_ids(messages: Iterable[Message]) -> set[str]:
    """The ids of all calls in a conversation."""
    return {call.id for message in messages if isinstance(message, Assistant) for call in message.calls}


def with_unique_ids(calls: Sequence[ToolCall], used: Iterable[str]) -> tuple[ToolCall, ...]:
    """The calls in order, each under an id of its own: the provider's where it is usable and new, else `call_N`."""
    taken = set(used)
    reserved = taken | {call.id for call in calls}
    named: list[ToolCall] = []
    number = len(taken)
    for call in calls:
        new = call.id
        if not _USABLE.fullmatch(new) or new in taken:
            number += 1
            while (new := f"call_{number}") in reserved:
                number += 1
            reserved.add(new)
        taken.add(new)
        named.append(call if new == call.id else replace(call, id=new))
    return tuple(named)
