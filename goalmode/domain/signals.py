"""How a model call ends: the closed list of stop reasons and the kinds of provider errors.

The tables that map each provider's own words to these live beside the wire formats (`goalmode.model.wire`).
"""

from __future__ import annotations

from enum import StrEnum

from goalmode.domain.exits import ExitReason


class StopReason(StrEnum):
    """Why the model stopped. The stored words are the members' values and never change."""

    TOOL_USE = "TOOL_USE"
    END_TURN = "END_TURN"
    STOP_SEQUENCE = "STOP_SEQUENCE"
    PAUSE = "PAUSE"
    MAX_TOKENS = "MAX_TOKENS"
    CONTEXT_OVERFLOW = "CONTEXT_OVERFLOW"
    REFUSAL = "REFUSAL"
    CONTENT_FILTER = "CONTENT_FILTER"
    MALFORMED_TOOL_CALL = "MALFORMED_TOOL_CALL"
    PROVIDER_ERROR = "PROVIDER_ERROR"
    CANCELLED = "CANCELLED"
    MISSING = "MISSING"
    """The stream ended without a reason: it was cut."""
    UNKNOWN = "UNKNOWN"
    """A word we do not know. Fails closed; the raw value is kept."""


class ErrorKind(StrEnum):
    """What a failed request means, read from the error's type and code before its HTTP status."""

    RATE_LIMIT = "RATE_LIMIT"
    OVERLOADED = "OVERLOADED"
    SERVER = "SERVER"
    TIMEOUT = "TIMEOUT"
    CONNECTION = "CONNECTION"
    STREAM_CUT = "STREAM_CUT"
    QUOTA = "QUOTA"
    AUTH = "AUTH"
    PERMISSION = "PERMISSION"
    NOT_FOUND = "NOT_FOUND"
    BAD_REQUEST = "BAD_REQUEST"
    POLICY = "POLICY"
    CONTEXT_OVERFLOW = "CONTEXT_OVERFLOW"
    REQUEST_TOO_LARGE = "REQUEST_TOO_LARGE"
    PROTOCOL = "PROTOCOL"
    SIGNATURE = "SIGNATURE"
    UNKNOWN = "UNKNOWN"


TRANSIENT = frozenset(
    {
        ErrorKind.RATE_LIMIT,
        ErrorKind.OVERLOADED,
        ErrorKind.SERVER,
        ErrorKind.TIMEOUT,
        ErrorKind.CONNECTION,
        ErrorKind.STREAM_CUT,
    }
)
"""Kinds worth asking again within one turn."""

BLOCKING = frozenset(
    {
        ErrorKind.AUTH,
        ErrorKind.PERMISSION,
        ErrorKind.NOT_FOUND,
        ErrorKind.BAD_REQUEST,
        ErrorKind.PROTOCOL,
        ErrorKind.SIGNATURE,
    }
)
"""Kinds that no waiting cures: the goal is blocked until a person changes something."""


def exit_for_error(kind: ErrorKind) -> ExitReason:
    """The exit reason of a wakeup whose model call failed for good with `kind`."""
    match kind:
        case ErrorKind.POLICY:
            return ExitReason.MODEL_REFUSED
        case ErrorKind.CONTEXT_OVERFLOW | ErrorKind.REQUEST_TOO_LARGE:
            return ExitReason.CONTEXT_OVERFLOW
        case _:
            return ExitReason.BACKEND_ERROR
