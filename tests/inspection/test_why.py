"""What `why` gives as evidence for an ending, and what would make the goal run again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from goalmode.domain.exits import Exit, ExitReason, GoalStatus
from goalmode.domain.goal import Control, Goal
from goalmode.domain.questions import Asking, QuestionKind
from goalmode.errors import BadInput
from goalmode.inspection.going_on import needs
from goalmode.inspection.why import why
from goalmode.orchestrator.goals import stop_goal
from goalmode.state.checks import CheckResult
from goalmode.state.store import Store
from tests.orchestrator.builders import DONE, GO_ON, STOPPED_EARLY, begin, now, turn

R = ExitReason


def end(store: Store, goal: Goal, exit: Exit, *checks: CheckResult) -> None:
    wake = begin(store, goal, only_if_due=False)
    turn(wake)
    wake.close(exit, checks)


def test_the_evidence_is_the_last_reply_the_limit_and_the_guards(store: Store, goal: Goal) -> None:
    """Stop reason, raw and normalised, what was called, the limit with its value, the bounds of the guards."""
    facts = {"limit": "max_turns", "value": 3, "used": 3}
    end(store, goal, replace(GO_ON, facts=facts))
    ending = why(store, goal.id)["ending"]

    assert ending["last_turn"]["seq"] == 1
    assert ending["last_turn"]["stop_reason"] == "TOOL_USE"
    assert "stop_raw" in ending["last_turn"]
    assert ending["last_turn"]["calls"] == [{"tool": "shell", "brief": "", "outcome": "success"}]
    assert ending["limit"] == facts
    assert (ending["recoveries"], ending["max_recoveries"], ending["early_turns"]) == (0, 2, 3)


def test_any_wakeup_can_be_asked_about(store: Store, goal: Goal) -> None:
    """An old one's own evidence, beside the goal as it is now; a number that is none is refused."""
    end(store, goal, GO_ON)
    end(store, goal, STOPPED_EARLY)
    found = why(store, goal.id, wakeup=1)

    assert found["ending"]["exit_reason"] == "MAX_TURNS_EXCEEDED"
    assert found["streak"] == 1
    with pytest.raises(BadInput, match="1 to 2"):
        why(store, goal.id, wakeup=3)


def test_a_wakeup_without_any_call_has_no_last_reply(store: Store, goal: Goal) -> None:
    """Nothing is made up."""
    begin(store, goal).close(GO_ON)

    ending = why(store, goal.id)["ending"]
    assert (ending["last_turn"], ending["limit"], ending["checks"]) == (None, None, [])


def test_what_makes_it_run_again(store: Store, goal: Goal) -> None:
    """In words, for a goal as it goes through its life."""
    assert "it is due" in why(store, goal.id)["needs"]
    wake = begin(store, goal)
    assert "it runs" in why(store, goal.id)["needs"]
    wake.close(STOPPED_EARLY)
    assert "it is due at " in why(store, goal.id)["needs"]
    stop_goal(store, now(store, goal), Control.PAUSE)
    found = why(store, goal.id)
    assert (found["needs"], found["remedy"]) == ("a user lets it go on", f"goalmode resume {goal.uid}")


def test_a_question_is_named_with_the_time_of_its_default(store: Store, goal: Goal) -> None:
    """An answer to which question, and from when on none is needed."""
    asking = Asking(QuestionKind.INPUT, "Which?", default="red", default_at=store.clock.now())
    end(store, goal, Exit(R.NEEDS_USER_INPUT, "Which?", question=asking))
    found = why(store, goal.id)

    assert found["needs"].startswith("an answer to Q1; the default stands from 20")
    assert found["remedy"].startswith(f"goalmode answer {goal.uid} ")


@pytest.mark.parametrize("status", GoalStatus)
def test_every_status_has_a_sentence(goal: Goal, status: GoalStatus) -> None:
    """None is left without a word, and none names a command: that stands beside it."""
    told = needs(
        replace(goal, status=status), {"limit": "turns", "value": 5, "used": 6}, (), running=False, due=False
    )

    assert told
    assert (status is GoalStatus.EXHAUSTED) == ("turns 5, used 6" in told)


def test_a_goal_that_is_done_needs_another_contract(store: Store, goal: Goal) -> None:
    """And says by which command."""
    end(store, goal, DONE)
    found = why(store, goal.id)

    assert "reopens" in found["needs"]
    assert found["remedy"] == f"goalmode edit {goal.uid}"
