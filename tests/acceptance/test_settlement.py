"""Rows B145, B147, and kill -9 in the middle of settlement: evaluated once, and never at the ending's cost."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from goalmode import ExitReason, Goal, Skip
from goalmode.testing import steps
from tests.acceptance.cli import Command
from tests.acceptance.processes import Child
from tests.acceptance.world import World, complete, told

FACT = "The gauge answers on port 5432."


def work(number: int) -> list[Any]:
    return [steps.tool("shell", {"command": f"echo {n} >> marks"}) for n in range(number)]


def remember(text: str = FACT, **more: Any) -> Any:
    return steps.tool("remember", {"kind": "environment", "text": text, **more})


def purposes(world: World, goal: Goal) -> list[str]:
    return [turn["purpose"] for turn in world.turns(goal)]


def memories(goalmode: Command) -> list[str]:
    return [row["text"] for row in goalmode("memory", "list", "--json").json]


def runs_into_settlement(world: World, goalmode: Command, goal: Goal) -> Child:
    """A process that has claimed, and waits for the answer to the settlement request."""
    world.provider.settles = steps.stall(steps.text("never said"), until=threading.Event())
    world.provider.script(*work(14), complete())
    child = goalmode.start("run", goal.uid)
    child.until(lambda: len(world.provider.stub.requests) == 16, "the settlement request")
    return child


def test_killed_in_settlement(real_world: World, goalmode: Command) -> None:
    """The claim had been accepted: recovery closes with it, verified files and all, and asks the model nothing."""
    world = real_world
    goal = world.goal(deliverables=["marks"])
    runs_into_settlement(world, goalmode, goal).kill()

    listed = goalmode.show(goal.uid)
    assert (listed["status"], listed["wakeups"][0]["exit_reason"]) == ("DONE", "CURRENT_TASK_DONE")

    found = world.wake(goal)

    assert isinstance(found, Skip)
    assert found.reason.value == "done"
    assert len(world.provider.requests) == 16
    shown = goalmode.show(goal.uid)
    [ending] = shown["wakeups"]
    assert (shown["status"], shown["settlement"]) == ("DONE", "failed")
    assert (ending["exit_reason"], ending["exit_facts"]["settlement"]) == ("CURRENT_TASK_DONE", "failed")
    assert [d["verified"] for d in shown["deliverables"]] == [True]
    last = world.turns(goal)[-1]
    assert (last["purpose"], last["state"], last["usage"]["estimated"]) == ("settlement", "lost", True)
    assert (shown["spent"]["turns"], world.marks()) == (15, 14)
    assert world.intact()


def test_an_edit_after_the_kill_reopens_the_claim(real_world: World, goalmode: Command) -> None:
    """Recovery closes with the claim only as long as it is the contract that was claimed."""
    world = real_world
    goal = world.goal(deliverables=["marks"])
    runs_into_settlement(world, goalmode, goal).kill()
    assert goalmode("edit", goal.uid, "--deliverable", "more").code == 0
    assert goalmode.show(goal.uid)["wakeups"][0]["exit_reason"] == "INTERRUPTED"

    world.provider.script(complete(), steps.tool("shell", {"command": "echo x > more"}), complete())
    ending = world.wake(goal)

    assert isinstance(ending, Skip) is False
    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    reasons = [w["exit_reason"] for w in goalmode.show(goal.uid)["wakeups"]]
    assert reasons == ["INTERRUPTED", "CURRENT_TASK_DONE"]


def test_a_pause_after_the_kill_does_not_undo_the_claim(real_world: World, goalmode: Command) -> None:
    """Accepted claim > user stop, whoever closes."""
    world = real_world
    goal = world.goal(deliverables=["marks"])
    runs_into_settlement(world, goalmode, goal).kill()
    assert goalmode("pause", goal.uid).code == 0

    assert isinstance(world.wake(goal), Skip)
    assert goalmode.show(goal.uid)["status"] == "DONE"


@pytest.mark.slow
def test_killed_between_the_answer_and_its_commit(
    real_world: World, goalmode: Command, children: Any
) -> None:
    """A memory that was stored before the process died is kept, and the ending is the claim."""
    world = real_world
    goal = world.goal(deliverables=["marks"])
    world.provider.settles = remember()
    world.provider.script(*work(14), complete())
    children.wake(world, goal, death="before settlement ends").killed()

    assert isinstance(world.wake(goal), Skip)
    assert memories(goalmode) == [FACT]
    assert goalmode.show(goal.uid)["status"] == "DONE"


@pytest.mark.parametrize(
    "answer",
    [
        steps.status(400, {"error": {"message": "no", "type": "invalid_request_error"}}),
        steps.text("", refusal="I cannot do that."),
        steps.text("Let me", finish="length"),
        steps.tool("shell", {"command": "echo ignored >> marks"}),
    ],
    ids=["error", "refusal", "cut", "ignored"],
)
def test_a_failing_settlement_is_bounded(world: World, goalmode: Command, answer: Any) -> None:
    """B147: three requests at most, then the goal ends as it had ended; nothing says that settlement was done."""
    goal = world.goal(deliverables=["marks"])
    world.provider.settles = answer
    world.provider.script(*work(14), complete())

    ending = world.wake(goal)

    assert not isinstance(ending, Skip)
    assert (ending.reason, ending.facts["settlement"]) == (ExitReason.CURRENT_TASK_DONE, "failed")
    assert len(world.provider.requests) == 15 + 3
    assert world.now(goal).settlement.value == "failed"
    assert world.marks() == 14


def test_settlement_never_reverts_what_another_goal_wrote(world: World, goalmode: Command) -> None:
    """B145: what another goal changed since this one began is kept, shown as it is now, and added to."""
    asks = {"status": "needs_user_input", "summary": "s", "missing_info": "m", "why_no_default": "w"}
    moved = remember("The gauge moved to port 6000.", replaces="M1")
    scripts = {
        "Find the gauge.": [remember(), steps.tool("complete", asks)],
        "Move the gauge.": [moved, steps.tool("complete", asks)],
        "Read the gauge.": [
            *work(14),
            complete(),
            remember("It is 7000.", replaces="M1"),
            remember("It is 7000."),
        ],
    }

    def rule(request: Any, number: int) -> Any:
        [script] = [steps for objective, steps in scripts.items() if objective in told(request)]
        if len(script) == 3 and script is scripts["Read the gauge."]:
            thread = threading.Thread(target=world.wake, args=(others["Move the gauge."],))
            thread.start()
            thread.join()
        return script.pop(0)

    world.provider.settles = None
    world.provider.follow(rule)
    others = {objective: world.goal(objective) for objective in ("Find the gauge.", "Move the gauge.")}
    world.wake(others["Find the gauge."])
    goal = world.goal("Read the gauge.", deliverables=["marks"])

    ending = world.wake(goal)

    assert not isinstance(ending, Skip)
    assert (ending.reason, ending.facts["settlement"]) == (ExitReason.CURRENT_TASK_DONE, "done")
    assert memories(goalmode) == ["It is 7000.", "The gauge moved to port 6000."]
    asked = world.provider.requests[-2]["messages"][-1]["content"]
    assert "The gauge moved to port 6000." in asked
    assert FACT not in asked
    assert purposes(world, goal) == ["work"] * 15 + ["settlement"] * 2


def test_both_kinds_of_goals_are_charged_for_it(world: World, goalmode: Command) -> None:
    """What settlement costs is the goal's, shown by its purpose, and no turn."""
    goal = world.goal(deliverables=["marks"])
    world.provider.settles = remember()
    world.provider.script(*work(14), complete())

    world.wake(goal)

    shown = goalmode.show(goal.uid)
    assert shown["spend_by_purpose"]["settlement"]["calls"] == 1
    assert shown["spent"]["turns"] == 15
    assert shown["spent"]["tokens"] == sum(t["usage"]["tokens"] for t in world.turns(goal))
    assert memories(goalmode) == [FACT]
