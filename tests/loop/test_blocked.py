"""Blocked is earned: obstacles have ids, are counted by the host, are shown, and are counted anew after a resume."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from goalmode.domain.exits import ExitReason, GoalStatus
from goalmode.domain.goal import EARNED_AFTER
from goalmode.domain.messages import ToolResult
from goalmode.inspection.show import show
from goalmode.orchestrator.goals import resume_goal
from goalmode.state import goals, notes
from goalmode.state.wakeups import MAX_OBSTACLES
from goalmode.testing import call, say
from tests.state.builders import rows

Make = Callable[..., Any]

WORK = call("shell", command="date +%N")
IDLE = [say("")] * 4


def blocked(obstacle: str, **more: str) -> Any:
    return call("complete", status="blocked", summary="No way.", obstacle=obstacle, **more)


def result(world: Any, number: int = -1) -> str:
    """The newest result that a request holds."""
    return next(m.text for m in reversed(world.requests[number].messages) if isinstance(m, ToolResult))


def obstacles(world: Any) -> list[dict[str, Any]]:
    return show(world.store, world.goal.id)["obstacles"]


def yields(world: Any, *claims: Any) -> None:
    """A wakeup that says twice that it is blocked, before that is earned."""
    assert world.wake([WORK, *claims]).reason is ExitReason.YIELDED


def test_three_wakeups_earn_it(make: Make) -> None:
    """Two are refused with another way to try; in the third the goal is blocked, with the evidence."""
    world = make()
    yields(world, blocked("The server is down"), blocked("the  SERVER is down"))
    assert "met in 1 of the 3 wakeups" in result(world)
    assert "Try another way" in result(world)
    yields(world, blocked("O1"), blocked("o1"))

    ending = world.wake([WORK, blocked("O1")])

    assert ending.reason is ExitReason.TASK_BLOCKED
    assert ending.facts["wakeups"] == [1, 2, 3]
    assert ending.detail == "The server is down (O1, met in 3 wakeups)"
    assert world.now.status is GoalStatus.BLOCKED


def test_obstacles_are_listed_with_their_ids_and_counts(make: Make) -> None:
    """The next context shows each with its words, its requirement and how often it was met; without any, no section."""
    world = make(requirements=("the log is read", "the report is written"))
    yields(world, blocked("The server is down", requirement="r2"), blocked("No disk </obstacles> left"))
    assert "<obstacles" not in world.told(0)

    world.wake([WORK, *IDLE], finished=False)

    section = world.told(0).partition("<obstacles")[2].partition("</obstacles>")[0]
    assert section.splitlines()[2:4] == [
        "- O2 [met in 1 of 3 wakeups] No disk &lt;/obstacles> left",
        "- O1 [in the way of R2, met in 1 of 3 wakeups] The server is down",
    ]
    assert obstacles(world)[0] == {
        "id": "O1",
        "text": "The server is down",
        "requirement": "R2",
        "wakeups": [1],
    }


def test_the_models_closing_words_in_an_obstacle_are_withheld(make: Make) -> None:
    """They are the model's own, like everything that it saved."""
    world = make()
    yields(world, blocked("All tasks are done."), blocked("O1"))

    world.wake([WORK, *IDLE], finished=False)

    assert "All tasks are done" not in world.told(0).partition("<last_wakeup")[0]
    assert "- O1 [met in 1 of 3 wakeups] [unverified claim]" in world.told(0)


def test_obstacles_before_different_requirements_are_counted_apart(make: Make) -> None:
    """The same words before another requirement are another obstacle."""
    world = make(requirements=("a", "b"))
    for _ in range(2):
        yields(world, blocked("No network", requirement="R1"), blocked("No network", requirement="R2"))

    assert [(o["id"], o["requirement"], o["wakeups"]) for o in obstacles(world)] == [
        ("O1", "R1", [1, 2]),
        ("O2", "R2", [1, 2]),
    ]
    assert world.wake([WORK, blocked("O2")]).reason is ExitReason.TASK_BLOCKED


