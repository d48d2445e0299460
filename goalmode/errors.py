"""Every error of the package, and who erred.

GoalmodeError
 ├─ BadInput             you: a value you gave is wrong (exit code 2)
 ├─ BadDocument          you: a file you gave is wrong in one or more places (exit code 2)
 ├─ ConfigError          you: `goalmode.toml` is wrong (exit code 2)
 ├─ UnknownGoal          you: no such goal, or a prefix of several
 ├─ NotAllowed           you: the goal's status does not allow this command
 ├─ TemplateError        a prompt template is broken
 ├─ ContextDoesNotFit    you: the goal's budget for a context is too small for what must be in it
 ├─ ModelError           the provider: `kind` says what it means
 ├─ ToolError            the model: an answer for it, never the end of a wakeup
 └─ StoreError           the store: it cannot be opened, read or written
     ├─ StoreBusy        another process holds it
     ├─ StoreNewer       it was written by a newer goalmode
     └─ StoreUnreadable  one goal's rows have a shape we do not know

Endings are not errors: see `goalmode.domain.exits`. `Fenced` and `Stopped` derive from BaseException, so that no
tool's `except Exception` swallows them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from goalmode.domain.exits import Exit
from goalmode.domain.messages import Usage
from goalmode.domain.signals import ErrorKind


class GoalmodeError(Exception):
    """Base of all errors that are told in one line. `exit_code` is the CLI's."""

    exit_code = 1


class BadInput(GoalmodeError):
    """A value is wrong. The message names the field, the value and what would be right."""

    exit_code = 2

    def __init__(self, field: str, value: object, expected: str) -> None:
        self.field, self.value, self.expected = field, value, expected
        shown = value if isinstance(value, str) else repr(value)
        if len(shown) > 80:
            shown = f"{shown[:77]}…"
        super().__init__(f"{field}: {shown!r} is not valid: {expected}")


class BadDocument(GoalmodeError):
    """A file is wrong. `faults` name the places, the values and what would be right, one line each."""

    exit_code = 2

    def __init__(self, faults: Sequence[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(self.faults))


class ConfigError(GoalmodeError):
    exit_code = 2


class UnknownGoal(GoalmodeError):
    pass


class NotAllowed(GoalmodeError):
    pass


class TemplateError(GoalmodeError):
    pass


class ContextDoesNotFit(GoalmodeError):
    """Not even what must be in a context fits. `needed` and `budget` are tokens."""

    def __init__(self, needed: int, budget: int) -> None:
        self.needed, self.budget = needed, budget
        super().__init__(f"the context needs at least {needed} tokens, its budget is {budget}")

    @property
    def facts(self) -> dict[str, object]:
        return {"limit": "context_tokens", "value": self.budget, "used": self.needed}


class ToolError(GoalmodeError):
    """The message is for the model."""


class ModelError(GoalmodeError):
    """A model call failed.

    Attributes:
        kind: what it means; decides retry, exit reason and whether the goal is blocked.
        status: HTTP status, None if there was none (200 is possible: errors arrive in bodies and mid-stream).
        retry_after: seconds the provider asked to wait at least.
        reset_at: when a spent quota is known to be there again, aware UTC.
        usage: what the failed attempt cost once its response stream had begun, else None.
    """

    exit_code = 20

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        status: int | None = None,
        raw_type: str | None = None,
        retry_after: float | None = None,
        reset_at: datetime | None = None,
        usage: Usage | None = None,
        should_retry: bool | None = None,
    ) -> None:
        self.kind, self.message, self.status, self.raw_type = kind, message, status, raw_type
        self.retry_after, self.reset_at, self.usage, self.should_retry = (
            retry_after,
            reset_at,
            usage,
            should_retry,
        )
        head = kind.value if status is None else f"{kind.value} (HTTP {status})"
        super().__init__(f"{head}: {message}" if message else head)


def charge(cancelled: BaseException, usage: Usage) -> None:
    """Note on a cancellation what the model call that it ends has cost: its response stream had begun."""
    cancelled.goalmode_usage = usage  # type: ignore[attr-defined]


def charged(cancelled: BaseException) -> Usage | None:
    """What a cancelled model call has cost, None if it cost nothing."""
    usage = getattr(cancelled, "goalmode_usage", None)
    return usage if isinstance(usage, Usage) else None


class StoreError(GoalmodeError):
    pass


class StoreBusy(StoreError):
    pass


class StoreNewer(StoreError):
    pass


class StoreUnreadable(StoreError):
    pass


class Fenced(BaseException):
    """Another owner has the goal: nothing this wakeup still wants to write may be written."""


class Stopped(BaseException):
    """The wakeup ends here and now for the reason in `exit`."""

    def __init__(self, exit: Exit) -> None:
        self.exit = exit
        super().__init__(exit.reason.value)
