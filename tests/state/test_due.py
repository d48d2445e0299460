"""What is to be done now, out of many goals: the right ones, in the right order, by an index."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from goalmode.domain.exits import Exit, ExitReason, GoalStatus
from goalmode.domain.goal import Control, Goal, GoalSpec
from goalmode.domain.questions import Asking, Question, QuestionKind
from goalmode.domain.wake import Planned, ProcessEnd
from goalmode.state import due, goals, questions, wake_sources
from goalmode.state import tables as t
from goalmode.state.closing import Aftermath
from goalmode.state.owner import LEASE_MS
from goalmode.state.store import Store
from goalmode.testing import ManualClock
from tests.state.builders import claim, close, go_on, new_goal, plans, rows


def many(store: Store, count: int) -> list[Goal]:
    """Goals that became due one second after the other, the last one just now."""
    made = [new_goal(store) for _ in range(count)]
    for late, goal in enumerate(reversed(made)):
        with store.writing() as connection:
            at = store.clock.now() - timedelta(seconds=late)
            connection.execute(sa.update(t.goals).where(t.goals.c.id == goal.id).values(next_wakeup_at=at))
    return made


def found(store: Store, limit: int = 100, **more: Any) -> list[int]:
    more.setdefault("labels", [store.owner.host_label])
    return [one.goal for one in due.goals_due(store, now=store.clock.now(), limit=limit, **more)]


def test_the_longest_due_come_first(store: Store, clock: ManualClock) -> None:
    """As many as are wanted; equals in the order in which they were made."""
    made = [goal.id for goal in many(store, 5)]
    same = [new_goal(store).id for _ in range(2)]

    assert found(store) == [*made, *same]
    assert found(store, 3) == made[:3]
    assert found(store, 0) == []


def test_who_is_passed_over_hides_nobody(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many stand before: the search goes on, page by page, also where many are due at the same time."""
    monkeypatch.setattr(due, "PAGE", 3)
    made = [goal.id for goal in many(store, 8)] + [new_goal(store).id for _ in range(8)]

    assert found(store, 2, passing=set(made[:-2])) == made[-2:]
    assert found(store, 2, passing=set(made)) == []
    assert found(store) == made


def test_only_what_can_be_woken_is_due(store: Store, clock: ManualClock) -> None:
    """Not ahead of time, not what somebody runs, not what is paused, not what belongs to another host."""
    running, paused, later, ready = (new_goal(store) for _ in range(4))
    claim(store, running)
    goals.stop(store, paused, Control.PAUSE, now=clock.now())
    close(store, claim(store, later), after=go_on(store, seconds=1))

    assert found(store) == [ready.id]
    assert found(store, labels=["elsewhere"]) == []
    assert found(store, labels=["elsewhere", store.owner.host_label]) == [ready.id]
    clock.advance(1)
    assert found(store) == [ready.id, later.id]


@pytest.mark.sqlite
def test_a_time_that_is_none_hides_no_other_goal(store: Store) -> None:
    """It is found like any other, and named when it is read."""
    first, second = many(store, 2)
    rows(store, "UPDATE goals SET next_wakeup_at = '2029' WHERE id = ?", first.id)
    rows(store, "UPDATE goals SET next_wakeup_at = '2029-13-01 00:00:00' WHERE id = ?", second.id)

    assert {
        one.since for one in due.goals_due(store, [store.owner.host_label], store.clock.now(), limit=9)
    } == {None}


def test_a_time_is_told_in_utc(store: Store) -> None:
    """On both engines."""
    [goal] = many(store, 1)

    [one] = due.goals_due(store, [store.owner.host_label], store.clock.now(), limit=1)

    assert (one.goal, one.uid, one.why) == (goal.id, goal.uid, "created")
    assert one.since == datetime(2030, 1, 1, tzinfo=UTC)


def test_dead_owners_are_found_whatever_the_goal_is(store: Store, clock: ManualClock) -> None:
    """Once the lease is over; a goal that was paused meanwhile is closed too."""
    goal, paused = new_goal(store), new_goal(store)
    claim(store, goal), claim(store, paused)
    rows(store, "UPDATE goals SET status = 'PAUSED' WHERE id = ?", paused.id)
    labels = [store.owner.host_label]
    assert due.abandoned(store, labels) == ([], [])

    clock.advance(LEASE_MS / 1000 + 1)

    abandoned, _ = due.abandoned(store, labels)
    assert [(one.goal, one.dead) for one in abandoned] == [(goal.id, True), (paused.id, True)]
    assert abandoned[0].why == f"{store.owner.name} ended in wakeup 1"
    assert due.abandoned(store, ["elsewhere"]) == ([], [])


