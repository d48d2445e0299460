"""Money in the store: what is reserved for a call, and what went where."""

from __future__ import annotations

from typing import Any

from goalmode.domain.cost import MAX_MICRO, Price
from goalmode.domain.messages import Usage
from goalmode.state import goals, journal, spend, wakeups
from goalmode.state.spend import Spend
from goalmode.state.store import Store
from goalmode.state.tables import Purpose
from goalmode.testing import ManualClock
from tests.state.builders import (
    CONTEXT,
    claim,
    close,
    intent,
    new_goal,
    outcome,
    record,
    reply,
    rows,
    take_turn,
)
from tests.state.test_charges import die

PRICE = Price(input=1_000_000, cached=100_000, output=4_000_000, cache_write=2_000_000)
"""A new token costs two micro-dollars at most, one of output four."""

RESERVE = Usage(input=100, output=10)


def reserved(store: Store) -> Any:
    return rows(store, "SELECT reserved_input, reserved_output, reserved_cost FROM wakeups")[-1]


def of(store: Store, goal: int) -> list[Spend]:
    with store.reading() as connection:
        return spend.by_purpose(connection, goal)


def test_money_is_reserved_wherever_tokens_are(store: Store) -> None:
    """With the claim, an outcome, a reservation and a new beginning; a reply and the close take it back."""
    claimed = claim(store, new_goal(store), reserve=RESERVE, price=PRICE)
    found = [reserved(store)]
    turn = intent(store, claimed, reply("shell"))
    found.append(reserved(store))
    outcome(store, claimed, turn, record("c0"), reserve=Usage(input=200, output=20))
    found.append(reserved(store))
    journal.reserve(store, claimed, Usage(input=300, output=30), wrap_up=True)
    found.append(reserved(store))
    wakeups.begin_anew(store, claimed, 1, CONTEXT, reserve=Usage(input=50, output=5), inbox_seen=0)
    found.append(reserved(store))
    close(store, claimed)
    found.append(reserved(store))

    assert found == [(100, 10, 240), (0, 0, 0), (200, 20, 480), (300, 30, 720), (50, 5, 120), (0, 0, 0)]


def test_without_a_price_no_money_is_reserved(store: Store) -> None:
    """And a free model's is zero."""
    claimed = claim(store, new_goal(store), reserve=RESERVE)
    assert reserved(store) == (100, 10, 0)
    close(store, claimed)

    claim(store, new_goal(store), reserve=RESERVE, price=Price(0, 0, 0, 0))
    assert reserved(store) == (100, 10, 0)


def test_what_was_spent_on_what(store: Store, clock: ManualClock) -> None:
    """All calls of the goal over its wakeups, failed and lost ones included, and none of another's."""
    goal, other = new_goal(store), new_goal(store)
    first = claim(store, goal, price=PRICE)
    take_turn(store, first, 1, usage=Usage(input=1_000, cached=400, output=10))
    now = store.clock.now()
    journal.failed_call(
        store, first, seq=2, purpose=Purpose.WRAP_UP, usage=Usage(input=7, output=1, estimated=True), detail="cut",
        active_ms=0, started_at=now, now=now,
    )  # fmt: skip
    journal.reserve(store, first, RESERVE, wrap_up=False)
    die(store, clock, goal.id)
    second = claim(store, goals.get(store, goal.id))
    take_turn(store, second, 1, usage=Usage(input=50, output=5))
    take_turn(store, claim(store, other, price=PRICE), 1, usage=Usage(input=9_999))

    assert of(store, goal.id) == [
        Spend("work", calls=3, tokens=610 + 110 + 55, cost_micro=680 + 240),
        Spend("wrap_up", calls=1, tokens=8, cost_micro=11),
    ]
    spent = goals.get(store, goal.id).spent
    assert spent.cost_micro == sum(one.cost_micro for one in of(store, goal.id))
    assert spent.tokens == sum(one.tokens for one in of(store, goal.id))


def test_a_goal_that_was_never_woken_spent_nothing(store: Store) -> None:
    """There is nothing to group."""
    assert of(store, new_goal(store).id) == []


def test_absurd_usage_is_stored_all_the_same(store: Store) -> None:
    """What a provider makes up ends no process; the sums stay sums."""
    goal = new_goal(store)
    claimed = claim(store, goal, price=PRICE)
    for seq in (1, 2):
        take_turn(store, claimed, seq, usage=Usage(input=2 * 10**18))

    assert goals.get(store, goal.id).spent.cost_micro == 2 * MAX_MICRO
