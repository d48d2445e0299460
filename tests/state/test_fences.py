"""An old owner: whatever it still wants to write raises Fenced and leaves no trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from goalmode.domain.work import StatePatch, WorkState, apply
from goalmode.errors import Fenced
from goalmode.orchestrator.recover import recover
from goalmode.state import goals, journal, locks, movements, outside, wakeups
from goalmode.state.checks import CheckResult
from goalmode.state.journal import OpenTurn
from goalmode.state.store import Store
from goalmode.state.tables import Purpose
from goalmode.state.wakeups import Claimed
from goalmode.testing import ManualClock
from tests.state.builders import (
    CONTEXT,
    DONE,
    RESERVE,
    USAGE,
    claim,
    close,
    dump,
    finished,
    intent,
    new_goal,
    outcome,
    record,
    reply,
    rows,
    take_turn,
    try_claim,
)

WORK = apply(WorkState(), StatePatch(done=("a",), key_info="k"), wakeup=1)
TURN = OpenTurn(1, 1)


def fail_call(store: Store, old: Claimed) -> None:
    now = store.clock.now()
    journal.failed_call(
        store,
        old,
        seq=2,
        purpose=Purpose.WORK,
        usage=USAGE,
        detail="cut",
        active_ms=9,
        started_at=now,
        now=now,
    )


WRITES: dict[str, Callable[[Store, Claimed], Any]] = {
    "intent": lambda store, old: intent(store, old, reply("shell", text="late"), seq=2),
    "result": lambda store, old: journal.result(store, old, TURN, record("c0", shown="late")),
    "outcome": lambda store, old: outcome(
        store, old, TURN, record("c0"), work=WORK, checks=[CheckResult("R1", True)], counters={"progress": 1}
    ),
    "failed_call": fail_call,
    "reserve": lambda store, old: journal.reserve(store, old, RESERVE, wrap_up=False),
    "wrap_up": lambda store, old: journal.reserve(store, old, RESERVE, wrap_up=True),
    "move": lambda store, old: movements.move(
        store, old, movements.Moved("pursue", "late"), now=store.clock.now()
    ),
    "begin_anew": lambda store, old: wakeups.begin_anew(
        store, old, 1, CONTEXT, reserve=RESERVE, inbox_seen=99
    ),
    "render_again": lambda store, old: outside.render_again(
        store, old, CONTEXT, reserve=RESERVE, inbox_seen=99, servers=[], now=store.clock.now()
    ),
    "met_obstacle": lambda store, old: wakeups.met_obstacle(store, old, "no network"),
    "close": close,
    "close as done": lambda store, old: close(store, old, DONE, finished(store)),
    "close as done, edited": lambda store, old: close(store, old, DONE, finished(store), revision=99),
}


def taken_over(store: Store, clock: ManualClock) -> Claimed:
    """A wakeup with an unfinished call, whose lease ran out, and which somebody else has recovered."""
    goal = new_goal(store)
    old = claim(store, goal)
    intent(store, old, reply("shell"))
    clock.advance(61)
    with store.reading() as connection:
        dead = wakeups.open_wakeup(connection, goal.id)
    assert dead is not None
    assert recover(store, goals.get(store, goal.id), dead, turns=0, jitter=0.0)
    return old


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("claimed_again", [False, True], ids=["recovered", "claimed again"])
def test_no_write_of_an_old_owner_counts(
    store: Store, clock: ManualClock, name: str, claimed_again: bool
) -> None:
    """B48: after a recovery, and after the next claim, every write method raises and not one byte changes."""
    old = taken_over(store, clock)
    if claimed_again:
        new = claim(store, goals.get(store, old.goal))
        assert new.fence > old.fence
        assert journal.reserve(store, new, RESERVE, wrap_up=True)
    before = dump(store)

    with pytest.raises(Fenced):
        WRITES[name](store, old)

    assert dump(store) == before


@pytest.mark.parametrize("name", WRITES)
def test_no_write_after_a_close_counts(store: Store, name: str) -> None:
    """A wakeup that has been closed, by its own process, takes no more writes."""
    old = claim(store, new_goal(store))
    take_turn(store, old, 1)
    close(store, old)
    before = dump(store)

    with pytest.raises(Fenced):
        WRITES[name](store, old)

    assert dump(store) == before


@pytest.mark.parametrize("name", WRITES)
def test_no_write_after_a_delete_counts(store: Store, name: str) -> None:
    """A goal that was deleted under its wakeup takes no more writes, and its wakeup is told to stop."""
    goal = new_goal(store)
    old = claim(store, goal)
    take_turn(store, old, 1)
    goals.delete(store, goal)

    with pytest.raises(Fenced):
        WRITES[name](store, old)

    assert rows(store, "SELECT count(*) FROM bodies UNION ALL SELECT count(*) FROM turns") == [0, 0]
    assert wakeups.control(store, goal.id) == "abort"


def test_every_function_that_writes_for_a_wakeup_is_walked() -> None:
    """A new write method of a wakeup must take part in these tests."""
    takes_claimed = {
        name
        for module in (journal, movements, outside, wakeups)
        for name, function in vars(module).items()
        if callable(function)
        and not name.startswith("_")
        and "Claimed" in str(getattr(function, "__annotations__", {}).get("claimed"))
        and "store" in function.__annotations__
    }

    # Parts of the writes above, inside their transaction.
    helpers = {"guard", "record_checks", "replace_first", "store_move"}
    renewing = {"renew"}  # Tells what is lost instead of raising.
    walked = {*WRITES} & takes_claimed
    assert takes_claimed - helpers - renewing == walked


def test_renewing_tells_which_leases_are_lost(store: Store, clock: ManualClock) -> None:
    """One transaction renews what is still held, and names the rest."""
    lost = taken_over(store, clock)
    held = claim(store, new_goal(store))
    clock.advance(20)

    assert wakeups.renew(store, [lost, held]) == [lost]
    assert rows(store, "SELECT lease_ms FROM wakeups WHERE id = ?", held.wakeup) == [
        clock.lease_ms() + 60_000
    ]


def test_an_old_owner_starts_no_effect(store: Store, clock: ManualClock) -> None:
    """The gate reads the fence once more: a tool of an old owner does not start, and leaves no file behind."""
    old = taken_over(store, clock)
    path = store.lock_file(old.goal, old.fence)
    gate = locks.LockGate(path, old.fence, lambda: wakeups.current_fence(store, old.goal))

    with pytest.raises(Fenced), gate.enter("late"):
        pytest.fail("the effect started")

    assert not path.exists()


def test_a_recovery_is_done_once(store: Store, clock: ManualClock) -> None:
    """Two processes that find the same dead wakeup: the second changes nothing."""
    goal = new_goal(store)
    claim(store, goal)
    clock.advance(61)
    with store.reading() as connection:
        dead = wakeups.open_wakeup(connection, goal.id)
    assert dead is not None
    assert recover(store, goals.get(store, goal.id), dead, turns=0, jitter=0.0)
    again = claim(store, goal)
    before = dump(store)

    recover(store, goals.get(store, goal.id), dead, turns=0, jitter=0.0)

    assert dump(store) == before
    take_turn(store, again, 1)


def test_a_claim_with_the_fence_of_before_the_recovery_is_refused(store: Store, clock: ManualClock) -> None:
    """The fence grows with the recovery as well, so a context rendered before it is stale."""
    goal = new_goal(store)
    claim(store, goal)
    stale = goals.get(store, goal.id)
    clock.advance(61)
    with store.reading() as connection:
        dead = wakeups.open_wakeup(connection, goal.id)
    assert dead is not None
    recover(store, stale, dead, turns=0, jitter=0.0)

    found = wakeups.claim(
        store, stale, seq=2, context=CONTEXT, reserve=RESERVE, counted=True, now=clock.now()
    )

    assert found is None
    assert try_claim(store, goal) is not None
