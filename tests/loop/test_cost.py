"""Money: every call is charged at the price of its time, and a limit of it holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from goalmode.domain.budget import Limits
from goalmode.domain.cost import Price, cost_of
from goalmode.domain.exits import ExitReason, GoalStatus
from goalmode.domain.messages import Reply, Usage
from goalmode.domain.signals import ErrorKind
from goalmode.errors import BadInput, ModelError
from goalmode.inspection.show import show
from goalmode.orchestrator.goals import resume_goal
from goalmode.state import tables as t
from goalmode.testing import call, say
from tests.loop.conftest import PROFILE
from tests.state.builders import dump

Make = Callable[..., Any]

PRICE = Price(input=250_000, cached=25_000, output=2_000_000, cache_write=312_500)
PRICED = replace(PROFILE, price=PRICE)

DOWN = ModelError(ErrorKind.SERVER, "down")
"""Ends a wakeup, and costs nothing."""


def tool(**usage: Any) -> Reply:
    reply = call("shell", command="echo x >> log.txt")
    return replace(reply, usage=Usage(**usage)) if usage else reply


def rows(world: Any) -> list[sa.Row[Any]]:
    with world.store.reading() as connection:
        return list(connection.execute(sa.select(t.turns).order_by(t.turns.c.id)))


def test_one_sum_of_money_everywhere(make: Make) -> None:
    """B27: what the gate stops at, the goal's total, the turns' rows and the sums by purpose are one amount."""
    world = make(limits=Limits(cost_micro=12_000), profile=PRICED)
    usage = {"input": 10_000, "cached": 8_000, "cache_write": 1_001, "output": 501}

    ending = world.wake([tool(**usage)] * 9, finished=False)

    each = cost_of(PRICE, Usage(**usage))
    found = rows(world)
    assert ending.reason is ExitReason.GOAL_BUDGET_EXHAUSTED
    assert (ending.facts["limit"], ending.facts["value"]) == ("cost", "$0.012")
    assert [row.cost_micro for row in found] == [each] * len(found)
    assert world.now.spent.cost_micro == each * len(found)
    assert 12_000 - 3 * each < world.now.spent.cost_micro <= 12_000 + each
    assert sum(s["cost_micro"] for s in show(world.store, world.goal.id)["spend_by_purpose"].values()) == (
        world.now.spent.cost_micro
    )
    assert world.now.status is GoalStatus.EXHAUSTED


def test_the_last_affordable_call_wraps_up(make: Make) -> None:
    """With an answer no longer than the money allows, told in dollars, and charged like any other."""
    world = make(limits=Limits(cost_micro=12_000), profile=PRICED)

    ending = world.wake([tool(input=4_000, output=4_500), say("over")])

    assert [row.purpose for row in rows(world)] == ["work", "wrap_up"]
    assert "cost: $0.01 used of $0.012" in world.told(-1)
    assert 256 <= world.requests[-1].max_output <= 2_000 // 2
    assert ending.facts["wrap_up"] == "done"
    assert str(ending.facts["used"]).startswith("$0.01")
    assert world.now.spent.cost_micro == sum(row.cost_micro for row in rows(world))


def test_nothing_left_is_no_request(make: Make) -> None:
    """B25: neither a limit of 0 nor one that is used exactly is unlimited; a raised one goes on."""
    world = make(limits=Limits(cost_micro=0), profile=PRICED)
    ending = world.wake([])
    assert (ending.reason, ending.facts["limit"]) == (ExitReason.GOAL_BUDGET_EXHAUSTED, "cost")

    resume_goal(world.store, world.now, limits=Limits(cost_micro=10**6))
    world.wake([tool(input=10, output=10), DOWN])
    resume_goal(world.store, world.now, limits=Limits(cost_micro=world.now.spent.cost_micro))
    world.wake([])

    assert world.now.spent.cost_micro == 23


def test_the_context_tells_what_is_left(make: Make) -> None:
    """In dollars, beside the other limits."""
    world = make(limits=Limits(cost_micro=2_500_000), profile=PRICED, max_turns=1)
    world.wake([tool(input=1_000_000, output=10), DOWN])

    world.wake([DOWN])

    assert "Cost of the goal: $0.25002 used of $2.50, $2.24998 left." in world.told(0)


def test_every_kind_of_call_is_charged_and_shown_by_purpose(make: Make) -> None:
    """Work, recovery, handoff and a call that failed in the middle; together they are the total."""
    world = make(profile=PRICED, max_turns=3)
    cut = ModelError(ErrorKind.STREAM_CUT, "cut", usage=Usage(input=2_000, output=40, estimated=True))
    priced = [replace(step, usage=Usage(input=1_000 + n, output=7)) for n, step in enumerate(
        [tool(), say("Done."), tool(), say("saved")])]  # fmt: skip

    world.wake(priced)
    world.wake([cut])

    spends = show(world.store, world.goal.id)["spend_by_purpose"]
    assert {purpose: spend["calls"] for purpose, spend in spends.items()} == {
        "work": 3,
        "recovery": 1,
        "handoff": 1,
    }
    for key, total in (("cost_micro", world.now.spent.cost_micro), ("tokens", world.now.spent.tokens)):
        assert sum(spend[key] for spend in spends.values()) == total
    failed = rows(world)[-1]
    assert (failed.state, failed.estimated, failed.cost_micro) == ("failed", True, 580)


def test_a_price_is_frozen_on_its_turn(make: Make) -> None:
    """A price that changes later changes nothing that was spent; without one, nothing is charged."""
    world = make(max_turns=1, profile=PRICED)
    world.wake([tool(input=1_000), DOWN])
    before = world.now.spent.cost_micro
    world.profile = replace(PROFILE, price=Price(*[10**9] * 4))
    world.wake([tool(input=1_000), DOWN])
    world.profile = PROFILE
    world.wake([tool(input=1_000), DOWN])

    [first, second, third] = [row for row in rows(world) if row.purpose == "work"]
    assert first.cost_micro == 250 <= before
    assert first.price == {
        "v": 1,
        "input": 250_000,
        "cached": 25_000,
        "output": 2_000_000,
        "cache_write": 312_500,
    }
    assert (second.cost_micro, second.price["input"]) == (10**6, 10**9)
    assert (third.cost_micro, third.price) == (0, None)


def test_estimated_usage_costs_money_too(make: Make) -> None:
    """B28: what no provider reported is charged as estimated, and ends the budget."""
    world = make(limits=Limits(cost_micro=15_000), profile=PRICED)
    estimated = replace(tool(), usage=Usage(input=4_000, output=500, estimated=True))

    ending = world.wake([estimated] * 10, finished=False)

    assert ending.reason is ExitReason.GOAL_BUDGET_EXHAUSTED
    assert all(row.estimated and row.cost_micro for row in rows(world))
    assert world.now.spent.cost_micro <= 15_000


def test_a_limit_that_cannot_be_counted_is_refused(make: Make) -> None:
    """Model and table are named; the goal's rows stay as they were, and a price makes it run."""
    world = make(limits=Limits(cost_micro=10**6))
    before = dump(world.store)

    with pytest.raises(BadInput, match=r'scripted has no price.*\[prices\."scripted"\]') as caught:
        world.begin()

    assert (caught.value.field, caught.value.exit_code) == ("cost-budget", 2)
    assert "\n" not in str(caught.value)
    assert dump(world.store) == before
    world.profile = PRICED
    world.wake([tool(input=10), DOWN])
    assert world.now.spent.cost_micro > 0


