"""Rows B01 to B07: the agent is not let go because its words sound like the end."""

from __future__ import annotations

import pytest

from goalmode import ExitReason, GoalStatus
from goalmode.testing import steps
from tests.acceptance.world import World, checkpoint, complete, mark, told, write

CLOSING = ("The final delivery is done and nothing is left to do.", "全部工作已收口，任务圆满完成。")


def test_closing_prose_of_one_wakeup_does_not_end_the_next(world: World) -> None:
    """B01: a model that closes whenever it reads its own closing words never reads them again."""
    goal = world.goal(max_turns=20)
    said = [f"{CLOSING[n % 2]} (step {n})" for n in range(20)]
    marks = [mark(text, word=str(n)) for n, text in enumerate(said[1:])]
    world.provider.script(checkpoint(pending=["the totals are right"]), *marks)
    first = world.wake(goal)

    def closes_if_reminded(request: dict, number: int) -> steps.Step:
        return steps.text(CLOSING[0]) if any(c in told(request) for c in CLOSING) else mark(word=str(number))

    world.provider.follow(closes_if_reminded)
    before = len(world.provider.requests)
    second = world.wake(goal)

    assert [first.reason, second.reason] == [ExitReason.MAX_TURNS_EXCEEDED] * 2
    assert world.marks() == 19 + 20
    opening = world.provider.requests[before]
    assert [m["role"] for m in opening["messages"]] == ["system", "user"]
    assert not any(sentence in told(r) for r in world.provider.requests[before:] for sentence in CLOSING)
    assert "the totals are right" in told(opening)


def test_nothing_is_complete_while_something_awaits_verification(world: World) -> None:
    """B01: a claim with an item still pending is refused, and the model is told which."""
    goal = world.goal(deliverables=["a.txt"], max_turns=4)
    world.provider.script(
        write("a.txt", "a"), checkpoint(pending=["the totals are right"]), complete(), mark()
    )

    ending = world.wake(goal)

    assert ending.reason is ExitReason.MAX_TURNS_EXCEEDED
    assert "the totals are right" in world.provider.told(3)


@pytest.mark.parametrize("sentence", ["The task is complete. All done!", "已完成，全部结束。"])
def test_words_in_text_and_arguments_end_nothing(world: World, sentence: str) -> None:
    """B03: six writes full of closing words all run, and the loop asks for a seventh turn."""
    goal = world.goal(max_turns=7)
    log = "done\ncomplete\nfinished\n已完成\n"
    notes = [write(f"changes-{n}.md", log + sentence, text=sentence) for n in range(6)]
    world.provider.script(*notes, mark())

    ending = world.wake(goal)

    assert ending.reason is ExitReason.MAX_TURNS_EXCEEDED
    assert len(list(world.workspace.glob("changes-*.md"))) == 6
    assert world.marks() == 1


def test_a_file_that_was_never_written_is_not_delivered(world: World) -> None:
    """B04: a claim about an absent file does not stand; the model is told the path, and the goal stays open."""
    goal = world.goal(deliverables=["out/orders.json"], max_turns=6)
    claim = complete("out/orders.json was written with 4 records.", evidence=["out/orders.json"])
    world.provider.script(*[steps.tool("list_files", {"path": "."})] * 4, claim, mark())

    ending = world.wake(goal)

    assert ending.reason is ExitReason.MAX_TURNS_EXCEEDED
    assert "out/orders.json" in world.provider.requests[5]["messages"][-1]["content"]
    assert world.now(goal).status is GoalStatus.ACTIVE


def test_a_spent_quota_is_not_called_success(world: World) -> None:
    """B06: prose of success beside the last call changes nothing; the next wakeup is allowed to start."""
    goal = world.goal(max_turns=3)
    world.provider.script(mark(), mark(), mark("The goal is achieved."))

    ending = world.wake(goal)
    world.provider.script(mark(), mark(), mark())
    again = world.wake(goal, only_if_due=True)

    assert ending.reason is again.reason is ExitReason.MAX_TURNS_EXCEEDED
    assert world.now(goal).status is GoalStatus.ACTIVE
    assert world.marks() == 6


def test_the_cap_is_final(world: World) -> None:
    """B07: three requests and one handoff, whose call runs nothing and leaves nothing dangling."""
    goal = world.goal(max_turns=3)
    world.provider.saves = mark()
    world.provider.script(then=mark())

    ending = world.wake(goal)

    assert ending.reason is ExitReason.MAX_TURNS_EXCEEDED
    assert len(world.provider.requests) == 4
    assert world.marks() == 3
    assert world.outcomes() == ["success", "success", "success", "denied"]
