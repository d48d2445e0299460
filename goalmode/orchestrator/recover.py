"""Recovery through the front door: whoever comes next closes a dead owner's wakeup.

It is INTERRUPTED, unless it died after its ending had been accepted, while it settled into long-term memory.
"""

from __future__ import annotations

from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.goal import Goal
from goalmode.orchestrator.after import Standing, after
from goalmode.state import closing, locks, settlement, wakeups
from goalmode.state.store import Store
from goalmode.state.wakeups import OpenWakeup


def recover(store: Store, goal: Goal, dead: OpenWakeup, *, turns: int, jitter: float) -> bool:
    """Close `dead`; False if its tools still run and could not be ended.

    The old owner's lock file is taken first, so that nothing it started still runs when the goal is woken again.
    """
    with locks.take_over(store.lock_file(goal.id, dead.fence), dead.lease.owner.pid) as started:
        if started is None:
            return False
        if not dead.lease.owner.is_near():
            started = None  # Its marks are on another machine, or of an earlier boot: nobody can tell.
        now = store.clock.now()
        pending = settlement.left_behind(goal, dead)
        exit = Exit(ExitReason.INTERRUPTED, f"the process {dead.lease.owner.name} ended")
        settled = after(
            exit if pending is None else pending.exit, _standing(store, goal, dead, turns, jitter), now
        )
        closing.recover(store, goal, dead, started=started, after=settled, now=now, pending=pending)
        return True


def _standing(store: Store, goal: Goal, dead: OpenWakeup, turns: int, jitter: float) -> Standing:
    with store.reading() as connection:
        again = wakeups.was_interrupted(connection, goal.id, dead.seq - 1)
    # Backend errors are counted in the same place, but they are no interruptions.
    failures = goal.failures if again else 0
    return Standing(goal.streak, failures, turns, progressed=dead.progress > 0, jitter=jitter)
