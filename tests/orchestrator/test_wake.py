"""The ways into and out of a wakeup, recovery included, with any renderer and without a loop."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from goalmode.domain.budget import Limits
from goalmode.domain.exits import Exit, ExitReason, GoalStatus, SkipReason
from goalmode.domain.goal import Control, Goal
from goalmode.errors import Fenced
from goalmode.orchestrator import wake as waking
from goalmode.orchestrator.goals import edit_goal, stop_goal
from goalmode.orchestrator.heartbeat import Heartbeat
from goalmode.orchestrator.skip import Skip
from goalmode.orchestrator.wake import Wake, close_wakeup
from goalmode.state import goals
from goalmode.state.checks import CheckResult
from goalmode.state.closing import ClaimSuperseded
from goalmode.state.journal import TurnOutcome
from goalmode.state.owner import Owner
from goalmode.state.store import Store
from goalmode.testing import ManualClock
from tests.orchestrator.builders import (
    DONE,
    GO_ON,
    STOPPED_EARLY,
    FakeRenderer,
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

R, S = ExitReason, GoalStatus


def test_a_wakeup_from_claim_to_close(store: Store, goal: Goal, clock: ManualClock) -> None:
    """The context is stored as it was rendered, turns and time are charged, and the goal is due again."""
    wake = begin(store, goal)
    assert wake.messages[-1].text == "wakeup 1: Write the report."  # type: ignore[union-attr]
    intend(wake, "shell")
    clock.advance(2)
    finish(wake)
    clock.advance(3)

    stored = close_wakeup(wake, GO_ON)

    found = now(store, goal)
    assert (stored, found.status, found.next_wakeup_at) == (GO_ON, S.ACTIVE, clock.now())
    assert (found.spent.turns, found.spent.wakeups, found.spent.active_seconds) == (1, 1, 5.0)
    assert begin(store, goal).seq == 2


def test_a_conversation_begins_anew_from_the_state(store: Store, goal: Goal, clock: ManualClock) -> None:
    """The state is read again as the running wakeup's: its number, its actions, the ending before it; all is stored."""
    first = begin(store, goal)
    turn(first)
    first.close(GO_ON)
    renderer = FakeRenderer()
    wake = begin(store, goal, renderer)
    turn(wake, prefix="d")
    edit_goal(store, now(store, goal), objective="Write about storms.")
    clock.advance(4)

    wake.rerender(wake.messages[2:], limit=77, turns_left=5, reserve_output=9)

    seen = renderer.seen[-1]
    assert wake.messages[1].text == "wakeup 2 goes on: Write about storms., 5 turns left"  # type: ignore[union-attr]
    assert (wake.context_tokens, wake.goal.revision, wake.goal.spent.active_seconds) == (77, 2, 4.0)
    assert seen.last is not None
    assert (seen.wakeup, seen.last.wakeup, [a.wakeup for a in seen.actions]) == (2, 1, [1, 2])
    assert rows(store, "SELECT n, tokens, messages IS NULL FROM contexts WHERE wakeup = 2 ORDER BY n") == [
        (0, 100, 0),
        (1, 77, 1),
    ]
    reserved = "SELECT reserved_input, reserved_output, inbox_seen FROM wakeups WHERE id = 2"
    assert rows(store, reserved) == [(77, 9, now(store, goal).inbox_head)]


def test_time_asleep_is_no_active_time(store: Store, goal: Goal, clock: ManualClock) -> None:
    """B30: 17 hours with a closed lid between two turns cost one second; the goal is not exhausted."""
    wake = begin(store, goal)
    turn(wake)
    clock.advance(1, wall=17 * 3_600)

    assert wake.boundary() is Control.NONE
    assert wake.goal.spent.active_seconds == 1.0
    turn(wake, prefix="d")
    wake.close(GO_ON)
    assert now(store, goal).spent.active_seconds == 1.0


def test_two_processes_wake_one_goal(store: Store, goal: Goal) -> None:
    """B48: the second is told who has it, and changes nothing."""
    begin(store, goal)
    before = dump(store)

    found = attempt(store, goal)

    assert skipped(found) is SkipReason.LEASED
    assert isinstance(found, Skip)
    assert f"{store.owner.name} runs wakeup 1" in found.detail
    assert str(os.getpid()) in found.detail
    assert dump(store) == before


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (S.WAITING_USER, SkipReason.WAITING),
        (S.PAUSED, SkipReason.PAUSED),
        (S.BLOCKED, SkipReason.BLOCKED),
        (S.EXHAUSTED, SkipReason.EXHAUSTED),
        (S.DONE, SkipReason.DONE),
        (S.ABORTED, SkipReason.ABORTED),
    ],
)
def test_a_goal_that_is_not_active_is_skipped(
    store: Store, goal: Goal, status: GoalStatus, reason: SkipReason
) -> None:
    """B122: each status has its word, and nothing is stored or rendered."""
    rows(store, "UPDATE goals SET status = ?, status_detail = 'because'", status.value)
    renderer, before = FakeRenderer(), dump(store)

    assert attempt(store, goal, renderer) == Skip(reason, "because")
    assert (renderer.seen, dump(store)) == ([], before)


