"""Rows B84, B89, B91, B96, B98: replies that are cut, empty or refused by a limit."""

from __future__ import annotations

from goalmode import ExitReason, GoalStatus
from goalmode.loop.decide import MAX_MALFORMED
from goalmode.testing import steps
from tests.acceptance.world import World, complete, mark, results, write

HOLLOW = steps.text("", finish="tool_calls")


def test_a_cut_call_is_not_run_on_half_its_input(world: World) -> None:
    """B84: complete JSON in a reply cut at the limit writes nothing; the model is asked to send it again."""
    goal = world.goal(deliverables=["poem.txt"])
    half = write("poem.txt", "first half", finish="length")
    world.provider.script(half, write("poem.txt", "first half, second half"), complete())
    seen = []
    world.provider.on_request = lambda number: seen.append((world.workspace / "poem.txt").exists())

    ending = world.wake(goal)

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert seen == [False, False, True]
    [answer] = results(world.provider.requests[1])
    assert "not executed" in answer
    assert "again" in answer
    assert (world.workspace / "poem.txt").read_text() == "first half, second half"


def test_a_hollow_tool_use_is_asked_for_once_more(world: World) -> None:
    """B89: "tool_calls" without a call at turn 6 is no ending; after one bounded nudge the work is completed."""
    goal = world.goal(deliverables=["marks"])
    world.provider.script(*[mark()] * 5, HOLLOW, mark(), complete())

    assert world.wake(goal).reason is ExitReason.CURRENT_TASK_DONE
    assert world.marks() == 6


def test_hollow_tool_uses_for_ever_are_bounded(world: World) -> None:
    """B89: the same for ever ends without success after the documented number."""
    goal = world.goal()
    world.provider.script(*[mark()] * 5, then=HOLLOW)

    assert world.wake(goal).reason is ExitReason.NO_PROGRESS
    assert len(world.provider.requests) == 5 + MAX_MALFORMED + 1
    assert world.now(goal).status is GoalStatus.ACTIVE


def test_an_empty_reply_is_never_sent_back(world: World) -> None:
    """B91: an empty first answer, which the provider would refuse to read again, does not end or spoil the wakeup."""
    goal = world.goal(deliverables=["marks"])
    world.provider.script(steps.text(""), mark(), steps.text(""), mark(), complete())

    assert world.wake(goal).reason is ExitReason.CURRENT_TASK_DONE
    assert world.marks() == 2


def test_retry_after_is_waited_out(world: World) -> None:
    """B96: two 429 with Retry-After 2: both gaps are at least that long, and the attempts cost nothing."""
    goal = world.goal(deliverables=["marks"])
    limited = steps.status(
        429, {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}, {"retry-after": "2"}
    )
    world.provider.script(limited, limited, mark(), complete())
    at: list[float] = []
    world.provider.on_request = lambda number: at.append(world.clock.monotonic())

    ending = world.wake(goal)

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert min(at[1] - at[0], at[2] - at[1]) >= 2.0
    assert world.now(goal).spent.turns == 2
    assert [t["state"] for t in world.turns(goal)] == ["done", "done"]


def test_an_empty_account_is_not_a_short_limit(world: World) -> None:
    """B98: 429 with insufficient_quota is not retried; the ending says quota, and the goal can go on later."""
    goal = world.goal()
    world.provider.script(
        then=steps.status(429, {"error": {"message": "pay first", "code": "insufficient_quota"}})
    )

    ending = world.wake(goal)

    assert ending.reason is ExitReason.BACKEND_ERROR
    assert len(world.provider.requests) <= 2
    assert "QUOTA" in ending.detail
    assert "RATE_LIMIT" not in ending.detail
    now = world.now(goal)
    assert now.status is GoalStatus.ACTIVE
    assert (now.next_wakeup_at - world.clock.now()).total_seconds() >= 3600
