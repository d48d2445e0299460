"""An ending that stands while its wakeup settles: kept, closed with by whoever comes, and gone with the contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from goalmode.domain.exits import Exit, ExitReason, GoalStatus, SkipReason
from goalmode.domain.goal import Control, Goal
from goalmode.domain.memory import MemoryKind, SettlementState
from goalmode.domain.messages import Usage
from goalmode.errors import Fenced, NotAllowed, StoreUnreadable
from goalmode.inspection.show import show
from goalmode.orchestrator.goals import edit_goal, resume_goal, stop_goal
from goalmode.orchestrator.wake import Wake
from goalmode.state import closing, memory
from goalmode.state.checks import CheckResult
from goalmode.state.closing import ClaimSuperseded
from goalmode.state.settlement import Pending
from goalmode.state.store import Store
from tests.orchestrator.builders import abandon, attempt, begin, new_goal, now, skipped, turn
from tests.state.builders import rows

DONE = Exit(ExitReason.CURRENT_TASK_DONE, "Written. (checked)", {"basis": "checked"})
SPENT = Exit(
    ExitReason.GOAL_BUDGET_EXHAUSTED, "turns limit 15, used 15", {"limit": "turns", "wrap_up": "done"}
)
CHECKS = (CheckResult("R1", True, 0), CheckResult("out.txt", True, sha256="ab" * 32))


def holding(store: Store, goal: Goal, exit: Exit = DONE) -> Wake:
    """A wakeup whose owner dies after it has stored its ending as pending."""
    wake = begin(store, goal)
    turn(wake)
    wake.longterm.hold(Pending(exit, CHECKS, wake.goal.revision))
    wake.longterm.attempt(Usage(input=700, output=90))
    abandon(store)
    return wake


def ending(store: Store) -> tuple[str, str]:
    [(reason, detail)] = rows(store, "SELECT exit_reason, exit_detail FROM wakeups")
    return reason, detail


def test_recovery_closes_with_the_pending_ending(store: Store, goal: Goal) -> None:
    """Reason, detail, facts and verified files are those of the claim; what the lost call was to cost is charged."""
    goal = edit_goal(store, goal, deliverables=["out.txt"])
    wake = holding(store, goal)
    before = show(store, goal.id)

    assert skipped(attempt(store, goal)) is SkipReason.DONE

    found = show(store, goal.id)
    assert ending(store) == ("CURRENT_TASK_DONE", "Written. (checked)")
    assert found["wakeups"][0]["exit_facts"] == {"basis": "checked", "settlement": "failed"}
    assert [d["verified_sha256"] for d in found["deliverables"]] == ["ab" * 32]
    assert (before["status"], found["status"]) == ("DONE", "DONE")
    assert before["wakeups"][0]["exit_reason"] == "CURRENT_TASK_DONE"
    assert now(store, goal).settlement is SettlementState.FAILED
    lost = rows(store, "SELECT purpose, state, input, output FROM turns ORDER BY id DESC LIMIT 1")
    assert lost == [("settlement", "lost", 700, 90)]
    assert now(store, goal).spent.turns == 1
    with pytest.raises(Fenced):
        wake.close(DONE)


@pytest.mark.parametrize("state", [SettlementState.DONE, SettlementState.FAILED, SettlementState.SKIPPED])
def test_how_settlement_went_outlives_its_process(store: Store, goal: Goal, state: SettlementState) -> None:
    """A process that dies between settlement and closing leaves no less than it knew."""
    holding(store, goal).longterm.finish(state)

    attempt(store, goal)

    assert now(store, goal).settlement is state
    assert show(store, goal.id)["wakeups"][0]["exit_facts"]["settlement"] == state.value


def test_an_edit_since_makes_it_an_interruption(store: Store, goal: Goal) -> None:
    """The claim was for another contract: the goal goes on, and is due."""
    holding(store, goal)
    edit_goal(store, now(store, goal), objective="Write two.")

    again = begin(store, goal)

    assert again.seq == 2
    assert rows(store, "SELECT exit_reason FROM wakeups ORDER BY seq") == ["INTERRUPTED", None]


def test_an_edit_at_the_same_moment_closes_nothing(
    store: Store, goal: Goal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at the goal and the commit: nothing is closed with a claim that is out of date."""
    holding(store, goal)
    recover = closing.recover

    def edited_first(*args: object, **named: object) -> bool:
        edit_goal(store, now(store, goal), objective="Write two.")
        return recover(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(closing, "recover", edited_first)
    assert skipped(attempt(store, goal)) is SkipReason.SUPERSEDED
    monkeypatch.undo()

    assert rows(store, "SELECT exit_reason FROM wakeups") == [None]
    assert begin(store, goal).seq == 2


@pytest.mark.parametrize("control", [Control.PAUSE, Control.ABORT])
def test_an_accepted_claim_beats_a_stop(store: Store, goal: Goal, control: Control) -> None:
    """Asked for while the owner lived, or after it died."""
    wake = begin(store, goal)
    wake.longterm.hold(Pending(DONE, (), wake.goal.revision))
    stop_goal(store, goal, control)
    abandon(store)
    shown = show(store, goal.id)["status"]
    attempt(store, goal)

    assert (shown, now(store, goal).status) == ("DONE", GoalStatus.DONE)


@pytest.mark.parametrize(
    ("control", "status"),
    [(None, GoalStatus.EXHAUSTED), (Control.PAUSE, GoalStatus.PAUSED), (Control.ABORT, GoalStatus.ABORTED)],
)
def test_a_stop_beats_a_spent_budget(
    store: Store, goal: Goal, control: Control | None, status: GoalStatus
) -> None:
    """The pending ending of a goal that runs until its budget is no claim."""
    wake = begin(store, goal)
    wake.longterm.hold(Pending(SPENT, (), wake.goal.revision))
    if control is not None:
        stop_goal(store, goal, control)
    abandon(store)

    attempt(store, goal)

    assert now(store, goal).status is status
    assert ending(store)[0] == "GOAL_BUDGET_EXHAUSTED"


def test_a_withdrawn_ending_is_none(store: Store, goal: Goal) -> None:
    """After an edit the wakeup goes on; if its process dies then, it was interrupted."""
    wake = begin(store, goal)
    wake.longterm.hold(Pending(DONE, (), wake.goal.revision))
    edit_goal(store, now(store, goal), objective="Write two.")
    wake.boundary()
    with pytest.raises(ClaimSuperseded):
        wake.close(DONE)

    wake.longterm.withdraw()
    turn(wake)
    abandon(store)
    begin(store, goal)

    assert rows(store, "SELECT exit_reason FROM wakeups ORDER BY seq") == ["INTERRUPTED", None]


def test_the_revision_of_the_claim_is_what_counts(store: Store, goal: Goal) -> None:
    """A look at the goal during settlement must not make an old claim a new one."""
    wake = begin(store, goal)
    wake.longterm.hold(Pending(DONE, (), wake.goal.revision))
    wake.boundary()

    assert wake.close(DONE).reason is ExitReason.CURRENT_TASK_DONE


def test_a_pending_ending_of_unknown_shape_is_refused_by_name(store: Store, goal: Goal) -> None:
    """Nothing is guessed: the goal is named, and stays as it is."""
    holding(store, goal)
    rows(store, """UPDATE wakeups SET pending_exit = '{"revision": 1, "reason": "DREAMT"}'""")

    with pytest.raises(StoreUnreadable, match=f"goal {goal.uid}: wakeup 1: pending_exit is of another shape"):
        attempt(store, goal)

    assert rows(store, "SELECT exit_reason FROM wakeups") == [None]


def test_every_write_is_fenced(store: Store, goal: Goal) -> None:
    """Once somebody else has the goal, the old owner can neither remember nor settle."""
    wake = begin(store, goal)
    abandon(store)
    begin(store, goal)
    pending = Pending(DONE, (), 1)

    for write in (
        lambda: wake.longterm.remember(MemoryKind.EXPERIENCE, "x", ""),
        wake.longterm.start,
        lambda: wake.longterm.hold(pending),
        lambda: wake.longterm.attempt(Usage()),
        lambda: wake.longterm.finish(SettlementState.DONE),
        wake.longterm.withdraw,
    ):
        with pytest.raises(Fenced):
            write()
    assert memory.every(store) == []
    assert now(store, goal).settlement is SettlementState.NONE


def test_a_wakeup_replaces_what_it_was_shown_and_no_more(store: Store, goal: Goal) -> None:
    """B145: what another goal kept after the wakeup began is not overwritten by it, until the next one begins."""
    other = begin(store, new_goal(store, Path(goal.workspace), "Another."))
    wake = begin(store, goal)
    other.longterm.remember(MemoryKind.ENVIRONMENT, "port 8080", "")

    with pytest.raises(NotAllowed, match="another goal wrote M1 since this wakeup began"):
        wake.longterm.remember(MemoryKind.ENVIRONMENT, "port 9090", "M1")
    assert [m.label for m in wake.longterm.recall("port")] == ["M1"]
    assert [m.label for m in wake.longterm.current()] == ["M1"]

    abandon(store)
    resume_goal(store, now(store, goal))
    later = begin(store, goal)
    assert later.longterm.remember(MemoryKind.ENVIRONMENT, "port 9090", "M1").memory.label == "M2"
