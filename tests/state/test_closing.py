"""Closing a wakeup: one commit, in which a user's word that came meanwhile is not lost."""

from __future__ import annotations

from datetime import timedelta

import pytest

from goalmode.domain.calls import CallOutcome
from goalmode.domain.exits import Exit, ExitReason, GoalStatus
from goalmode.domain.goal import Control, Goal
from goalmode.state import goals, journal, notes
from goalmode.state.checks import CheckResult
from goalmode.state.closing import Aftermath, ClaimSuperseded
from goalmode.state.goals import Edit
from goalmode.state.store import Store
from goalmode.state.wakeups import latch_wrap_up
from goalmode.testing import ManualClock
from tests.state.builders import (
    DONE,
    GO_ON,
    RESERVE,
    claim,
    close,
    dump,
    finished,
    go_on,
    intent,
    new_goal,
    record,
    reply,
    rows,
    take_turn,
)

ASKS = Exit(ExitReason.NEEDS_USER_INPUT, "which station?")
WAITING = Aftermath(GoalStatus.WAITING_USER, "which station?", None, "", 0, 0)


def now(store: Store, goal: Goal) -> Goal:
    return goals.get(store, goal.id)


def say(store: Store, goal: Goal, kind: str, text: str = "hello") -> None:
    with store.writing() as connection:
        notes.post(store, connection, goal.id, kind, text, store.clock.now())


def test_a_close_stores_ending_and_aftermath_in_one_commit(store: Store, clock: ManualClock) -> None:
    """Exit reason, detail and facts with the wakeup; status, next wakeup and counts with the goal; nothing reserved."""
    goal = new_goal(store)
    claimed = claim(store, goal)
    wake_at = clock.now() + timedelta(seconds=30)

    close(store, claimed, GO_ON, Aftermath(GoalStatus.ACTIVE, "", wake_at, "back-off", 2, 1))

    found = now(store, goal)
    assert (found.status, found.next_wakeup_at, found.wake_reason) == (GoalStatus.ACTIVE, wake_at, "back-off")
    assert (found.streak, found.failures) == (2, 1)
    assert rows(store, "SELECT exit_reason, exit_detail, reserved_input, reserved_output FROM wakeups") == [
        ("MAX_TURNS_EXCEEDED", "turn quota 3, used 3", 0, 0)
    ]


@pytest.mark.parametrize("kind", ["note", "answer"])
@pytest.mark.parametrize("after", [None, WAITING], ids=["backing off", "waiting"])
def test_what_the_user_says_during_a_wakeup_makes_the_goal_due(
    store: Store, clock: ManualClock, kind: str, after: Aftermath | None
) -> None:
    """B14: an answer or note that lands before the close is not lost: the next wakeup is now, not after the wait."""
    goal = new_goal(store)
    claimed = claim(store, goal)
    say(store, goal, kind)
    clock.advance(5)

    close(store, claimed, ASKS if after else GO_ON, after or go_on(store, seconds=600))

    found = now(store, goal)
    assert (found.status, found.next_wakeup_at) == (GoalStatus.ACTIVE, clock.now())


@pytest.mark.parametrize("status", [GoalStatus.BLOCKED, GoalStatus.EXHAUSTED, GoalStatus.DONE])
def test_a_note_does_not_undo_an_ending(store: Store, status: GoalStatus) -> None:
    """What needs a resume or a raised limit still does."""
    goal = new_goal(store)
    claimed = claim(store, goal)
    say(store, goal, "note")

    close(store, claimed, GO_ON, Aftermath(status, "why", None, "", 0, 0))

    assert now(store, goal).status is status


def test_what_was_said_before_the_wakeup_is_no_news(store: Store, clock: ManualClock) -> None:
    """It was in the context: the back-off stays."""
    goal = new_goal(store)
    say(store, goal, "note")
    after = go_on(store, seconds=600)

    close(store, claim(store, goal), GO_ON, after)

    assert now(store, goal).next_wakeup_at == after.next_wakeup_at


def test_an_edit_the_wakeup_did_not_see_makes_the_goal_due(store: Store, clock: ManualClock) -> None:
    """The question of a model that knows only the old contract does not keep the goal waiting."""
    goal = new_goal(store)
    claimed = claim(store, goal)
    goals.edit(store, goal, Edit(1, "Write two."), now=clock.now())

    close(store, claimed, ASKS, WAITING, revision=1)

    assert now(store, goal).status is GoalStatus.ACTIVE


def test_an_edit_the_wakeup_did_see_leaves_its_question_open(store: Store, clock: ManualClock) -> None:
    """A model that was told of the edit and then asks gets its answer, not another wakeup."""
    goal = new_goal(store)
    claimed = claim(store, goal)
    goals.edit(store, goal, Edit(1, "Write two."), now=clock.now())

    close(store, claimed, ASKS, WAITING, revision=2)

    assert now(store, goal).status is GoalStatus.WAITING_USER


