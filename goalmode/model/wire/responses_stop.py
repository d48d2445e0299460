"""How an OpenAI response ended: its `status`, the reason of an incomplete one, and what they mean.

A failed response names an error, which is then the call's error (`goalmode.model.classify` knows its codes).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from goalmode.domain.signals import StopReason
from goalmode.model.wire.openai_stop import reconcile as reconcile_chat

_S = StopReason

PENDING = frozenset({"queued", "in_progress"})
"""Not the end yet: it is asked for again, and nothing that it holds so far is whole."""

STATUS: Mapping[str, StopReason] = MappingProxyType(
    {
        "completed": _S.END_TURN,
        "failed": _S.PROVIDER_ERROR,
        "cancelled": _S.CANCELLED,
        **dict.fromkeys(PENDING, _S.PAUSE),
    }
)
"""`incomplete` is read by its reason."""

INCOMPLETE: Mapping[str, StopReason] = MappingProxyType(
    {
        "max_output_tokens": _S.MAX_TOKENS,
        "max_messages": _S.MAX_TOKENS,
        "content_filter": _S.CONTENT_FILTER,
        # A successor follows.
        "steered": _S.PAUSE,
    }
)

_WHOLE = frozenset({_S.END_TURN, _S.TOOL_USE, _S.STOP_SEQUENCE, _S.PAUSE})


def word(status: str | None, reason: str | None) -> str | None:
    """Status and reason as one word, to be kept."""
    return f"{status}/{reason}" if status == "incomplete" and reason else status or None


def read(status: str | None, reason: str | None) -> StopReason:
    """The meaning of a response's status, before its items are looked at."""
    if not status:
        return _S.MISSING
    if status == "incomplete":
        return INCOMPLETE.get(reason, _S.UNKNOWN) if reason else _S.MISSING
    return STATUS.get(status, _S.UNKNOWN)


def reconcile(stop: StopReason, *, calls: int, cut_calls: int, refused: bool) -> StopReason:
    """The ending, once word and items are compared.

    Args:
        calls: how many function calls the response holds, whole or not.
        cut_calls: how many of them were never completed; such a reply was cut, whatever its status.
        refused: whether a message holds a refusal.
    """
    if cut_calls and stop in _WHOLE and not refused:
        return _S.MAX_TOKENS
    return reconcile_chat(stop, calls=calls, refused=refused, output_tokens=None, max_output=0)