def test_a_goal_that_is_not_due_is_skipped(store: Store, goal: Goal, clock: ManualClock) -> None:
    """With the time it will be; asked for by a user it is woken all the same."""
    begin(store, goal).close(STOPPED_EARLY)
    due = clock.now() + timedelta(seconds=30)

    found = attempt(store, goal)
    assert isinstance(found, Skip)
    assert (found.reason, due <= (found.due_at or due) <= due + timedelta(seconds=7.5)) == (
        SkipReason.NOT_DUE,
        True,
    )

    begin(store, goal, only_if_due=False)


def test_a_workspace_on_another_host_is_left_alone(store: Store, goal: Goal) -> None:
    """Workers claim only what they can reach, and recover only that."""
    begin(store, goal)
    with Store(store.url, clock=store.clock, owner=Owner.current("elsewhere")) as there:
        assert skipped(attempt(there, goal)) is SkipReason.LEASED
        rows(store, "UPDATE wakeups SET lease_ms = 0")
        assert skipped(attempt(there, goal)) is SkipReason.OTHER_HOST
    assert rows(store, "SELECT exit_reason FROM wakeups") == [None]


def test_a_claim_is_superseded_by_what_happens_while_rendering(store: Store, goal: Goal) -> None:
    """An edit, a pause, a delete or another wakeup between snapshot and claim: nothing is stored by the loser."""

    def edit() -> None:
        edit_goal(store, now(store, goal), objective="Write two.")

    assert skipped(attempt(store, goal, FakeRenderer(meanwhile=edit))) is SkipReason.SUPERSEDED
    assert rows(store, "SELECT count(*) FROM wakeups") == [0]

    winner: list[Wake] = []
    found = attempt(store, goal, FakeRenderer(meanwhile=lambda: winner.append(begin(store, goal))))
    assert skipped(found) is SkipReason.SUPERSEDED
    assert winner[0].goal.objective == "Write two."
    winner[0].close(GO_ON)

    stop: Callable[[], object] = lambda: stop_goal(store, now(store, goal), Control.PAUSE)  # noqa: E731
    assert skipped(attempt(store, goal, FakeRenderer(meanwhile=stop))) is SkipReason.SUPERSEDED
    assert skipped(attempt(store, goal)) is SkipReason.PAUSED


