"""How an Anthropic message ended: the words of `stop_reason`, and what they mean.

Words of other providers reach us through gateways that speak this format. They are heard when they say that something
went wrong, never when they say that all is well; any other word is UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from goalmode.domain.signals import StopReason
from goalmode.model.wire.assembly import string
from goalmode.model.wire.openai_stop import ALARMS

_S = StopReason

STOPS: Mapping[str, StopReason] = MappingProxyType(
    {
        "end_turn": _S.END_TURN,
        "max_tokens": _S.MAX_TOKENS,
        "stop_sequence": _S.STOP_SEQUENCE,
        "tool_use": _S.TOOL_USE,
        # The loop of the provider's own tools has reached its limit: the turn goes on when it is sent back unchanged.
        "pause_turn": _S.PAUSE,
        "compaction": _S.PAUSE,
        "refusal": _S.REFUSAL,
        "model_context_window_exceeded": _S.CONTEXT_OVERFLOW,
    }
)


def read(raw: str | None) -> StopReason:
    """The meaning of `stop_reason`, before the content is looked at."""
    if not raw:
        return _S.MISSING
    return STOPS.get(raw) or ALARMS.get(raw.lower(), _S.UNKNOWN)


def detail(stop_details: object) -> str:
    """Category and explanation of a refusal in one text, empty where there are none."""
    if not isinstance(stop_details, dict):
        return ""
    said = (string(stop_details.get("category")), string(stop_details.get("explanation")))
    return ": ".join(part for part in said if part)
