"""Deliveries: which goals are issued, how often, and which of their deliveries may still claim them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Goal
from goalmode.errors import StoreError
from goalmode.state import deliveries, goals
from goalmode.state.deliveries import UNCLAIMED_SECONDS, Delivery, arrived, give_back
from goalmode.state.owner import LEASE_MS
from goalmode.state.store import Store
from goalmode.testing import ManualClock
from tests.state.builders import claim, close, go_on, new_goal, plans, rows, take_turn, try_claim


def issue(store: Store, *labels: str, **options: Any) -> list[tuple[int, int]]:
    """Issue to nobody; returns goals and numbers."""
    issued = deliveries.issue(store, labels or (store.owner.host_label,), lambda *_: None, **options)
    return [(one.goal, one.number) for one in issued]


def test_a_due_goal_is_issued_once(store: Store) -> None:
    """Its delivery counts up; a second look at the same moment finds nothing left."""
    goal = new_goal(store)

    assert issue(store) == [(goal.id, 1)]
    assert issue(store) == []


def test_the_oldest_due_are_issued_first_and_only_so_many(store: Store, clock: ManualClock) -> None:
    """With two on their way at most, the third follows when one of them has claimed its goal."""
    made = []
    for _ in range(3):
        made.append(new_goal(store))
        clock.advance(1)

    assert issue(store, ahead=2) == [(made[0].id, 1), (made[1].id, 1)]
    assert issue(store, ahead=2) == []
    claimed = try_claim(store, made[0], delivery=1)
    assert claimed is not None
    assert issue(store, ahead=2) == [(made[2].id, 1)]


def test_what_is_not_due_is_not_issued(store: Store) -> None:
    """Nor what somebody runs, what is over, or what another label's servers wake."""
    later = new_goal(store)
    close(store, claim(store, later), after=go_on(store, seconds=1))
    claim(store, new_goal(store))
    over = new_goal(store)
    close(store, claim(store, over), after=replace(go_on(store), status=GoalStatus.DONE, next_wakeup_at=None))
    elsewhere = new_goal(store)
    rows(store, "UPDATE goals SET host_label = 'elsewhere' WHERE id = ?", elsewhere.id)

    assert issue(store) == []
    assert issue(store, "elsewhere") == [(elsewhere.id, 1)]


@pytest.mark.parametrize(("seconds", "again"), [(-0.001, []), (0, [2]), (1, [2])])
def test_a_delivery_that_claims_nothing_counts_as_lost(
    store: Store, clock: ManualClock, seconds: float, again: list[int]
) -> None:
    """After a minute the goal is issued again, with the next number; not before."""
    goal = new_goal(store)
    issue(store)
    clock.advance(UNCLAIMED_SECONDS + seconds)

    assert issue(store) == [(goal.id, number) for number in again]


def test_only_the_newest_delivery_claims(store: Store, clock: ManualClock) -> None:
    """One that was lost for a while comes too late, whatever it finds."""
    goal = new_goal(store)
    issue(store)
    clock.advance(UNCLAIMED_SECONDS)
    issue(store)

    assert (arrived(store, goal.id, 1), try_claim(store, goal, delivery=1)) == (None, None)
    due = arrived(store, goal.id, 2)
    assert due is not None
    assert (due.goal, due.uid, due.why, due.dead) == (goal.id, goal.uid, "created", False)
    assert try_claim(store, goal, delivery=2) is not None


def test_a_delivery_claims_once(store: Store) -> None:
    """If it is brought a second time the goal is due again, and yet it claims nothing; the next delivery does."""
    goal = new_goal(store)
    issue(store)
    claimed = try_claim(store, goal, delivery=1)
    assert claimed is not None
    close(store, claimed)
    now = goals.get(store, goal.id)

    assert (arrived(store, goal.id, 1), try_claim(store, now, delivery=1)) == (None, None)
    assert issue(store) == [(goal.id, 2)]
    assert try_claim(store, now, delivery=2) is not None


def test_whoever_needs_no_delivery_may_claim_before_it(store: Store) -> None:
    """`run` on a goal that is on its way: the delivery finds the goal claimed, and afterwards it is none any more."""
    goal = new_goal(store)
    issue(store)
    close(store, claim(store, goal))

    assert try_claim(store, goals.get(store, goal.id), delivery=1) is None
    assert issue(store) == [(goal.id, 2)]