@pytest.mark.parametrize(
    ("control", "status"), [(Control.PAUSE, GoalStatus.PAUSED), (Control.ABORT, GoalStatus.ABORTED)]
)
def test_a_stop_beats_every_other_ending(store: Store, control: Control, status: GoalStatus) -> None:
    """B118: the wakeup is stored as USER_ABORTED, the goal stays stopped, and the request is used up."""
    goal = new_goal(store)
    claimed = claim(store, goal)
    goals.stop(store, goal, control, now=store.clock.now())

    stored, after = close(store, claimed, ASKS, WAITING)

    assert (stored.reason, after.status) == (ExitReason.USER_ABORTED, status)
    found = now(store, goal)
    assert (found.status, found.control, found.next_wakeup_at) == (status, Control.NONE, None)
    assert rows(store, "SELECT exit_reason FROM wakeups") == ["USER_ABORTED"]


def test_success_beats_a_stop(store: Store) -> None:
    """A claim that stood is not taken back by a pause that came at the same moment."""
    goal = new_goal(store)
    claimed = claim(store, goal)
    goals.stop(store, goal, Control.PAUSE, now=store.clock.now())

    stored, _ = close(store, claimed, DONE, finished(store))

    assert stored.reason is ExitReason.CURRENT_TASK_DONE
    assert (now(store, goal).status, now(store, goal).control) == (GoalStatus.DONE, Control.NONE)


def test_a_claim_checked_at_another_revision_closes_nothing(store: Store, clock: ManualClock) -> None:
    """The contract was edited while it was checked: the claim must be judged again."""
    goal = new_goal(store)
    claimed = claim(store, goal)
    goals.edit(store, goal, Edit(1, "Write two."), now=clock.now())
    before = dump(store)

    with pytest.raises(ClaimSuperseded):
        close(store, claimed, DONE, finished(store), revision=1)

    assert dump(store) == before
    close(store, claimed, DONE, finished(store), revision=2)
    assert now(store, goal).status is GoalStatus.DONE


def test_an_edit_just_after_success_reopens_the_goal(store: Store, clock: ManualClock) -> None:
    """A user who read the goal while it was active still gets his edit worked on."""
    seen_active = new_goal(store)
    close(store, claim(store, seen_active), DONE, finished(store))

    goals.edit(store, seen_active, Edit(1, "Write two."), now=clock.now())

    found = now(store, seen_active)
    assert (found.status, found.next_wakeup_at, found.wake_reason) == (
        GoalStatus.ACTIVE,
        clock.now(),
        "edited",
    )


def test_a_close_leaves_no_call_without_an_outcome(store: Store) -> None:
    """Of a turn that was never finished, what ran keeps its result and the rest was skipped."""
    claimed = claim(store, new_goal(store))
    turn = intent(store, claimed, reply("shell", "shell"))
    journal.result(store, claimed, turn, record("c0"))

    close(store, claimed)

    assert rows(store, "SELECT outcome FROM tool_calls ORDER BY position") == ["success", "skipped"]
    assert rows(store, "SELECT state FROM turns") == ["done"]


def test_a_call_gets_exactly_one_outcome(store: Store) -> None:
    """What was committed first stays."""
    claimed = claim(store, new_goal(store))
    turn = intent(store, claimed, reply("shell"))
    journal.result(store, claimed, turn, record("c0", shown="first"))

    late = record("c0", shown="second")
    journal.result(store, claimed, turn, late)

    assert rows(store, "SELECT outcome, result_bytes FROM tool_calls") == [(CallOutcome.SUCCESS, late.size)]
    assert rows(store, "SELECT count(*) FROM tool_calls WHERE result_sha = ?", journal.sha("first")) == [1]


def test_success_marks_the_deliverables_it_was_accepted_with(store: Store) -> None:
    """The verified hash is the one the gate saw, and only a claim that stood sets it."""
    goal = new_goal(store, deliverables=("a.md",))
    seen = [CheckResult("a.md", True, sha256="11")]

    close(store, claim(store, goal), GO_ON, checks=seen)
    assert now(store, goal).deliverables[0].sha_verified is None

    close(store, claim(store, goal), DONE, finished(store), checks=seen)
    assert now(store, goal).deliverables[0].sha_verified == "11"


def test_the_wrap_up_is_latched_once_for_each_revision_of_the_limits(
    store: Store, clock: ManualClock
) -> None:
    """9.5: a second wrap-up of one limits revision is refused, nothing reserved; a raised limit allows one more."""
    goal = new_goal(store)
    claimed = claim(store, goal)
    take_turn(store, claimed, 1)

    assert journal.reserve(store, claimed, RESERVE, wrap_up=True)
    rows(store, "UPDATE wakeups SET reserved_input = 7")
    assert not journal.reserve(store, claimed, RESERVE, wrap_up=True)
    assert rows(store, "SELECT reserved_input FROM wakeups") == [7]

    goals.make_due(store, goal, now=clock.now(), reason="resumed", limits=goal.limits)
    assert journal.reserve(store, claimed, RESERVE, wrap_up=True)
    with store.writing() as connection:
        assert not latch_wrap_up(connection, goal.id)


def test_the_wrap_up_latch_survives_the_process(store: Store, clock: ManualClock) -> None:
    """It is committed with the reservation, before the call is sent: a crash in it leaves no second one."""
    goal = new_goal(store)
    journal.reserve(store, claim(store, goal), RESERVE, wrap_up=True)

    with Store(store.url, readonly=True) as later:
        found = goals.get(later, goal.id)

    assert (found.wrapped_limits_revision, found.limits_revision) == (1, 1)
