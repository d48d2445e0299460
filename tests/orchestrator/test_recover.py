"""Recovery through the front door: the next claim closes a dead owner's wakeup, and honours what was asked of it."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from goalmode.domain.calls import CallOutcome, CallRecord, Effect
from goalmode.domain.exits import Exit, ExitReason, GoalStatus, SkipReason
from goalmode.domain.goal import Control, Goal
from goalmode.errors import Fenced
from goalmode.orchestrator.after import MAX_INTERRUPTIONS
from goalmode.orchestrator.goals import resume_goal, stop_goal
from goalmode.orchestrator.skip import Skip
from goalmode.orchestrator.wake import Wake, begin_wakeup
from goalmode.state import locks
from goalmode.state.owner import LEASE_MS
from goalmode.state.store import Store
from goalmode.testing import ManualClock
from tests.orchestrator.builders import (
    GO_ON,
    STOPPED_EARLY,
    FakeRenderer,
    abandon,
    attempt,
    begin,
    finish,
    intend,
    new_goal,
    now,
    skipped,
    turn,
)
from tests.state.builders import dump, rows
from tests.state.processes import another

R, S = ExitReason, GoalStatus


def test_a_dead_owner_is_recovered_by_the_next_claim(store: Store, goal: Goal) -> None:
    """B43 B50: at once, without waiting for the lease: INTERRUPTED, and the same call starts the next wakeup."""
    wake = begin(store, goal)
    intend(wake, "shell", "shell")
    wake.record(CallRecord(0, "c0", "shell", Effect.WRITE, CallOutcome.SUCCESS, "ok"))
    with wake.gate.enter("c1"):
        pass
    abandon(store)

    again = begin(store, goal)

    assert (again.seq, again.goal.fence) == (2, 2)
    assert rows(store, "SELECT exit_reason FROM wakeups ORDER BY seq") == ["INTERRUPTED", None]
    assert [a.outcome for a in again.actions] == [CallOutcome.SUCCESS, CallOutcome.INTERRUPTED]
    assert not store.lock_file(goal.id, 1).exists()
    with pytest.raises(Fenced):
        finish(wake)
    with pytest.raises(Fenced):
        wake.close(GO_ON)


def test_an_owner_that_shows_no_life_is_recovered_after_its_lease(
    store: Store, goal: Goal, clock: ManualClock
) -> None:
    """B50: not before the lease is over, then at once; what it had reserved is charged."""
    wake = begin(store, goal)
    clock.advance(LEASE_MS / 1000)
    assert skipped(attempt(store, goal)) is SkipReason.LEASED

    clock.advance(0.001)
    begin(store, goal)

    assert now(store, goal).spent.tokens == 100 + 500
    with pytest.raises(Fenced):
        intend(wake, "shell")


def test_a_tool_that_cannot_be_ended_holds_the_goal_back(
    store: Store, goal: Goal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The goal is not woken beside it; nothing is stored, and it is tried again later."""
    monkeypatch.setattr(locks, "TAKEOVER_SECONDS", 0.05)
    wake = begin(store, goal)
    intend(wake, "shell")
    before = dump(store)
    with wake.gate.enter("c0"):
        rows(store, "UPDATE wakeups SET lease_ms = 0")
        before = dump(store)
        assert skipped(attempt(store, goal)) is SkipReason.TOOL_STILL_RUNNING
        assert dump(store) == before

    assert begin(store, goal).seq == 2


@pytest.mark.parametrize(
    ("control", "status", "reason"),
    [
        (Control.PAUSE, S.PAUSED, SkipReason.PAUSED),
        (Control.ABORT, S.ABORTED, SkipReason.ABORTED),
    ],
)
@pytest.mark.parametrize("when", ["before the death", "after the death"])
def test_a_stop_that_a_dead_owner_did_not_see_is_honoured(
    store: Store,
    goal: Goal,
    clock: ManualClock,
    control: Control,
    status: GoalStatus,
    reason: SkipReason,
    when: str,
) -> None:
    """B10 B118: the signal is honoured once with the right status, and no wakeup of 0 turns is started for it."""
    begin(store, goal)
    if when == "before the death":
        stop_goal(store, now(store, goal), control)
        abandon(store)
    else:
        abandon(store)
        stop_goal(store, now(store, goal), control)

    assert skipped(attempt(store, goal)) is reason

    found = now(store, goal)
    assert (found.status, found.control) == (status, Control.NONE)
    assert rows(store, "SELECT exit_reason FROM wakeups") == ["INTERRUPTED"]
    if control is Control.PAUSE:
        resume_goal(store, found)
        assert begin(store, goal).seq == 2


