"""Rows B36, B38, B40: what goes round in circles is told so, then ended; what only waits is not."""

from __future__ import annotations

import json
from itertools import count

from goalmode import ExitReason
from goalmode.testing import steps
from goalmode.tools.registry import tool
from tests.acceptance.world import World, complete, mark, results

SAME = {"command": "echo x >> marks", "timeout_seconds": 60}


def test_a_call_that_is_made_for_ever_is_told_of_and_ended(world: World) -> None:
    """B36: the same call with its keys in changing order: one correction, then NO_PROGRESS, long before the quota."""
    goal = world.goal(max_turns=200)
    orders = [json.dumps(SAME), json.dumps(dict(reversed(SAME.items())))]
    world.provider.follow(lambda request, number: steps.tool("shell", orders[number % 2]))

    ending = world.wake(goal)

    assert ending.reason is ExitReason.NO_PROGRESS
    assert world.marks() == 10
    assert world.provider.told().count("made 5 times in a row") == 1
    assert world.provider.violations() == []


def test_a_poll_whose_results_change_is_no_loop(world: World) -> None:
    """B38: twelve polls, each with another result, then success; not even a hint."""
    polls = count(1)

    @tool(effect="read")
    def poll(job: str) -> str:
        """Ask how far a job is."""
        return f"progress {next(polls)}/12"

    world.tools = (poll,)
    goal = world.goal(deliverables=["marks"])
    world.provider.script(mark(), *[steps.tool("poll", {"job": "build"})] * 12, complete())

    assert world.wake(goal).reason is ExitReason.CURRENT_TASK_DONE
    assert "times in a row" not in world.provider.told()


def test_one_side_effect_asked_for_five_times_in_a_reply_and_again(world: World) -> None:
    """B40: each id has one result, each call ran once, the repetition is told of, and the tenth is the last."""
    goal = world.goal()
    five = steps.tools([("shell", {"command": "echo x >> marks"})] * 5)
    world.provider.script(five, five)

    ending = world.wake(goal)

    assert ending.reason is ExitReason.NO_PROGRESS
    assert world.marks() == 10
    answered = world.provider.requests[1]
    assert len(results(answered)) == 5
    assert "made 5 times in a row" in world.provider.told(1)
    shown = [(c["outcome"], c["in_a_row"]) for turn in world.turns(goal) for c in turn["calls"]]
    assert shown == [("success", n) for n in range(1, 11)]
    assert world.provider.violations() == []
