"""Waking one goal again and again until there is nothing more to do for it: what `goalmode run` does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from goalmode.domain.exits import Exit, ExitReason, GoalStatus, SkipReason
from goalmode.loop.ports import Event, Sink
from goalmode.orchestrator.skip import Skip
from goalmode.state import goals
from goalmode.state.store import Store

POLL_SECONDS = 1.0
"""How often a waiting run looks whether the goal has become due, was stopped, or was woken by somebody else."""

MAX_WAIT_SECONDS = 3600.0

Ending = Exit | Skip


async def run_goal(
    store: Store,
    goal_id: int,
    wake_once: Callable[[], Awaitable[Ending]],
    *,
    max_wait_seconds: float = MAX_WAIT_SECONDS,
    sink: Sink,
    stop: Callable[[], Exit | None],
) -> Ending:
    """Wake the goal until it is done, waiting, blocked or spent; back-offs and defaults' deadlines are waited out.

    Returns the last wakeup's ending; a Skip if there was none, or if the next wakeup is further away than
    `max_wait_seconds`.
    """
    last: Exit | None = None
    told: Skip | None = None
    while True:
        ending = await wake_once()
        match ending:
            case Skip(SkipReason.NOT_DUE | SkipReason.WAITING, _, due) if due is not None:
                left = (due - store.clock.now()).total_seconds()
                if left > max_wait_seconds or stop() is not None:
                    return last or ending
                if ending != told:
                    told = ending
                    sink(
                        Event(
                            "waiting",
                            {"seconds": round(left, 1), "until": due.isoformat(), "why": ending.detail},
                        )
                    )
                await store.clock.sleep(min(max(left, 0.0), POLL_SECONDS))
            case Skip(SkipReason.SUPERSEDED):
                await store.clock.sleep(POLL_SECONDS)
            case Skip():
                return last or ending
            case Exit():
                last = ending
                if _is_over(store, goal_id, ending):
                    return ending


def _is_over(store: Store, goal_id: int, exit: Exit) -> bool:
    """Whether nothing more is to be done. A goal that waits for the user may go on by itself: the next Skip says so."""
    if exit.reason in (ExitReason.USER_ABORTED, ExitReason.INTERRUPTED):
        return True
    return goals.get(store, goal_id).status not in (GoalStatus.ACTIVE, GoalStatus.WAITING_USER)
