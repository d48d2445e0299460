"""A wakeup as it is to be shown: one that nobody closed either runs, or its process is gone.

Then it is what recovery will make of it: interrupted, or ended as it had stored before it settled.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from goalmode.domain.exits import EXIT_FACTS, ExitReason, GoalStatus
from goalmode.domain.goal import Control, Goal
from goalmode.errors import StoreUnreadable
from goalmode.state.reading import WakeupSeen
from goalmode.state.store import Store


def runs(store: Store, wakeup: WakeupSeen) -> bool:
    """Whether its process lives and has given a sign of life within the lease."""
    return wakeup.exit_reason is None and not store.is_void(wakeup.lease)


@dataclass(frozen=True, slots=True)
class Shown:
    """How a wakeup stands, found out once: its process may end between two looks.

    Attributes:
        exit_reason: None while it runs.
    """

    running: bool
    exit_reason: str | None
    exit_detail: str


def shown(store: Store, wakeup: WakeupSeen) -> Shown:
    """How the wakeup stands now."""
    if wakeup.exit_reason is not None or runs(store, wakeup):
        return Shown(wakeup.exit_reason is None, wakeup.exit_reason, wakeup.exit_detail)
    gone = f"the process {wakeup.lease.owner.name} ended"
    left = wakeup.pending_exit or {"reason": ExitReason.INTERRUPTED.value, "detail": gone}
    return Shown(False, str(left["reason"]), str(left["detail"]))


def looks(store: Store, wakeups: Iterable[WakeupSeen]) -> dict[int, Shown]:
    """How each of them stands now, by its id: one look at each, however often it is given."""
    return {key: shown(store, wakeup) for key, wakeup in {w.id: w for w in wakeups}.items()}


def status_of(goal: Goal, last: WakeupSeen | None, *, running: bool) -> GoalStatus:
    """The goal's status; where its process died, the one that recovery will set: an accepted claim beats a stop.

    Args:
        running: whether the last wakeup runs.
    """
    if last is None or last.exit_reason is not None or running:
        return goal.status
    pending = last.pending_exit
    left = (
        goal.status
        if pending is None
        else EXIT_FACTS[known_reason(goal, last, str(pending["reason"]))].status
    )
    if left is GoalStatus.DONE or goal.control is Control.NONE:
        return left
    return GoalStatus.PAUSED if goal.control is Control.PAUSE else GoalStatus.ABORTED


def known_reason(goal: Goal, wakeup: WakeupSeen, word: str) -> ExitReason:
    """The exit reason that a stored word means.

    Raises:
        StoreUnreadable: a word that this code does not know.
    """
    try:
        return ExitReason(word)
    except ValueError:
        raise StoreUnreadable(
            f"goal {goal.uid}: wakeup {wakeup.seq}: exit_reason is {word!r}, which this goalmode does not know"
        ) from None


def iso(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()
