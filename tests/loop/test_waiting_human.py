"""A tool hands the goal over to a person: the wakeup ends, the goal waits, and an answer makes it go on."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from goalmode.domain.exits import ExitReason, GoalStatus
from goalmode.errors import NotAllowed
from goalmode.inspection.show import show
from goalmode.inspection.turns import turns
from goalmode.inspection.why import why
from goalmode.orchestrator.goals import resume_goal
from goalmode.testing import call, calls
from goalmode.tools.registry import Tool, tool

Make = Callable[..., Any]

GIVEN = {"action": "sign the contract", "wait_reason": "only a person may", "session_id": "sess-42"}
WORK = call("shell", command="echo signed > out.txt")
CLAIM = call("complete", status="success", summary="Signed.")


def ask_for(**given: Any) -> Tool:
    """A tool that says `waiting_human` with these fields."""

    @tool(may_hand_over=True)
    def ask_a_person() -> str:
        """Ask somebody."""
        return json.dumps({"status": "waiting_human", **given})

    return ask_a_person


def test_valid_waiting_human(make: Make) -> None:
    """It ends the wakeup after its siblings, is stored and shown with the session, and an answer makes it go on."""
    world = make(deliverables=("out.txt",), tools=(ask_for(**GIVEN),))

    ending = world.wake(
        [calls(call("list_files"), call("ask_a_person"), call("shell", command="touch too_late"))]
    )

    assert (ending.reason, dict(ending.facts)) == (ExitReason.WAITING_HUMAN, GIVEN)
    assert (world.now.status, world.now.next_wakeup_at) == (GoalStatus.WAITING_USER, None)
    assert not (world.workspace / "too_late").exists()
    [turn] = turns(world.store, world.now)
    assert [c["outcome"] for c in turn["calls"]] == ["success", "success", "skipped"]

    told = "sign the contract: only a person may (session sess-42)"
    shown = show(world.store, world.goal.id)
    assert (shown["status"], shown["status_reason"]) == ("WAITING_USER", told)
    assert shown["wakeups"][0]["exit_reason"] == "WAITING_HUMAN"
    assert GIVEN.items() <= shown["wakeups"][0]["exit_facts"].items()
    because = why(world.store, world.goal.id)
    assert because["ending"]["exit_code"] == 31
    assert because["ending"]["sentence"] == f"WAITING_HUMAN: a tool handed over to a person ({told})"
    assert GIVEN.items() <= because["ending"]["facts"].items()
    assert because["remedy"] == f"goalmode answer {world.now.uid} TEXT"

    with pytest.raises(NotAllowed, match="waits for an answer"):
        resume_goal(world.store, world.now)
    resume_goal(world.store, world.now, answer="It is signed.")
    assert world.now.status is GoalStatus.ACTIVE
    assert world.wake([WORK, CLAIM]).reason is ExitReason.CURRENT_TASK_DONE
    assert "It is signed." in world.told(0)
    assert told in world.told(0)


def test_waiting_human_without_session_id_is_an_error_result(make: Make) -> None:
    """The model is told what is missing, and the same wakeup goes on to its end."""
    given = {name: value for name, value in GIVEN.items() if name != "session_id"}
    world = make(deliverables=("out.txt",), tools=(ask_for(**given),))

    ending = world.wake([call("ask_a_person"), WORK, CLAIM])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert "the result says waiting_human, but sessionId is missing; nobody is waited for" in world.told(1)
    assert turns(world.store, world.now)[0]["calls"][0]["outcome"] == "failed"


@pytest.mark.parametrize("session", ["", "  ", 7, None, ["sess-42"]], ids=repr)
def test_a_session_id_that_is_no_text_ends_nothing(session: Any, make: Make) -> None:
    """A goal must not wait for a session that nobody can find."""
    world = make(tools=(ask_for(**{**GIVEN, "session_id": session}),), max_turns=1)

    ending = world.wake([call("ask_a_person")])

    assert ending.reason is ExitReason.MAX_TURNS_EXCEEDED
    assert world.now.status is GoalStatus.ACTIVE


def test_a_claim_beside_a_hand_over_is_not_judged(make: Make) -> None:
    """A claim made before anybody has acted is skipped, even where every check would hold."""
    world = make(deliverables=("out.txt",), tools=(ask_for(**GIVEN),))

    ending = world.wake([calls(WORK, CLAIM, call("ask_a_person"))])

    assert ending.reason is ExitReason.WAITING_HUMAN
    [turn] = turns(world.store, world.now)
    assert {c["tool"]: c["outcome"] for c in turn["calls"]} == {
        "shell": "success",
        "complete": "skipped",
        "ask_a_person": "success",
    }


def test_each_hand_over_of_a_goal_wants_an_answer_of_its_own(make: Make) -> None:
    """B127: asked again for a new matter, the goal waits again; the old answer is not taken for a new one."""
    world = make(tools=(ask_for(**GIVEN),))
    world.wake([call("ask_a_person")])
    resume_goal(world.store, world.now, answer="Signed.")

    ending = world.wake([call("ask_a_person")])

    assert ending.reason is ExitReason.WAITING_HUMAN
    assert world.now.status is GoalStatus.WAITING_USER
