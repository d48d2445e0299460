"""Two processes at the same moment, as two stores in threads: one of them wins, and nothing that was said is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from goalmode.domain.budget import Limits
from goalmode.domain.exits import Exit, ExitReason, GoalStatus
from goalmode.domain.goal import Control, Goal
from goalmode.domain.memory import MemoryKind
from goalmode.errors import Fenced, NotAllowed
from goalmode.state import answers, closing, goals, journal, memory, notes, wakeups
from goalmode.state import tables as t
from goalmode.state.closing import Aftermath, ClaimSuperseded
from goalmode.state.goals import Edit
from goalmode.state.store import Store
from goalmode.testing import ManualClock
from tests.state.builders import (
    DONE,
    RESERVE,
    claim,
    close,
    finished,
    go_on,
    new_goal,
    rows,
    take_turn,
    try_claim,
)
from tests.stores import Stores

ROUNDS = 12


@pytest.fixture
def pair(new_stores: Stores, tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    """One store, opened by two."""
    url, clock = new_stores.new(tmp_path / "goals.sqlite"), ManualClock()
    with Store(url, clock=clock) as one, Store(url, clock=clock) as other:
        yield one, other


def together(*calls: Callable[[], Any]) -> list[Any]:
    """Make the calls at the same moment; what each of them returned or raised."""
    results: list[Any] = [None] * len(calls)
    start = threading.Barrier(len(calls))

    def make(number: int, call: Callable[[], Any]) -> None:
        start.wait()
        try:
            results[number] = call()
        except (Exception, Fenced) as error:  # noqa: BLE001 - whatever it is, the test looks at it
            results[number] = error

    threads = [threading.Thread(target=make, args=one) for one in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_one_of_many_gets_the_wakeup(pair: tuple[Store, Store]) -> None:
    """Of eight claims one succeeds, in every round; fences and numbers grow by one."""
    goal = new_goal(pair[0])
    for number in range(1, ROUNDS + 1):
        claimed = together(*(partial(try_claim, store, goal) for store in pair * 4))

        [won] = [one for one in claimed if one is not None]
        assert (won.seq, won.fence) == (number, number)
        close(pair[0], won)


def test_an_answer_is_given_once(pair: tuple[Store, Store]) -> None:
    """Of two answers one stands, the other is told so; the goal goes on once."""
    asks = Exit(ExitReason.NEEDS_USER_INPUT, "Which colour?")
    for _ in range(ROUNDS):
        goal = new_goal(pair[0])
        close(pair[0], claim(pair[0], goal), asks, waiting())

        given = together(
            *(partial(answer, store, goal, text) for store, text in zip(pair, ("red", "blue"), strict=True))
        )

        assert sorted(type(one) for one in given if one is not None) == [NotAllowed]
        assert len(rows(pair[0], "SELECT text FROM inbox WHERE goal = ?", goal.id)) == 1
        assert goals.get(pair[0], goal.id).status is GoalStatus.ACTIVE


def test_what_is_said_during_a_close_is_heard(
    pair: tuple[Store, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A note that comes before the close makes the goal due; none is stored in between, where nobody looks."""
    asks, must_be_open = Exit(ExitReason.NEEDS_USER_INPUT, "Which colour?"), notes._must_be_open
    before_the_close: list[bool] = []

    def looks(connection: sa.Connection, goal: Goal) -> None:
        must_be_open(connection, goal)
        open_ = sa.select(t.wakeups.c.id).where(
            t.wakeups.c.goal == goal.id, t.wakeups.c.exit_reason.is_(None)
        )
        before_the_close.append(connection.execute(open_).first() is not None)

    monkeypatch.setattr(notes, "_must_be_open", looks)
    for _ in range(ROUNDS):
        goal = new_goal(pair[0])
        claimed = claim(pair[0], goal)

        closed, noted = together(
            partial(close, pair[0], claimed, asks, waiting()),
            partial(notes.add, pair[1], goal, "Red, please.", now=pair[1].clock.now()),
        )

        assert not isinstance(closed, BaseException), closed
        assert not isinstance(noted, BaseException), noted
        heard = goals.get(pair[0], goal.id).status is GoalStatus.ACTIVE
        assert heard is before_the_close[-1]


def test_an_edit_during_a_claim_is_never_done(pair: tuple[Store, Store]) -> None:
    """Success at an old revision is refused; one that was stored just before is reopened by the edit."""
    for _ in range(ROUNDS):
        goal = new_goal(pair[0])
        claimed = claim(pair[0], goal)

        closed, edited = together(
            partial(close, pair[0], claimed, DONE, finished(pair[0])),
            partial(goals.edit, pair[1], goal, Edit(1, objective="Another."), now=pair[1].clock.now()),
        )

        assert isinstance(edited, Goal), edited
        now = goals.get(pair[0], goal.id)
        assert (now.status, now.revision) == (GoalStatus.ACTIVE, 2)
        assert isinstance(closed, ClaimSuperseded) or closed[0].reason is ExitReason.CURRENT_TASK_DONE
        [reason] = rows(pair[0], "SELECT exit_reason FROM wakeups WHERE goal = ?", goal.id)
        assert (reason is None) == isinstance(closed, ClaimSuperseded)


