"""kill -9 at every point between two commits: nothing committed is lost, and the goal goes on."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection

import pytest

from goalmode.domain.goal import Goal
from goalmode.orchestrator.recover import recover
from goalmode.state import goals, journal, snapshot, wakeups
from goalmode.state.journal import OpenTurn
from goalmode.state.locks import LockGate
from goalmode.state.store import Store
from goalmode.state.wakeups import Claimed
from goalmode.testing import ManualClock
from tests.state.builders import (
    USAGE,
    claim,
    close,
    intent,
    new_goal,
    outcome,
    record,
    reply,
    rows,
    take_turn,
)
from tests.state.processes import another


def lives_until(pipe: Connection, path: str, goal_id: int, point: str) -> None:
    """One wakeup with two calls in one turn; says where it is, and dies there by its own hand."""

    def reached(name: str) -> None:
        if name == point:
            pipe.send(name)
            os.kill(os.getpid(), signal.SIGKILL)

    with Store(path, clock=ManualClock()) as store:
        claimed = claim(store, goals.get(store, goal_id))
        reached("begin")
        turn = intent(store, claimed, reply("shell", "shell"))
        reached("intent")
        run_first(store, claimed, turn, reached)
        outcome(store, claimed, turn, record("c1", position=1))
        reached("outcome")
        close(store, claimed)
        reached("close")


def run_first(store: Store, claimed: Claimed, turn: OpenTurn, reached: Callable[[str], None]) -> None:
    path = store.lock_file(claimed.goal, claimed.fence)
    with LockGate(path, claimed.fence, lambda: wakeups.current_fence(store, claimed.goal)).enter("c0"):
        reached("started")
    journal.result(store, claimed, turn, record("c0"))
    reached("result")


def recovered(store: Store, goal: Goal) -> bool:
    """Do what the next claim does first; False if there was nothing to recover."""
    with store.reading() as connection:
        dead = wakeups.open_wakeup(connection, goal.id)
        turns = 0 if dead is None else wakeups.turns_of(connection, dead.id)
    if dead is None:
        return False
    assert dead.lease.is_void(store.clock.lease_ms(), store.owner)
    return recover(store, goals.get(store, goal.id), dead, turns=turns, jitter=0.0)


@pytest.mark.parametrize(
    ("point", "outcomes", "tokens", "turns"),
    [
        ("begin", [], 600, 0),
        ("intent", ["skipped", "skipped"], USAGE.tokens, 1),
        ("started", ["interrupted", "skipped"], USAGE.tokens, 1),
        ("result", ["success", "skipped"], USAGE.tokens, 1),
        ("outcome", ["success", "success"], USAGE.tokens + 600, 1),
        ("close", ["success", "success"], USAGE.tokens, 1),
    ],
)
def test_a_process_that_dies_after_a_commit_loses_nothing_of_it(
    store: Store, point: str, outcomes: Sequence[str], tokens: int, turns: int
) -> None:
    """B10 B43 B47: the file is whole, each call has its right outcome, spent is known, and the next wakeup works."""
    goal = new_goal(store)
    with another(lives_until, store.url, goal.id, point) as other:
        assert other.hear() == point
        other.process.join()

        assert store.path is None or rows(store, "PRAGMA integrity_check") == ["ok"]
        assert recovered(store, goal) == (point != "close")

    assert rows(store, "SELECT outcome FROM tool_calls ORDER BY position") == outcomes
    assert rows(store, "SELECT count(*) FROM turns WHERE state = 'open'") == [0]
    spent = goals.get(store, goal.id).spent
    assert (spent.tokens, spent.turns, spent.wakeups) == (tokens, turns, 1)
    assert store.path is None or rows(store, "PRAGMA foreign_key_check") == []

    again = claim(store, goals.get(store, goal.id))
    take_turn(store, again, 1)
    close(store, again)
    last = snapshot.snapshot(store, goal.id, now=store.clock.now()).last
    assert last is not None
    assert last.wakeup == 2


def works_fast(pipe: Connection, path: str, goal_id: int) -> None:
    """Turn after turn, each said once it is committed; then it waits, as it is killed before its wakeup ends."""
    with Store(path, clock=ManualClock()) as store:
        claimed = claim(store, goals.get(store, goal_id))
        pipe.send(0)
        for seq in range(1, 31):
            take_turn(store, claimed, seq)
            pipe.send(seq)
        pipe.recv()


@pytest.mark.long
@pytest.mark.parametrize("round", range(4))
def test_a_process_killed_at_any_moment_loses_no_acknowledged_turn(store: Store, round: int) -> None:
    """B47: after each of several kills at random moments everything that was said is there, without gaps or halves."""
    goal, pick = new_goal(store), random.Random(round)
    acknowledged = 0
    for number in range(1, 4):
        with another(works_fast, store.url, goal.id) as other:
            last, target = 0, pick.randrange(1, 30)
            while last < target:
                last = other.hear()
            other.kill()
            while other.pipe.poll():
                try:
                    last = other.pipe.recv()
                except EOFError:
                    break

        acknowledged += last
        assert store.path is None or rows(store, "PRAGMA integrity_check") == ["ok"]
        assert recovered(store, goal)
        seqs = rows(
            store,
            "SELECT turns.seq FROM turns JOIN wakeups ON wakeups.id = turns.wakeup WHERE wakeups.seq = ? ORDER BY 1",
            number,
        )
        assert seqs == list(range(1, len(seqs) + 1))
        assert len(seqs) >= last
        assert rows(store, "SELECT count(*) FROM tool_calls WHERE outcome IS NULL") == [0]
    assert goals.get(store, goal.id).spent.turns >= acknowledged
    assert rows(store, "SELECT seq FROM wakeups ORDER BY seq") == [1, 2, 3]
