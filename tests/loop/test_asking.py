"""The model asks: what makes a question, how the goal waits for its answer, and how the work goes on with it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from goalmode.domain.exits import ExitReason, GoalStatus, SkipReason
from goalmode.domain.goal import Control
from goalmode.domain.questions import MAX_ANSWER, MAX_OPTION, MAX_OPTIONS, Asking, QuestionKind
from goalmode.domain.workflow import Movement, Workflow
from goalmode.inspection.questions import of_goal
from goalmode.inspection.show import show
from goalmode.loop.act import MAX_FAILED_CONTROLS
from goalmode.orchestrator.goals import stop_goal
from goalmode.orchestrator.questions import answer_question
from goalmode.orchestrator.skip import Skip
from goalmode.state import questions
from goalmode.testing import call, say

Make = Callable[..., Any]

WORK = call("shell", command="echo x >> log.txt")
CLAIM = call("complete", status="success", summary="The log is there.", evidence=["log.txt"])


def ask(**more: Any) -> Any:
    given = {"missing_info": "Which port?", "why_no_default": "It is printed.", **more}
    return call("complete", status="needs_user_input", summary="?", **given)


def asked(world: Any) -> list[dict[str, Any]]:
    return of_goal(world.store, world.now)


def test_a_question_is_stored_with_all_that_was_said(make: Make) -> None:
    """Text, reason, options, default and the time at which it stands, counted from the moment it was asked."""
    world = make(max_turns=5)

    ending = world.wake([WORK, ask(options=["8080", "9090"], default="8080", default_after_seconds=60)])

    at = world.clock.now() + timedelta(seconds=60)
    asking = Asking(QuestionKind.INPUT, "Which port?", "It is printed.", ("8080", "9090"), "8080", at)
    assert (ending.reason, ending.question) == (ExitReason.NEEDS_USER_INPUT, asking)
    with world.store.reading() as connection:
        [stored] = questions.of_goal(connection, world.now)
    assert (stored.asking, stored.wakeup) == (asking, 1)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"options": [" "]}, "options: each is a text that is not blank"),
        ({"options": ["x" * (MAX_OPTION + 1)]}, f"of at most {MAX_OPTION} characters"),
        ({"options": ["a", "a "]}, "options: one of them is given twice"),
        ({"options": [str(n) for n in range(MAX_OPTIONS + 1)]}, f"options: at most {MAX_OPTIONS}, not 21"),
        ({"options": "8080"}, "options"),
        ({"options": [8080]}, "options"),
        ({"default": "8080"}, "default and default_after_seconds belong together"),
        ({"default_after_seconds": 60}, "default and default_after_seconds belong together"),
        ({"default": " ", "default_after_seconds": 60}, "default and default_after_seconds belong together"),
        ({"default": "8080", "default_after_seconds": 59}, "must be between 60 and 2592000, not 59"),
        ({"default": "8080", "default_after_seconds": 2_592_001}, "must be between 60 and 2592000"),
        ({"default": "8080", "default_after_seconds": "60"}, "default_after_seconds"),
        ({"default": "8080", "default_after_seconds": True}, "default_after_seconds"),
        (
            {"default": "x" * (MAX_ANSWER + 1), "default_after_seconds": 60},
            f"at most {MAX_ANSWER} characters",
        ),
    ],
    ids=lambda given: str(given)[:50],
)
def test_a_choice_that_is_none_is_an_error_result(make: Make, given: dict[str, Any], told: str) -> None:
    """The model is told what would be right; nobody is asked, and the same wakeup goes on."""
    world = make(deliverables=("log.txt",))

    ending = world.wake([ask(**given), WORK, CLAIM])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert told in world.requests[1].messages[-1].text
    assert asked(world) == []


@pytest.mark.parametrize(
    "given",
    [
        {"options": []},
        {"options": None, "default": None, "default_after_seconds": None},
        {"options": ["x" * MAX_OPTION], "default": "x" * MAX_ANSWER, "default_after_seconds": 60},
        {
            "options": [str(n) for n in range(MAX_OPTIONS)],
            "default": "other",
            "default_after_seconds": 2_592_000,
        },
    ],
    ids=["no options", "null", "longest", "most"],
)
def test_a_choice_at_its_bounds_is_asked(make: Make, given: dict[str, Any]) -> None:
    """What is not given is not asked for."""
    world = make()

    assert world.wake([ask(**given)]).reason is ExitReason.NEEDS_USER_INPUT
    [question] = asked(world)
    assert question["options"] == list(given["options"] or ())
    assert question["default"] == (given.get("default") or "")


@pytest.mark.parametrize(
    "given",
    [
        {"missing_info": None},
        {"why_no_default": None},
        {"missing_info": " ", "why_no_default": "\n"},
        {"missing_info": 7, "why_no_default": ["x"]},
    ],
    ids=str,
)
def test_an_incomplete_request_asks_nobody(make: Make, given: dict[str, Any]) -> None:
    """B126: it is refused with what to do, the goal never waits, and the work goes on to its end."""
    world = make(deliverables=("log.txt",))

    ending = world.wake([ask(**given), WORK, CLAIM])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert "missing_info" in world.requests[1].messages[-1].text
    assert asked(world) == []
    assert [w["exit_reason"] for w in show(world.store, world.goal.id)["wakeups"]] == ["CURRENT_TASK_DONE"]


def test_incomplete_requests_without_end_are_bounded(make: Make) -> None:
    """B126: a model that only ever asks wrongly ends its wakeup as NO_PROGRESS, not waiting."""
    world = make()

    ending = world.wake([ask(missing_info=None)] * MAX_FAILED_CONTROLS)

    assert ending.reason is ExitReason.NO_PROGRESS
    assert (world.now.status, asked(world)) == (GoalStatus.ACTIVE, [])


def test_a_goal_waits_and_goes_on_with_its_answer(make: Make) -> None:
    """B122: not done but waiting; no request meanwhile; after the answer one wakeup that knows question and answer."""
    world = make(deliverables=("log.txt",))
    world.wake([WORK, WORK, WORK, ask()])
    assert world.now.status is GoalStatus.WAITING_USER

    for _ in range(5):
        world.clock.advance(600)
        skip = world.begin()
        assert isinstance(skip, Skip)
        assert (skip.reason, skip.due_at) == (SkipReason.WAITING, None)
    answer_question(world.store, world.now, "8080, says the owner")
    assert world.now.next_wakeup_at == world.clock.now()
    world.wake([WORK, CLAIM])

    assert "] Which port?\n  answer: 8080, says the owner\n" in world.told(0)
    assert "answered by the user" in world.told(0)
    assert [w["exit_reason"] for w in show(world.store, world.goal.id)["wakeups"]] == [
        "NEEDS_USER_INPUT",
        "CURRENT_TASK_DONE",
    ]


def test_work_after_an_answer_is_never_done_by_a_waiting_goal(make: Make) -> None:
    """B14: between the turns the status is active and the counters rise; no tool runs under the old status."""
    world = make(max_turns=3)
    world.wake([ask()])
    answer_question(world.store, world.now, "8080")
    seen: list[tuple[str, int, int]] = []

    def look(event: Any) -> None:
        if event.kind in ("tool_started", "turn"):
            found = show(world.store, world.goal.id)
            seen.append((found["status"], found["spent"]["turns"], found["spent"]["tokens"]))

    world.wake([WORK, WORK, WORK, say("saved")], on_event=look)

    assert {status for status, _, _ in seen} == {"ACTIVE"}
    turns, tokens = [t for _, t, _ in seen], [t for _, _, t in seen]
    assert (turns[0], turns[-1]) == (2, 4)
    assert (turns, tokens) == (sorted(turns), sorted(tokens))


def test_an_old_answer_is_not_taken_for_a_new_question(make: Make) -> None:
    """B127: the same words asked for a new matter open a new wait; both stand in the context under their own ids."""
    world = make()
    world.wake([ask()])
    answer_question(world.store, world.now, "8080")

    assert world.wake([ask()]).reason is ExitReason.NEEDS_USER_INPUT
    assert world.now.status is GoalStatus.WAITING_USER
    assert [(q["id"], q["status"], q["answer"]) for q in asked(world)] == [
        ("Q1", "answered", "8080"),
        ("Q2", "open", ""),
    ]

    answer_question(world.store, world.now, "9090")
    world.wake([WORK, *[say("")] * 4])
    context = world.told(0)
    assert context.index("- Q2 [") < context.index("9090") < context.index("- Q1 [") < context.index("8080")


def test_a_default_goes_on_by_itself(make: Make) -> None:
    """Nobody answers: the wakeup at the deadline is told that, and by what it may go on."""
    world = make(deliverables=("log.txt",))
    world.wake([ask(default="8080", default_after_seconds=60)])
    world.clock.advance(60)

    world.wake([WORK, CLAIM])

    assert "nobody answered in time, its default stands" in world.told(0)
    assert "  answer: 8080" in world.told(0)
    assert asked(world)[0]["answered_by"] == "default"


def test_a_stop_while_the_model_asks_leaves_no_question(make: Make) -> None:
    """The goal is paused, not waiting: what nobody was asked nobody need answer."""
    world = make()

    def asks_too_late(request: Any) -> Any:
        stop_goal(world.store, world.now, Control.PAUSE)
        return ask()

    ending = world.wake([asks_too_late])

    assert ending.reason is ExitReason.USER_ABORTED
    assert (world.now.status, asked(world)) == (GoalStatus.PAUSED, [])


def test_a_workflow_that_asks(make: Make) -> None:
    """`default_next = ASK`: the forced ending becomes a question like any other; its answer makes the goal go on."""
    workflow = Workflow("asks", "work", (Movement("work", "Keep the log.", default_next="ASK"),))
    world = make(workflow=workflow, early_turns=0, max_recoveries=0)

    ending = world.wake([say("Hm.")])

    assert ending.reason is ExitReason.NEEDS_USER_INPUT
    [question] = asked(world)
    assert question["text"].startswith("how to go on: the movement work ended with EARLY_NO_TOOL")
    assert question["why"] == "the workflow says to ask when the movement work is forced to end"
    assert answer_question(world.store, world.now, "Look at log.txt.").goal.status is GoalStatus.ACTIVE