def test_a_stop_during_a_close_stops_the_goal(pair: tuple[Store, Store]) -> None:
    """Whichever comes first, the goal is paused, and no stop is left for the next wakeup."""
    for _ in range(ROUNDS):
        goal = new_goal(pair[0])
        claimed = claim(pair[0], goal)

        together(
            partial(close, pair[0], claimed, after=go_on(pair[0])),
            partial(goals.stop, pair[1], goal, Control.PAUSE, now=pair[1].clock.now()),
        )

        now = goals.get(pair[0], goal.id)
        assert (now.status, now.control, now.next_wakeup_at) == (GoalStatus.PAUSED, Control.NONE, None)


def test_a_dead_wakeup_is_recovered_once(pair: tuple[Store, Store]) -> None:
    """Its reservation is charged once, and its fence grows once."""
    for _ in range(ROUNDS):
        goal = new_goal(pair[0])
        claim(pair[0], goal)
        with pair[0].reading() as connection:
            dead = wakeups.open_wakeup(connection, goal.id)
        assert dead is not None

        done = together(*(partial(recover, store, goal, dead) for store in pair))

        now = goals.get(pair[0], goal.id)
        assert sorted(done) == [False, True]
        assert (now.fence, now.spent.tokens) == (2, RESERVE.tokens)


def test_an_owner_that_closes_while_it_is_recovered(pair: tuple[Store, Store]) -> None:
    """One of the two ends the wakeup; the other writes nothing."""
    for _ in range(ROUNDS):
        goal = new_goal(pair[0])
        claimed = claim(pair[0], goal)
        with pair[0].reading() as connection:
            dead = wakeups.open_wakeup(connection, goal.id)
        assert dead is not None

        closed, recovered = together(partial(close, pair[0], claimed), partial(recover, pair[1], goal, dead))

        [reason] = rows(pair[0], "SELECT exit_reason FROM wakeups WHERE goal = ?", goal.id)
        assert recovered is isinstance(closed, Fenced)
        assert (reason == "INTERRUPTED") is recovered


def test_the_wrap_up_is_made_once(pair: tuple[Store, Store]) -> None:
    """The latch of a limit's wrap-up is taken by one of two."""
    for _ in range(ROUNDS):
        claimed = claim(pair[0], new_goal(pair[0]))

        done = together(*(partial(journal.reserve, store, claimed, RESERVE, wrap_up=True) for store in pair))

        assert sorted(done) == [False, True]


def test_two_raised_limits_are_two_revisions(pair: tuple[Store, Store]) -> None:
    """Neither is lost in the other."""
    for _ in range(ROUNDS):
        goal = new_goal(pair[0], limits=Limits(turns=1))

        now = pair[0].clock.now()
        raised = partial(goals.make_due, goal=goal, now=now, reason="resumed")
        together(
            *(
                partial(raised, store, limits=Limits(turns=turns))
                for store, turns in zip(pair, (5, 9), strict=True)
            )
        )

        now = goals.get(pair[0], goal.id)
        assert (now.limits_revision, now.limits.turns in (5, 9)) == (3, True)


def test_equal_memories_of_two_goals_are_one(pair: tuple[Store, Store]) -> None:
    """Both goals are told its label."""
    for number in range(ROUNDS):
        held = [(store, goal, claim(store, goal)) for store in pair for goal in [new_goal(store)]]

        kept = together(*(partial(remember, *one, f"fact {number}") for one in held))

        assert kept[0].memory.label == kept[1].memory.label
        assert sorted(one.known for one in kept) == [False, True]


def test_heartbeats_and_turns_do_not_wait_for_each_other(pair: tuple[Store, Store]) -> None:
    """Renewing many leases at once, in any order, beside their turns and users' commands ends in no deadlock."""
    held = [claim(pair[0], new_goal(pair[0])) for _ in range(4)]
    goal = [goals.get(pair[0], one.goal) for one in held]

    def work(number: int) -> None:
        for seq in range(1, 9):
            take_turn(pair[0], held[number], seq)

    def beat(order: int) -> None:
        for _ in range(20):
            assert wakeups.renew(pair[1], held[::order]) == []

    def note(number: int) -> None:
        for seq in range(8):
            notes.add(pair[1], goal[number], f"note {seq}", now=pair[1].clock.now())

    calls = [partial(work, n) for n in range(4)] + [partial(note, n) for n in range(4)]
    calls += [partial(beat, 1), partial(beat, -1)]

    assert together(*calls) == [None] * len(calls)


def waiting() -> Aftermath:
    return Aftermath(GoalStatus.WAITING_USER, "", None, "", 0, 0)


def answer(store: Store, goal: Goal, text: str) -> None:
    answers.answer(store, goal, 1, text, now=store.clock.now())


def recover(store: Store, goal: Goal, dead: wakeups.OpenWakeup) -> bool:
    return closing.recover(
        store, goal, dead, started=frozenset(), after=replace(go_on(store), failures=1), now=store.clock.now()
    )


def remember(store: Store, goal: Goal, claimed: wakeups.Claimed, text: str) -> Any:
    return memory.remember(
        store,
        claimed,
        MemoryKind.ENVIRONMENT,
        text,
        goal=goal.uid,
        workspace=goal.workspace,
        turn=1,
        shown=0,
        now=store.clock.now(),
    )
