"""What a wakeup says in the program's log: its events. And whose everything is that is logged while it runs."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from goalmode.domain.exits import EXIT_FACTS, ExitReason, GoalStatus
from goalmode.loop.ports import Event, Sink

LOGGER = "goalmode.wakeup"

_goal: ContextVar[str | None] = ContextVar("goal", default=None)
_wakeup: ContextVar[int | None] = ContextVar("wakeup", default=None)

_log = logging.getLogger(LOGGER)
# Without a handler Python prints warnings on stderr. The program's own handlers still get them.
_log.addHandler(logging.NullHandler())

_WORTH_A_LOOK = frozenset({"wakeup_started", "context_rerendered", "settling", "settled"})


class WithIds(logging.Filter):
    """Gives each record `goal` and `wakeup`: those that it was logged for, None outside of any."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.goal, record.wakeup = _goal.get(), _wakeup.get()
        return True


@contextmanager
def logging_for(goal: str, wakeup: int) -> Iterator[None]:
    """What is logged in this block, also by libraries and in the threads that it starts, is of this wakeup."""
    before = _goal.set(goal), _wakeup.set(wakeup)
    try:
        yield
    finally:
        _goal.reset(before[0])
        _wakeup.reset(before[1])


def logged(sink: Sink) -> Sink:
    """`sink`, and a record of each event: what it is as the message, its data as the record's `data`."""

    def both(event: Event) -> None:
        level = _level(event)
        if _log.isEnabledFor(level):
            _log.log(level, event.kind, extra={"data": dict(event.data)})
        sink(event)

    return both


def _level(event: Event) -> int:
    if event.kind != "wakeup_closed":
        return logging.INFO if event.kind in _WORTH_A_LOOK else logging.DEBUG
    reason = ExitReason(event.data["exit_reason"])
    facts = EXIT_FACTS[reason]
    if reason is ExitReason.ENGINE_ERROR:
        return logging.ERROR
    cut_off = reason in (ExitReason.BACKEND_ERROR, ExitReason.INTERRUPTED)
    return logging.WARNING if cut_off or facts.counts or facts.status is GoalStatus.BLOCKED else logging.INFO
