"""Figures as tables: for a terminal, and for a page in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from goalmode.bench.measure import Spread
from goalmode.bench.targets import BY_KEY, Figure, Target


@dataclass(frozen=True, slots=True)
class Grid:
    """Figures without a target, that stand beside each other.

    Attributes:
        rows: each begins with its name.
        note: what they are, in a sentence or two.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Results:
    """Everything that a run measured."""

    figures: Sequence[Figure] = field(default_factory=tuple)
    grids: Sequence[Grid] = field(default_factory=tuple)

    def __add__(self, other: Results) -> Results:
        return Results((*self.figures, *other.figures), (*self.grids, *other.grids))


def targets_grid(figures: Sequence[Figure], *, how: bool = True) -> Grid:
    """The figures that have a target, each with its mark.

    Args:
        how: also how each was measured.
    """
    head = ("what", "measured", "must", "aim", "mark", "how")
    rows = [_row(figure) for figure in figures]
    return Grid("Targets", head if how else head[:-1], rows if how else [row[:-1] for row in rows])


def shown(value: float) -> str:
    """A number with as many digits as say something."""
    if value == int(value) or abs(value) >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.1 else f"{value:.2g}"


def span(spread: Spread) -> str:
    """A median with the least and the greatest."""
    return f"{shown(spread.median)} ({shown(spread.low)}-{shown(spread.high)})"


def as_text(grid: Grid) -> str:
    """For a terminal."""
    lines = [[*grid.head], *([*row] for row in grid.rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(grid.head))]
    told = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    return "\n".join(
        [grid.title, *(f"  {line}" for line in told), *([f"  {grid.note}"] if grid.note else [])]
    )


def as_markdown(grid: Grid) -> str:
    """For a page."""

    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"

    ruled = line(["---"] * len(grid.head))
    told = [f"## {grid.title}", "", line(grid.head), ruled, *map(line, grid.rows)]
    return "\n".join([*told, *(["", grid.note] if grid.note else [])])


def _row(figure: Figure) -> tuple[str, ...]:
    target = BY_KEY[figure.key]
    relation = "≥" if target.least else "≤"
    return (
        target.what,
        _measured(figure, target),
        f"{relation} {shown(target.must)}{target.unit}",
        f"{relation} {shown(target.aim)}{target.unit}",
        target.mark(figure.value).value,
        figure.note,
    )


def _measured(figure: Figure, target: Target) -> str:
    if figure.value is None:
        return "not measured"
    told = f"{shown(figure.value)}{target.unit}"
    if figure.low is None or figure.high is None:
        return told
    return f"{told} ({shown(figure.low)}-{shown(figure.high)})"
