"""A wakeup and the money of its goal: what its first call reserves, and when it may not begin."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from goalmode.domain.budget import Limits
from goalmode.domain.cost import Price
from goalmode.domain.exits import SkipReason
from goalmode.errors import BadInput
from goalmode.orchestrator.goals import raised
from goalmode.orchestrator.skip import Skip
from goalmode.state.store import Store
from tests.orchestrator.builders import PROFILE, FakeRenderer, attempt, begin, new_goal, now, rows

PRICED = FakeRenderer(
    replace(PROFILE, price=Price(input=10_000, cached=0, output=10_000, cache_write=10_000))
)
"""A hundred tokens are one micro-dollar."""


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (Limits(), (100, 500, 6)),
        (Limits(tokens=350), (100, 250, 4)),
        (Limits(cost_micro=5), (100, 400, 5)),
        (Limits(tokens=350, cost_micro=2), (100, 100, 2)),
    ],
)
def test_the_first_reservation_keeps_to_the_limits(
    store: Store, workspace: Path, limits: Limits, expected: tuple[int, ...]
) -> None:
    """What would be charged if the process died now is no more than the call may use."""
    begin(store, new_goal(store, workspace, limits=limits), PRICED)

    assert rows(store, "SELECT reserved_input, reserved_output, reserved_cost FROM wakeups") == [expected]


def test_an_unpriced_model_begins_no_wakeup(store: Store, workspace: Path) -> None:
    """Under a limit of money; the goal is as it was, and a limit that came meanwhile is seen."""
    goal = new_goal(store, workspace, limits=Limits(cost_micro=10**6))
    before = now(store, goal)

    with pytest.raises(
        BadInput, match=r'scripted has no price.*\[prices\."scripted"\] with input and output'
    ):
        attempt(store, goal)

    assert now(store, goal) == before
    assert rows(store, "SELECT count(*) FROM wakeups") == [0]
    begin(store, goal, PRICED)


def test_what_is_not_due_is_skipped_first(store: Store, workspace: Path) -> None:
    """A goal that somebody else runs is theirs, priced or not."""
    goal = new_goal(store, workspace, limits=Limits(cost_micro=10**6))
    begin(store, goal, PRICED)

    found = attempt(store, goal)

    assert isinstance(found, Skip)
    assert found.reason is SkipReason.LEASED


@pytest.mark.parametrize(
    ("text", "micro"), [("2.50", 2_500_000), ("$0.5", 500_000), ("+0.000001", 1_000_001), ("+$1", 2_000_000)]
)
def test_a_limit_of_money_is_raised_in_dollars(text: str, micro: int) -> None:
    """`N` sets it, `+N` adds to it."""
    assert raised(Limits(cost_micro=1_000_000), {"cost_micro": text}) == Limits(cost_micro=micro)


@pytest.mark.parametrize("text", ["-1", "++1", "", "+1"])
def test_a_limit_that_is_none_is_refused(text: str) -> None:
    """And nothing is added to what is unlimited."""
    with pytest.raises(BadInput, match="cost-budget: "):
        raised(Limits(), {"cost_micro": text})
