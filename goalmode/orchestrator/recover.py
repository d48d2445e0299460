"""Recovery through the front door: whoever comes next closes a dead owner's wakeup as INTERRUPTED."""

from __future__ import annotations

from goalmode.domain.exits import Exit, ExitReason, GoalStatus
from goalmode.domain.goal import Control, Goal
from goalmode.orchestrator.after import Standing, after
from goalmode.state import locks, wakeups
from goalmode.state.store import Store
from goalmode.state.wakeups import Aftermath, OpenWakeup


def recover(store: Store, goal: Goal, dead: OpenWakeup, *, turns: int, jitter: float) -> bool:
    """Close `dead`; False if its tools still run and could not be ended.

    The old owner's lock file is taken first, so that nothing it started still runs when the goal is woken again.
    """
    with locks.take_over(store.lock_file(goal.id, dead.fence)) as started:
        if started is None:
            return False
        now = store.clock.now()
        wakeups.recover(
            store, goal, dead, started=started, after=_aftermath(goal, dead, turns, jitter, store), now=now
        )
        return True


def _aftermath(goal: Goal, dead: OpenWakeup, turns: int, jitter: float, store: Store) -> Aftermath:
    """A user's stop that the dead process did not see any more is honoured now."""
    exit = Exit(ExitReason.INTERRUPTED, f"the process {dead.lease.owner.name} ended")
    standing = Standing(goal.streak, goal.failures, turns, progressed=False, jitter=jitter)
    settled = after(exit, standing, store.clock.now())
    if goal.status is not GoalStatus.ACTIVE:  # Stopped after the owner had died.
        return Aftermath(goal.status, goal.status_detail, None, "", settled.streak, settled.failures)
    match goal.control:
        case Control.PAUSE:
            return Aftermath(GoalStatus.PAUSED, "by the user", None, "", settled.streak, settled.failures)
        case Control.ABORT:
            return Aftermath(GoalStatus.ABORTED, "by the user", None, "", settled.streak, settled.failures)
        case Control.NONE:
            return settled
