"""Limits hold, the last affordable call wraps up, and nothing is spent that is not counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from goalmode.domain.budget import Limits
from goalmode.domain.exits import ExitReason, GoalStatus
from goalmode.domain.messages import NO_USAGE, Reply, Usage
from goalmode.domain.signals import ErrorKind
from goalmode.errors import ModelError
from goalmode.orchestrator.goals import resume_goal
from goalmode.state import tables as t
from goalmode.testing import call, calls, say

Make = Callable[..., Any]


def tool(**usage: int) -> Reply:
    reply = call("shell", command="echo x >> log.txt")
    return replace(reply, usage=Usage(**usage)) if usage else reply


def lines(world: Any) -> int:
    """How often the tool really ran."""
    log = world.workspace / "log.txt"
    return len(log.read_text().splitlines()) if log.exists() else 0


def rows(world: Any) -> list[sa.Row[Any]]:
    with world.store.reading() as connection:
        return list(connection.execute(sa.select(t.turns).order_by(t.turns.c.id)))


def test_turn_budget_allows_completion_on_its_last_turn(make: Make) -> None:
    """B23, case 1: a budget of three turns is enough for tool, tool, completion."""
    world = make(deliverables=("log.txt",), limits=Limits(turns=3))

    ending = world.wake([tool(), tool(), call("complete", status="success", summary="Written.")])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert world.now.spent.turns == 3


def test_turn_budget_is_spent_after_exactly_its_turns(make: Make) -> None:
    """B23, case 2: tools for ever make exactly three requests, the last one the wrap-up, which runs no tool."""
    world = make(limits=Limits(turns=3))

    ending = world.wake([tool(), tool(), tool()])

    assert ending.reason is ExitReason.GOAL_BUDGET_EXHAUSTED
    assert ending.facts["limit"] == "turns"
    assert (ending.facts["value"], ending.facts["used"]) == (3, 3)
    assert ending.facts["wrap_up"] == "done"
    assert len(world.requests) == 3
    assert lines(world) == 2
    assert world.now.status is GoalStatus.EXHAUSTED


def test_the_cap_is_final_whatever_the_handoff_says(make: Make) -> None:
    """B07: three turns and one documented handoff, whose tool call is not run and leaves nothing dangling."""
    world = make(max_turns=3)

    ending = world.wake([tool(), tool(), tool(), tool()])

    assert ending.reason is ExitReason.MAX_TURNS_EXCEEDED
    assert lines(world) == 3
    assert [r.purpose for r in rows(world)] == ["work", "work", "work", "handoff"]
    assert world.now.spent.turns == 3


def test_no_handoff_when_everything_is_saved(make: Make) -> None:
    """A wakeup whose last act was a checkpoint ends at its quota without a further request."""
    world = make(max_turns=2)

    ending = world.wake([tool(), call("update_working_checkpoint", key_info="log.txt has one line")])

    assert ending.reason is ExitReason.MAX_TURNS_EXCEEDED
    assert len(world.requests) == 2


def test_handoff_saves_state_for_the_next_wakeup(make: Make) -> None:
    """What the handoff saves is in the next wakeup's context."""
    world = make(max_turns=1)
    world.wake([tool(), call("update_working_checkpoint", key_info="the log is in log.txt")])

    world.wake([tool(), say("ok")])

    assert "the log is in log.txt" in world.told(0)


def test_spent_budget_makes_no_request(make: Make) -> None:
    """B25 (a): a goal that used exactly its budget makes no request, and says so."""
    world = make(limits=Limits(turns=1))
    world.wake([say("over")])
    resume_goal(world.store, world.now)

    ending = world.wake([])

    assert ending.reason is ExitReason.GOAL_BUDGET_EXHAUSTED
    assert world.now.spent.wakeups == 1


def test_zero_is_zero(make: Make) -> None:
    """B25 (b): a budget of 0 is not unlimited, whichever limit it is."""
    for limits in (Limits(turns=0), Limits(tokens=0), Limits(active_seconds=0), Limits(wakeups=0)):
        world = make(limits=limits)

        ending = world.wake([])

        assert ending.reason is ExitReason.GOAL_BUDGET_EXHAUSTED
        assert ending.facts["wrap_up"] == "skipped"


def test_wrap_up_happens_once_for_each_limit(make: Make) -> None:
    """A raised limit allows one more wrap-up; the same limit does not."""
    world = make(limits=Limits(turns=2))
    world.wake([tool(), say("over")])
    resume_goal(world.store, world.now, limits=Limits(turns=4))

    ending = world.wake([tool(), say("over")])

    assert ending.reason is ExitReason.GOAL_BUDGET_EXHAUSTED
    assert [r.purpose for r in rows(world)] == ["work", "wrap_up", "work", "wrap_up"]


def test_one_formula_for_tokens_everywhere(make: Make) -> None:
    """B27: input - cached + output is what the gate, the goal's total and the turns' rows agree on."""
    world = make(limits=Limits(tokens=20_000))
    usage = {"input": 10_000, "cached": 8_000, "output": 500}

    ending = world.wake([tool(**usage)] * 8, finished=False)

    assert ending.reason is ExitReason.GOAL_BUDGET_EXHAUSTED
    charged = sum(r.input - r.cached + r.output for r in rows(world))
    assert world.now.spent.tokens == charged == 2_500 * len(rows(world))
    assert charged <= 20_000 + 2_500