@pytest.mark.parametrize(
    ("claim", "told"),
    [
        (blocked("O9"), "there is no obstacle O9; the known ones are O1: No network"),
        (blocked("o12"), "there is no obstacle O12"),
        (blocked("No network", requirement="R3"), "no requirement 'R3'; the requirements are R1, R2"),
        (blocked("O1", requirement="the log"), "no requirement 'THE LOG'; the requirements are R1, R2"),
        (blocked("  "), "blocked needs an obstacle"),
    ],
    ids=["unknown id", "in lower case", "unknown requirement", "a requirement in words", "blank"],
)
def test_what_does_not_exist_is_refused_with_what_does(make: Make, claim: Any, told: str) -> None:
    """Nothing is counted, the goal goes on, and five such calls end the wakeup as failed controls."""
    world = make(requirements=("a", "b"))
    yields(world, blocked("No network"), blocked("O1"))

    ending = world.wake([WORK, *[claim] * 5])

    assert told in result(world, 2)
    assert ending.reason is ExitReason.NO_PROGRESS
    assert [o["wakeups"] for o in obstacles(world)] == [[1]]


def test_without_any_obstacle_an_id_is_refused_too(make: Make) -> None:
    """`O1` is no word for anything before it was said in words; and a goal without requirements has none."""
    world = make()

    world.wake([WORK, blocked("O1"), blocked("x", requirement="R1"), WORK, *IDLE], finished=False)

    assert "no obstacle O1; none is known yet" in result(world, 2)
    assert "the goal has none" in result(world, 3)
    assert obstacles(world) == []


def test_a_resume_counts_anew_and_keeps_the_ids(make: Make) -> None:
    """After a person has had a look, the same obstacle needs three more wakeups, under the id that it had."""
    world = make()
    for _ in range(2):
        yields(world, blocked("No network"), blocked("No disk"))
    assert world.wake([WORK, blocked("O1")]).reason is ExitReason.TASK_BLOCKED

    resume_goal(world.store, world.now)
    assert [(o["id"], o["wakeups"]) for o in obstacles(world)] == [("O1", []), ("O2", [])]

    for _ in range(EARNED_AFTER - 1):
        yields(world, blocked("O2"), blocked("No disk"))
    assert "- O1 [met in 0 of 3 wakeups] No network" in world.told(0)
    assert world.wake([WORK, blocked("no disk")]).facts["wakeups"] == [4, 5, 6]


def test_a_word_of_the_user_meanwhile_may_take_the_obstacle_away(make: Make) -> None:
    """Earned while a note waits to be read: the goal is not blocked but due at once, to read it first."""
    world = make()
    for _ in range(2):
        yields(world, blocked("No network"), blocked("O1"))

    def speak(request: Any) -> Any:
        notes.add(world.store, world.now, "The network is back.", now=world.clock.now())
        return blocked("O1")

    ending = world.wake([WORK, speak])

    assert ending.reason is ExitReason.TASK_BLOCKED
    assert (world.now.status, world.now.wake_reason) == (GoalStatus.ACTIVE, "the user spoke")
    assert world.now.next_wakeup_at == world.clock.now()


def test_obstacles_are_bounded(make: Make) -> None:
    """Of more than there may be the one that was not met for longest goes; numbers are never used again."""
    world = make()
    wake = world.begin()
    for number in range(MAX_OBSTACLES + 5):
        wake.met_obstacle(f"obstacle {number}")
    wake.let_go()

    known = goals.get(world.store, world.goal.id).obstacles
    assert [o.id for o in (known[0], known[-1])] == ["O6", f"O{MAX_OBSTACLES + 5}"]
    assert len(known) == MAX_OBSTACLES


def test_a_wakeup_that_died_after_it_met_an_obstacle_counts_once(make: Make) -> None:
    """The count is committed with the wakeup's number: recovery neither loses nor doubles it."""
    world = make()
    wake = world.begin()
    wake.met_obstacle("No network")
    wake.let_go()
    rows(world.store, "UPDATE wakeups SET pid_start = 'long ago' WHERE exit_reason IS NULL")

    yields(world, blocked("O1"), blocked("O1"))

    assert [o["wakeups"] for o in obstacles(world)] == [[1, 2]]
