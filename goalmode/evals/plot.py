"""The answers as a picture: how inclined the model is to go on behind each context, and what the replays differ by."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from goalmode.errors import GoalmodeError
from goalmode.evals.design import Condition
from goalmode.evals.report import UNIT, Report
from goalmode.evals.statistics import Interval

FILE = "pollution.png"
MISSING = "no plot: it needs matplotlib, `pip install 'goalmode[eval]'`"

_LOOKS = {
    Condition.REPLAY: ("A: replayed completion", "#c0392b", "o"),
    Condition.CONTROL: ("C: replayed progress", "#2471a3", "s"),
    Condition.REBUILT: ("B: rebuilt context", "#1e8449", "D"),
}
_APART = 0.12
"""Between the marks of one number of turns, in the distance of two such numbers."""


def draw(made: Report, title: str, path: Path) -> bool:
    """Write the plot as a PNG file; False where matplotlib is not installed.

    Raises:
        GoalmodeError: the file cannot be written.
    """
    try:
        figure = import_module("matplotlib.figure").Figure(figsize=(10, 5.2), layout="constrained")
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "matplotlib":
            raise
        return False
    left, right = figure.subplots(1, 2)
    figure.suptitle(title)
    _levels(left, made)
    _differences(right, made)
    try:
        figure.savefig(path, dpi=120)
    except OSError as error:
        raise GoalmodeError(f"{path}: cannot be written: {error.strerror}") from None
    return True


def _levels(axes: Any, made: Report) -> None:
    places = {turns: place for place, turns in enumerate(sorted({turns for _, turns in made.levels}))}
    neither = made.levels.get((Condition.NEITHER, 0))
    if neither is not None:
        axes.axhline(neither.mean, color="grey", linestyle="--", linewidth=1, label="N: neither")
    for shift, (condition, look) in enumerate(_LOOKS.items()):
        points = [
            (places[turns] + _APART * (shift - 1), one.mean, one.interval)
            for (of, turns), one in made.levels.items()
            if of is condition
        ]
        _marks(axes, points, look)
    axes.set_title("Inclined to go on (up) or to end (down)")
    axes.set_ylabel(UNIT[made.method])
    _turns(axes, places)


def _differences(axes: Any, made: Report) -> None:
    shown = [one for one in made.contrasts if one.lang is None and one.first is Condition.REPLAY]
    places = {turns: place for place, turns in enumerate(sorted({one.turns for one in shown}))}
    axes.axhline(0, color="black", linewidth=0.8)
    looks = {
        Condition.CONTROL: ("A - C: the wording", "#c0392b", "o"),
        Condition.REBUILT: ("A - B: replay against rebuilt", "#1e8449", "D"),
        Condition.NEITHER: ("A - N: replay against neither", "grey", "^"),
    }
    for shift, (second, look) in enumerate(looks.items()):
        points = [
            (places[one.turns] + _APART * (shift - 1), one.found.mean, one.found.interval)
            for one in shown
            if one.second is second
        ]
        _marks(axes, points, look)
    axes.set_title("Paired differences, 95 % intervals")
    _turns(axes, places)


def _marks(axes: Any, points: list[tuple[float, float, Interval | None]], look: tuple[str, str, str]) -> None:
    if not points:
        return
    label, color, marker = look
    xs, ys, intervals = zip(*points, strict=True)
    below = [max(0.0, y - i.low) if i else 0.0 for y, i in zip(ys, intervals, strict=True)]
    above = [max(0.0, i.high - y) if i else 0.0 for y, i in zip(ys, intervals, strict=True)]
    axes.errorbar(
        xs, ys, yerr=[below, above], label=label, color=color, marker=marker, linestyle="none", capsize=3
    )


def _turns(axes: Any, places: dict[int, int]) -> None:
    axes.set_xticks(list(places.values()), [str(turns) for turns in places])
    axes.set_xlim(-0.5, len(places) - 0.5)
    axes.set_xlabel("turns before the question")
    axes.legend(fontsize="small", loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)