def test_nothing_is_rendered_from_the_middle_of_another_wakeup(
    store: Store, goal: Goal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B48: it begins after the first look and ends before the claim: what was read of it must not be a context."""
    others: list[Wake] = []

    def begins(*_: object) -> None:
        monkeypatch.undo()
        others.append(begin(store, goal))

    monkeypatch.setattr(waking, "notice", begins)
    renderer = FakeRenderer(meanwhile=lambda: others[0].close(GO_ON))

    assert skipped(attempt(store, goal, renderer)) is SkipReason.SUPERSEDED
    assert renderer.seen == []
    others[0].close(GO_ON)


def test_a_goal_that_was_woken_meanwhile_is_not_woken_before_it_is_due_again(
    store: Store, goal: Goal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process's whole wakeup comes after the first look, and its ending asks for a back-off."""

    def whole(*_: object, **__: object) -> None:
        monkeypatch.undo()
        begin(store, goal).close(STOPPED_EARLY)

    monkeypatch.setattr(waking.answers, "answer_by_default", whole)

    assert skipped(attempt(store, goal)) is SkipReason.NOT_DUE


def test_the_context_is_rendered_without_the_write_lock(store: Store, goal: Goal) -> None:
    """Others go on writing meanwhile."""
    other: list[Goal] = []

    begin(store, goal, FakeRenderer(meanwhile=lambda: other.append(new_goal(store, Path(goal.workspace)))))

    assert len(other) == 1


def test_a_goal_whose_limit_is_used_up_makes_no_call(store: Store, workspace: Path) -> None:
    """B25: used exactly, or a limit of 0: the wakeup reserves nothing, counts as none, and knows its ending."""
    for limits in (Limits(turns=0), Limits(tokens=0), Limits(wakeups=0)):
        goal = new_goal(store, workspace, limits=limits)
        wake = begin(store, goal)

        assert wake.over is not None
        assert rows(
            store, "SELECT reserved_input + reserved_output FROM wakeups WHERE goal = ?", goal.id
        ) == [0]
        assert now(store, goal).spent.wakeups == 0
        wake.close(Exit(R.GOAL_BUDGET_EXHAUSTED, "a limit"))
        assert now(store, goal).status is S.EXHAUSTED


def test_three_early_stops_block_and_progress_in_between_does_not(store: Store, goal: Goal) -> None:
    """The streak lives in the store, over wakeups and processes."""
    for _ in range(2):
        begin(store, goal, only_if_due=False).close(STOPPED_EARLY)
    wake = begin(store, goal, only_if_due=False)
    turn(wake, result="news")
    wake.close(STOPPED_EARLY)
    assert (now(store, goal).status, now(store, goal).streak) == (S.ACTIVE, 0)

    for number in range(3):
        wake = begin(store, goal, only_if_due=False)
        turn(wake, result="news", prefix=f"again{number}")  # The same call with the same result is no news.
        wake.close(STOPPED_EARLY)

    assert (now(store, goal).status, now(store, goal).streak) == (S.BLOCKED, 3)
    assert skipped(attempt(store, goal)) is SkipReason.BLOCKED


def test_a_check_that_goes_on_holding_is_no_progress(store: Store, workspace: Path) -> None:
    """9.6: claims rejected for R2 while R1 holds each time do not keep a stuck goal going."""
    goal = new_goal(store, workspace, deliverables=("a.md",))
    checks = [CheckResult("a.md", True, sha256="11"), CheckResult("R2", False, 1)]
    for number in range(4):
        wake = begin(store, goal, only_if_due=False)
        intend(wake, "complete", prefix=f"w{number}")
        wake.outcome(TurnOutcome(checks=checks))
        wake.close(Exit(R.NO_PROGRESS, "5 rejected claims"))
        streak = now(store, goal).streak
        assert streak == number

    assert now(store, goal).status is S.BLOCKED


def test_a_claim_edited_away_is_judged_again(store: Store, goal: Goal) -> None:
    """Success checked at the old revision closes nothing; after the boundary it is known, and closes."""
    wake = begin(store, goal)
    edit_goal(store, now(store, goal), objective="Write two.")

    with pytest.raises(ClaimSuperseded):
        wake.close(DONE)

    wake.boundary()
    assert wake.goal.objective == "Write two."
    assert wake.close(DONE) == DONE
    assert now(store, goal).status is S.DONE


def test_a_stop_is_seen_and_beats_the_ending(store: Store, goal: Goal) -> None:
    """B29: the watcher sees it at once, the boundary too, and what was to be stored gives way."""
    wake = begin(store, goal)
    stop_goal(store, now(store, goal), Control.PAUSE)

    assert (wake.control(), wake.boundary()) == (Control.PAUSE, Control.PAUSE)
    assert wake.close(GO_ON).reason is R.USER_ABORTED
    assert now(store, goal).status is S.PAUSED


def test_a_deleted_goal_ends_its_wakeup(store: Store, goal: Goal) -> None:
    """Nobody is left to close it for; the watcher is told to abort."""
    wake = begin(store, goal)
    goals.delete(store, goal)

    assert wake.control() is Control.ABORT
    with pytest.raises(Fenced):
        turn(wake)


def test_the_first_reservation_is_what_the_first_call_may_cost(store: Store, goal: Goal) -> None:
    """The context's tokens and the whole output allowance."""
    begin(store, goal)

    assert rows(store, "SELECT reserved_input, reserved_output FROM wakeups") == [(100, 500)]


def test_a_lost_lease_ends_the_tools(store: Store, goal: Goal, clock: ManualClock) -> None:
    """The heartbeat's word reaches the wakeup: it is lost, before it tries to write."""
    heartbeat = Heartbeat(store, interval=3_600)
    wake = begin(store, goal, heartbeat=heartbeat)
    clock.advance(61)
    begin(store, goal)

    heartbeat.beat()

    assert wake.lost


def test_the_gate_of_a_wakeup_knows_its_fence(store: Store, goal: Goal, clock: ManualClock) -> None:
    """Another owner's claim closes it."""
    wake = begin(store, goal)
    with wake.gate.enter("c0"):
        pass
    clock.advance(61)
    begin(store, goal)

    with pytest.raises(Fenced), wake.gate.enter("c1"):
        pytest.fail("entered")