def test_questions_that_answer_themselves_are_found(store: Store, clock: ManualClock) -> None:
    """From the moment that their default stands; of goals that wait for it."""
    goal, other = new_goal(store), new_goal(store)
    for one, default_at in ((goal, clock.now() + timedelta(hours=1)), (other, None)):
        asking = Asking(QuestionKind.INPUT, "Red or blue?", default="red", default_at=default_at)
        ending = Exit(ExitReason.NEEDS_USER_INPUT, "Red or blue?", question=asking)
        close(store, claim(store, one), ending, Aftermath(GoalStatus.WAITING_USER, "asked", None, "", 0, 0))
    labels = [store.owner.host_label]
    clock.advance(3599)
    assert due.defaults_due(store, labels, clock.now()) == []

    clock.advance(1)

    assert [one.goal for one in due.defaults_due(store, labels, clock.now())] == [goal.id]
    rows(store, "UPDATE goals SET status = 'PAUSED'")
    assert due.defaults_due(store, labels, clock.now()) == []


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("column", "value"),
    [("created_at", 5), ("created_at", b"\xff"), ("number", "x"), ("spec", b"\xff")],
)
def test_a_source_that_is_none_hides_no_other(store: Store, column: str, value: object) -> None:
    """Those of other goals are looked at, whatever a database holds where a time, a number or a word belongs."""
    source = Planned(ProcessEnd(1, "0", "boot"), None, store.clock.now())
    for _ in range(3):
        goals.create(store, GoalSpec("Write.", "/w"), waits_for=[source], now=store.clock.now())
    rows(store, f"UPDATE wake_sources SET {column} = ? WHERE goal = 2", value)

    with store.reading() as connection:
        found, faults, beyond = wake_sources.to_watch(connection, [store.owner.host_label], beyond=0, limit=3)

    assert [one.goal for one in found] == [1, 3]
    assert beyond == 3
    [fault] = faults
    assert fault.startswith(f"goal {goals.get(store, 2).uid}: ")


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("started_at", 5, [1, 2]),
        ("exit_facts", b"\xff", [1, 2]),
        ("lease_ms", "soon", [1]),
        ("pid", b"\xff", [1]),
        ("owner", b"\xff", [1]),
    ],
)
def test_a_dead_owner_is_found_beside_a_wakeup_of_unknown_shape(
    store: Store, clock: ManualClock, column: str, value: object, expected: list[int]
) -> None:
    """Only what tells of the owner is looked at, and of the goal alone where it is none."""
    for _ in range(2):
        claim(store, new_goal(store))
    rows(store, f"UPDATE wakeups SET {column} = ? WHERE goal = 2", value)

    clock.advance(LEASE_MS / 1000 + 1)

    found, faults = due.abandoned(store, [store.owner.host_label])
    assert [one.goal for one in found] == expected
    assert len(faults) == 2 - len(expected)


@pytest.mark.sqlite
@pytest.mark.parametrize("value", [5, "2029-13-01"])
def test_a_default_with_a_time_that_is_none_hides_no_other(
    store: Store, clock: ManualClock, value: object
) -> None:
    """The other goals' defaults stand when their times come; the questions of all goals are told, and the fault."""
    for _ in range(2):
        asking = Asking(QuestionKind.INPUT, "Red?", default="red", default_at=clock.now())
        ending = Exit(ExitReason.NEEDS_USER_INPUT, "Red?", question=asking)
        waiting = Aftermath(GoalStatus.WAITING_USER, "asked", None, "", 0, 0)
        close(store, claim(store, new_goal(store)), ending, waiting)
    rows(store, "UPDATE questions SET default_at = ? WHERE goal = 2", value)

    found = due.defaults_due(store, [store.owner.host_label], clock.now())
    with store.reading() as connection:
        asked = [question for _, question in questions.every_open(connection)]

    assert {one.goal: one.since for one in found} == {1: clock.now(), 2: None}
    assert isinstance(asked[0], Question)
    assert str(asked[1]) == f"question Q1: default_at is {value!r}, a time was expected"


@pytest.mark.sqlite
def test_each_question_has_its_index(store: Store) -> None:
    """Nothing is scanned or sorted: a look costs the same with 100 and with 100,000 goals."""
    claim(store, new_goal(store))
    seen = plans(store._read)

    labels, now = [store.owner.host_label], store.clock.now()
    due.goals_due(store, labels, now, limit=1)
    due.abandoned(store, labels)
    due.defaults_due(store, labels, now)
    with store.reading() as connection:
        wake_sources.to_watch(connection, labels, beyond=0, limit=10)
        wake_sources.open_of(connection, 1)
        wake_sources.earliest(connection, 1)

    goals_due, abandoned, _, defaults, watched, of_goal, earliest = seen
    assert "goals USING INDEX ix_goals_due (next_wakeup_at<?)" in goals_due
    assert "wakeups USING INDEX uq_wakeups_open" in abandoned
    assert "questions USING INDEX ix_questions_due (default_at<?)" in defaults
    assert "wake_sources USING INDEX ix_wake_sources_watched" in watched
    assert "wake_sources USING INDEX ix_wake_sources_open (goal=?)" in of_goal
    assert "wake_sources USING INDEX ix_wake_sources_open (goal=?)" in earliest
    for steps in (goals_due, watched):
        assert "TEMP B-TREE" not in steps
    for steps in seen:
        assert "SCAN goals" not in steps