def test_a_goal_that_is_over_is_skipped_whatever_its_model(make: Make) -> None:
    """There is nothing to refuse where nothing would run."""
    world = make(limits=Limits(cost_micro=0), profile=PRICED)
    world.wake([])
    world.profile = PROFILE

    assert world.begin().reason == "exhausted"


def test_a_limit_set_while_an_unpriced_model_runs_ends_the_run(make: Make) -> None:
    """It is not unlimited for as long as the wakeup lasts."""
    world = make()

    def limit(event: Any) -> None:
        if event.kind == "turn":
            resume_goal(world.store, world.now, limits=Limits(cost_micro=10**6))

    ending = world.wake([tool(input=10)], on_event=limit)

    assert ending.reason is ExitReason.GOAL_BUDGET_EXHAUSTED
    assert "its model has no price" in ending.detail
    assert ending.facts["wrap_up"] == "skipped"


def test_a_request_that_was_out_when_the_process_died_is_charged_at_its_price(make: Make) -> None:
    """As reserved, and flagged, also by a process that knows no price; the answer no longer than the money allows."""
    world = make(limits=Limits(cost_micro=5_000), profile=PRICED)
    dead = world.begin()
    with world.store.reading() as connection:
        held = connection.execute(sa.select(t.wakeups)).one()
    dead.let_go()
    world.clock.advance(120)
    resume_goal(world.store, world.now, limits=Limits())
    world.profile = PROFILE
    world.wake([DOWN])

    lost = next(row for row in rows(world) if row.state == "lost")
    assert held.reserved_cost == PRICE.at_most(Usage(held.reserved_input, output=held.reserved_output))
    assert 4_990 <= held.reserved_cost <= 5_000
    assert (lost.cost_micro, lost.estimated, lost.price) == (held.reserved_cost, True, None)
    assert world.now.spent.cost_micro == held.reserved_cost