def test_a_stop_that_arrives_during_the_recovery_is_honoured(
    store: Store, goal: Goal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B118: the take-over of the tools may last seconds; a pause in them is not overwritten."""
    begin(store, goal)
    abandon(store)
    take_over = locks.take_over

    def slowly(path: Path, old_owner: int) -> object:
        stop_goal(store, now(store, goal), Control.PAUSE)
        return take_over(path, old_owner)

    monkeypatch.setattr(locks, "take_over", slowly)

    assert skipped(attempt(store, goal)) is SkipReason.PAUSED
    assert now(store, goal).status is S.PAUSED


def test_deaths_without_an_outcome_back_off_and_block(store: Store, goal: Goal) -> None:
    """B50: a tool that kills its process each time: two go on at once, then it waits, the fifth blocks the goal."""
    reasons = []
    for _ in range(MAX_INTERRUPTIONS):
        wake = begin(store, goal, only_if_due=False)
        reasons.append(wake.goal.wake_reason)
        intend(wake, "shell", prefix=f"w{wake.seq}")
        abandon(store)

    assert skipped(attempt(store, goal)) is SkipReason.BLOCKED
    assert "the process ended 5 times in a row" in now(store, goal).status_detail
    assert reasons == ["created", "INTERRUPTED", "INTERRUPTED", "back-off", "back-off"]


def test_deaths_after_an_outcome_never_block(store: Store, goal: Goal) -> None:
    """A goal that gets a turn done between the deaths goes on."""
    for number in range(MAX_INTERRUPTIONS + 2):
        turn(begin(store, goal), prefix=f"w{number}")
        abandon(store)

    assert begin(store, goal).goal.status is S.ACTIVE


def test_an_outage_before_a_death_does_not_count_as_deaths(store: Store, goal: Goal) -> None:
    """B17: six failures of the provider, then one death: the goal goes on at once, it is not called dead six times."""
    for _ in range(6):
        begin(store, goal, only_if_due=False).close(Exit(R.BACKEND_ERROR, "503", {"kind": "SERVER"}))
    assert now(store, goal).failures == 6
    begin(store, goal, only_if_due=False)
    abandon(store)

    again = begin(store, goal)

    assert (again.goal.status, again.goal.failures) == (S.ACTIVE, 1)


def test_progress_of_a_wakeup_that_died_counts(store: Store, goal: Goal) -> None:
    """What it changed before it died resets the streak like any other progress."""
    begin(store, goal).close(STOPPED_EARLY)
    turn(begin(store, goal, only_if_due=False), result="a new result")
    assert now(store, goal).streak == 1
    abandon(store)

    assert begin(store, goal, only_if_due=False).goal.streak == 0


def holds(pipe: Connection, path: str, goal_id: int) -> None:
    with Store(path) as store:
        wake = begin_wakeup(store, goal_id, FakeRenderer())
        assert isinstance(wake, Wake)
        intend(wake, "shell")
        pipe.send(wake.seq)
        pipe.recv()
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.long
def test_another_process_is_recovered_the_moment_it_dies(workspace: Path, store: Store) -> None:
    """B43 B48: a real owner is named while it lives, and after kill -9 the goal is woken without any manual edit."""
    with Store(store.url) as real:
        goal = new_goal(real, workspace)
        with another(holds, store.url, goal.id) as other:
            assert other.hear() == 1
            found = attempt(real, goal)
            assert skipped(found) is SkipReason.LEASED
            assert isinstance(found, Skip)
            assert str(other.pid) in found.detail
            other.tell()
            other.process.join()

            wake = begin(real, goal)

        assert wake.seq == 2
        assert rows(real, "SELECT outcome FROM tool_calls") == ["skipped"]
        wake.close(GO_ON)


def test_a_second_goal_in_the_same_workspace_is_not_affected(store: Store, workspace: Path) -> None:
    """B10: nothing of one goal's stop or death is seen by another in the same directory."""
    first, second = new_goal(store, workspace), new_goal(store, workspace)
    begin(store, first)
    stop_goal(store, now(store, first), Control.ABORT)
    abandon(store)

    wake = begin(store, second)

    assert wake.boundary() is Control.NONE
    assert replace(wake.goal, spent=second.spent) == replace(now(store, second), spent=second.spent)