def test_unreported_usage_ends_the_budget_too(make: Make) -> None:
    """B28: estimated usage counts like any other and is flagged."""
    world = make(limits=Limits(tokens=30_000))
    estimated = replace(tool(), usage=Usage(input=4_000, output=500, estimated=True))

    ending = world.wake([estimated] * 10, finished=False)

    assert ending.reason is ExitReason.GOAL_BUDGET_EXHAUSTED
    assert all(r.estimated for r in rows(world))
    assert len(world.requests) <= 10


def test_wakeup_budget(make: Make) -> None:
    """The last allowed wakeup ends with a wrap-up and the goal's limit, not with its turn quota."""
    world = make(max_turns=2, limits=Limits(wakeups=2))
    first = world.wake([tool(), tool(), say("saved")])

    second = world.wake([tool(), say("over")])

    assert [first.reason, second.reason] == [
        ExitReason.MAX_TURNS_EXCEEDED,
        ExitReason.GOAL_BUDGET_EXHAUSTED,
    ]
    assert world.now.spent.wakeups == 2


def test_active_time_does_not_run_while_the_machine_sleeps(make: Make) -> None:
    """B30: 17 hours of wall time in which one second of work was done are one second of active time."""
    world = make(max_turns=3, limits=Limits(active_seconds=60))

    def lid_closed(event: object) -> None:
        if getattr(event, "kind", "") == "turn":
            world.clock.advance(1, wall=17 * 3600)

    ending = world.wake([tool(), tool(), tool(), say("saved")], on_event=lid_closed)

    assert ending.reason is ExitReason.MAX_TURNS_EXCEEDED
    assert world.now.spent.active_seconds < 10


def test_a_deadline_is_wall_time(make: Make) -> None:
    """B30: an absolute deadline ends the goal with the budget reason, and says which limit it was."""
    clock_start = make().clock.now()
    world = make(limits=Limits(deadline=clock_start + timedelta(hours=1)))

    def hours_pass(event: object) -> None:
        if getattr(event, "kind", "") == "turn":
            world.clock.advance(1, wall=17 * 3600)

    ending = world.wake([tool()], on_event=hours_pass)

    assert ending.reason is ExitReason.GOAL_BUDGET_EXHAUSTED
    assert ending.facts["limit"] == "deadline"


def test_time_wraps_up_before_it_is_over(make: Make) -> None:
    """The last tenth of an active-time budget, at most a minute, is kept for the wrap-up."""
    world = make(limits=Limits(active_seconds=100))

    def slow(event: object) -> None:
        if getattr(event, "kind", "") == "reply":
            world.clock.advance(91)

    ending = world.wake([tool(), say("over")], on_event=slow)

    assert ending.reason is ExitReason.GOAL_BUDGET_EXHAUSTED
    assert [r.purpose for r in rows(world)] == ["work", "wrap_up"]


def test_a_failed_wrap_up_is_not_sent_again(make: Make) -> None:
    """A wrap-up whose call fails leaves the spent budget as the ending, with the failure beside it."""
    world = make(limits=Limits(turns=2))

    ending = world.wake([tool(), ModelError(ErrorKind.SERVER, "bad gateway", status=502)])

    assert ending.reason is ExitReason.GOAL_BUDGET_EXHAUSTED
    assert "bad gateway" in str(ending.facts["last_call"])


def test_refused_attempts_cost_nothing_and_cut_streams_do(make: Make) -> None:
    """B96: a refused call is neither a turn nor charged; a call that had begun to stream is charged as estimated."""
    refused = make()
    refused.wake([ModelError(ErrorKind.RATE_LIMIT, "slow down", status=429)])
    cut = make()
    lost = Usage(input=2_000, output=40, estimated=True)
    cut.wake([ModelError(ErrorKind.STREAM_CUT, "cut", usage=lost)])

    assert (refused.now.spent.turns, refused.now.spent.tokens) == (0, NO_USAGE.tokens)
    assert (cut.now.spent.turns, cut.now.spent.tokens) == (0, 2_040)
    assert [r.state for r in rows(cut)] == ["failed"]


def test_until_budget_goes_on_after_a_claim_that_stands(make: Make) -> None:
    """A goal that runs until its budget answers a true claim with a higher bar; only the limit ends it."""
    world = make(deliverables=("log.txt",), limits=Limits(turns=4), until_budget=True)
    claim = call("complete", status="success", summary="Written.")

    ending = world.wake([tool(), claim, claim, say("over")])

    assert ending.reason is ExitReason.GOAL_BUDGET_EXHAUSTED
    assert "higher standard" in world.told(2)
    assert "substantive" in world.told(3) or "tool call" in world.told(3)


def test_a_claim_in_the_wrap_up_beats_the_budget(make: Make) -> None:
    """Accepted claim > goal budget."""
    world = make(deliverables=("log.txt",), limits=Limits(turns=2))

    ending = world.wake([tool(), calls(call("complete", status="success", summary="Written."))])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