def test_a_dead_owners_goal_is_issued(store: Store, clock: ManualClock) -> None:
    """Once its lease has run out, whatever else the goal waits for; what arrives says that somebody died."""
    goal = new_goal(store)
    issue(store)
    claimed = try_claim(store, goal, delivery=1)
    assert claimed is not None
    take_turn(store, claimed, 1)

    clock.advance(LEASE_MS / 1000)
    assert issue(store) == []
    clock.advance(0.001)
    assert issue(store) == [(goal.id, 2)]
    assert issue(store) == []
    due = arrived(store, goal.id, 2)
    assert due is not None
    assert (due.dead, due.why) == (True, f"{store.owner.name} ended in wakeup 1")


def test_a_question_that_its_default_answers_is_issued(store: Store, clock: ManualClock) -> None:
    """The goal waits for the user until then."""
    goal = new_goal(store)
    close(store, claim(store, goal), after=replace(go_on(store), status=GoalStatus.WAITING_USER))
    rows(
        store,
        'INSERT INTO questions (goal, wakeup, number, kind, status, text, options, why, "default", session_id,'
        " answer, answered_by, asked_at) SELECT goal, id, 1, 'input', 'open', 'Red', '[]', '', 'Red', '', '',"
        " '', started_at FROM wakeups",
    )
    at = (clock.now() + timedelta(seconds=10)).strftime("%Y-%m-%d %H:%M:%S.%f+00:00")
    rows(store, "UPDATE questions SET default_at = ?", at if store.path is None else at[:-6])

    assert issue(store) == []
    clock.advance(10)
    assert issue(store) == [(goal.id, 1)]


def test_a_delivery_is_given_back(store: Store) -> None:
    """The goal is issued anew at once if it is still due; an old delivery gives nothing back."""
    goal = new_goal(store)
    issue(store)
    give_back(store, goal.id, 0)
    assert issue(store) == []

    give_back(store, goal.id, 1)

    assert try_claim(store, goal, delivery=1) is None
    assert issue(store) == [(goal.id, 2)]


def test_what_cannot_be_enqueued_is_not_issued(store: Store) -> None:
    """Numbers and what carries them are one transaction: all of a look, or nothing."""
    first, second = new_goal(store), new_goal(store)
    taken: list[Delivery] = []

    def full(_: Any, delivery: Delivery) -> None:
        if taken:
            raise StoreError("the queue is full")
        taken.append(delivery)

    with pytest.raises(StoreError, match="queue is full"):
        deliveries.issue(store, [store.owner.host_label], full)

    assert rows(store, "SELECT delivery FROM goals") == [0, 0]
    assert issue(store) == [(first.id, 1), (second.id, 1)]


def test_what_a_delivery_replaces(store: Store, clock: ManualClock) -> None:
    """Its forerunner is of no use any more if it was lost or its worker died; not if it has done its work."""
    goal = new_goal(store)
    label = store.owner.host_label

    def next_one() -> Delivery:
        [issued] = deliveries.issue(store, [label], lambda *_: None)
        return issued

    assert next_one() == Delivery(goal.id, 1, label, replaces=False)
    clock.advance(UNCLAIMED_SECONDS)
    assert next_one() == Delivery(goal.id, 2, label, replaces=True)
    claimed = try_claim(store, goal, delivery=2)
    assert claimed is not None
    close(store, claimed)
    assert next_one() == Delivery(goal.id, 3, label, replaces=False)
    assert try_claim(store, goals.get(store, goal.id), delivery=3) is not None
    clock.advance(LEASE_MS / 1000 + 1)
    assert next_one() == Delivery(goal.id, 4, label, replaces=True)


@pytest.mark.sqlite
def test_each_question_has_its_index(store: Store) -> None:
    """Nothing is scanned: a look costs the same with 100 and with 100,000 goals."""
    claim(store, new_goal(store))
    seen = plans(store._full)

    issue(store)

    dead, on_the_way, of_dead, by_default, due = seen
    assert "wakeups USING INDEX uq_wakeups_open" in dead
    assert "goals USING INDEX ix_goals_issued (issued_at>?)" in on_the_way
    assert "goals USING INTEGER PRIMARY KEY" in of_dead
    assert "questions USING INDEX ix_questions_due (default_at<?)" in by_default
    assert "goals USING INDEX ix_goals_due (next_wakeup_at<?)" in due
    assert not [steps for steps in seen if "SCAN goals" in steps]


def test_the_goal_is_what_it_was(store: Store) -> None:
    """Deliveries are no part of it: not its revision, not when it was changed."""
    goal: Goal = new_goal(store)

    issue(store)

    assert goals.get(store, goal.id) == goal
