"""Differences and intervals, against cases worked out by hand and what must hold for any values."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goalmode.evals.design import Cell, Condition
from goalmode.evals.statistics import Interval, bootstrap, difference, level, partner_of, quantile
from tests.evals.builders import cell

A, B, C, N = Condition.REPLAY, Condition.REBUILT, Condition.CONTROL, Condition.NEITHER
VALUES = st.lists(st.floats(-100, 100), min_size=1, max_size=12)
FEW = 200
"""Resamples enough for what must hold for any number of them."""


def _both(margins: dict[str, tuple[float, float]]) -> dict[Cell, float]:
    """A5 and C5 of each goal."""
    return {cell(c, 5, goal=goal): pair[n] for goal, pair in margins.items() for n, c in enumerate("AC")}


def test_a_difference_worked_out_by_hand() -> None:
    """Three goals: -1, -2 and 0; the second goes from tool to final, the third stays."""
    found = difference(_both({"tides": (1, 2), "menu": (-0.5, 1.5), "index": (3, 3)}), A, C, 5, seed=1)

    assert found is not None
    assert (found.mean, found.pairs, found.goals, found.to_final, found.to_tool) == (-1, 3, 3, 1, 0)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == (
        -2,
        0,
    )  # 1 resample in 27 is all the second, 1 all the third.
    assert found.interval.shown == 0


def test_a_goal_is_one_unit_however_often_it_was_asked_about() -> None:
    """Two orders of one goal do not count as two goals: they weigh as much as one order of another."""
    margins = {
        cell("A", goal="tides"): 1.0,
        cell("C", goal="tides"): 0.0,
        cell("A", goal="tides", tool_first=False): 3.0,
        cell("C", goal="tides", tool_first=False): 0.0,
        cell("A", goal="menu"): 4.0,
        cell("C", goal="menu"): 0.0,
    }
    found = difference(margins, A, C, 5, seed=1)

    assert found is not None
    assert (found.mean, found.pairs, found.goals, found.interval) == (
        3,
        3,
        2,
        None,
    )  # (2 + 4) / 2, not 8 / 3.


def test_a_flip_needs_two_choices() -> None:
    """A margin of exactly 0 is no choice."""
    found = difference(_both({"tides": (0, 1), "menu": (1, -1), "index": (-1, 0)}), A, C, 5, seed=1)

    assert found is not None
    assert (found.to_final, found.to_tool) == (0, 1)


def test_only_pairs_count() -> None:
    """A cell without its partner says nothing about a difference; there is one N for every number of turns."""
    margins = {cell("A", 5): 1.0, cell("A", 5, goal="menu"): 9.0, cell("N", 0): 3.0}

    assert difference(margins, A, C, 5, seed=1) is None
    found = difference(margins, A, N, 5, seed=1)
    assert found is not None
    assert (found.mean, found.pairs) == (-2, 1)
    assert partner_of(cell("A", 20), N) == cell("N", 0)


def test_a_language_may_be_looked_at_alone() -> None:
    """The pairs of the other one are left out."""
    margins = {cell("A"): 1.0, cell("C"): 2.0, cell("A", lang="zh"): 5.0, cell("C", lang="zh"): 2.0}
    means = [difference(margins, A, C, 5, lang=lang, seed=1) for lang in ("en", "zh", None)]

    assert [one.mean for one in means if one] == [-1, 3, 1]


def test_a_level_worked_out_by_hand() -> None:
    """The mean of the goals' means, and the share of cells that chose tool; 0 is no choice of it."""
    margins = {cell("A"): 1.0, cell("A", tool_first=False): 0.0, cell("A", goal="menu"): -2.5}
    found = level(margins, seed=1)

    assert found is not None
    assert (found.mean, found.tool_share, found.cells) == (-1, 1 / 3, 3)
    assert level({}, seed=1) is None


@pytest.mark.parametrize(
    ("low", "high", "shown"), [(-2, -1, -1), (-1, 0, 0), (-1, 1, 0), (0, 1, 0), (0.1, 1, 1), (-1, -0.1, -1)]
)
def test_an_interval_that_touches_0_shows_nothing(low: float, high: float, shown: int) -> None:
    """Neither does one around it."""
    assert Interval(low, high).shown == shown


@given(VALUES, st.integers())
def test_an_interval_lies_within_the_values(values: list[float], seed: int) -> None:
    """No mean of resampled values is outside of them."""
    found = bootstrap(values, seed=seed, resamples=FEW)

    assert min(values) - 1e-9 <= found.low <= found.high <= max(values) + 1e-9


@given(VALUES, st.integers(), st.randoms())
def test_the_order_of_the_values_does_not_matter(values: list[float], seed: int, random: object) -> None:
    """The same values and the same seed give the same interval."""
    mixed = sorted(values, key=lambda _: random.random())  # type: ignore[attr-defined]

    assert bootstrap(values, seed=seed, resamples=FEW) == bootstrap(mixed, seed=seed, resamples=FEW)


@given(st.lists(st.integers(-100, 100), min_size=1, max_size=12), st.integers(), st.integers(-100, 100))
def test_values_that_are_all_higher_have_an_interval_that_is_as_much_higher(
    values: list[int], seed: int, by: int
) -> None:
    """The interval goes with its values."""
    one = bootstrap(values, seed=seed, resamples=FEW)
    other = bootstrap([value + by for value in values], seed=seed, resamples=FEW)

    assert (other.low, other.high) == pytest.approx((one.low + by, one.high + by))


@given(st.floats(-100, 100), st.integers(1, 12))
def test_equal_values_leave_no_doubt(value: float, count: int) -> None:
    """The interval is a point."""
    found = bootstrap([value] * count, seed=1, resamples=FEW)

    assert (found.low, found.high) == pytest.approx((value, value))


@given(st.lists(st.floats(-100, 100), min_size=2, max_size=30))
def test_a_quantile_is_the_standard_librarys(values: list[float]) -> None:
    """Quartiles, as `statistics.quantiles` has them with its inclusive method."""
    ordered = sorted(values)
    expected = statistics.quantiles(ordered, n=4, method="inclusive")

    assert [quantile(ordered, share) for share in (0.25, 0.5, 0.75)] == pytest.approx(expected)
    assert (quantile(ordered, 0), quantile(ordered, 1)) == (ordered[0], ordered[-1])


def test_an_interval_covers_as_often_as_it_says() -> None:
    """Of 200 samples of 12 draws around 0, about 95 in 100 intervals hold 0 (a little fewer)."""
    import random

    draw = random.Random(5)
    samples = [[draw.gauss(0, 1) for _ in range(12)] for _ in range(200)]
    covering = sum(bootstrap(sample, seed=n, resamples=FEW).shown == 0 for n, sample in enumerate(samples))

    assert 0.86 <= covering / 200 <= 0.98
