"""From answers to differences: paired, averaged over goals, with bootstrap intervals. Pure."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from goalmode.evals.design import Cell, Condition

RESAMPLES = 2_000
LEVEL = 0.95

FEWEST = 3
"""Goals below which no interval is given: of two, a resample has three outcomes."""

Margins = Mapping[Cell, float]


@dataclass(frozen=True, slots=True)
class Interval:
    low: float
    high: float

    @property
    def shown(self) -> int:
        """-1: all of it is below 0, 1: all above, 0: it contains 0 and nothing is shown."""
        return (self.low > 0) - (self.high < 0)


@dataclass(frozen=True, slots=True)
class Difference:
    """How one context differs from another, over all pairs of cells that are alike in everything else.

    Attributes:
        mean: of the goals' means.
        interval: of that mean; None with fewer than `FEWEST` goals.
        to_final, to_tool: pairs in which the first context made the model choose the other word.
    """

    mean: float
    interval: Interval | None
    pairs: int
    goals: int
    to_final: int
    to_tool: int


def difference(
    margins: Margins, first: Condition, second: Condition, turns: int, *, lang: str | None = None, seed: int
) -> Difference | None:
    """`first` less `second` behind `turns` turns; None without a pair.

    A goal is one unit: its two orders and its two languages are asked about the same thing, and are resampled together.
    """
    pairs = [
        (cell.goal, margin, margins[partner])
        for cell, margin in margins.items()
        if cell.condition is first and cell.turns == turns and lang in (None, cell.lang)
        if (partner := partner_of(cell, second)) in margins
    ]
    if not pairs:
        return None
    means = _by_goal((goal, a - b) for goal, a, b in pairs)
    return Difference(
        fmean(means),
        bootstrap(means, seed=seed) if len(means) >= FEWEST else None,
        len(pairs),
        len(means),
        to_final=sum(a < 0 < b for _, a, b in pairs),
        to_tool=sum(b < 0 < a for _, a, b in pairs),
    )


def partner_of(cell: Cell, condition: Condition) -> Cell:
    """The cell of `condition` that is alike in everything else; there is one N, whatever the turns."""
    turns = 0 if condition is Condition.NEITHER else cell.turns
    return Cell(condition, turns, cell.lang, cell.goal, cell.tool_first)


def bootstrap(
    values: Sequence[float], *, seed: int, resamples: int = RESAMPLES, level: float = LEVEL
) -> Interval:
    """The percentile interval of the mean (Efron and Tibshirani, An Introduction to the Bootstrap, 1993, chapter 13).

    The same values, in any order, and the same seed give the same interval.
    """
    ordered, draw = sorted(values), random.Random(seed)
    means = sorted(fmean(draw.choices(ordered, k=len(ordered))) for _ in range(resamples))
    tail = (1 - level) / 2
    return Interval(quantile(means, tail), quantile(means, 1 - tail))


def quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which `share` of the sorted values lie, linear between neighbours."""
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


@dataclass(frozen=True, slots=True)
class Level:
    """How one context is answered: the mean margin with its interval, and the share of cells that chose tool."""

    mean: float
    interval: Interval | None
    tool_share: float
    cells: int


def level(margins: Margins, *, seed: int) -> Level | None:
    """The level of these cells; None without one."""
    if not margins:
        return None
    means = _by_goal((cell.goal, margin) for cell, margin in margins.items())
    return Level(
        fmean(means),
        bootstrap(means, seed=seed) if len(means) >= FEWEST else None,
        fmean(margin > 0 for margin in margins.values()),
        len(margins),
    )


def _by_goal(values: Iterable[tuple[str, float]]) -> list[float]:
    """The mean of each goal's values."""
    of: defaultdict[str, list[float]] = defaultdict(list)
    for goal, value in values:
        of[goal].append(value)
    return [fmean(of[goal]) for goal in sorted(of)]
