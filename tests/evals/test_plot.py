"""The picture, where there is a library for it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from goalmode.errors import GoalmodeError
from goalmode.evals import plot
from goalmode.evals.design import Design
from goalmode.evals.measure import Answer
from goalmode.evals.pollution import Plan
from goalmode.evals.report import Report, report
from goalmode.evals.results import Results
from tests.evals.builders import ONE, SUBJECT, prompt


def _made(goals: int = 3) -> Report:
    planned = Plan([(c, prompt()) for c in Design(turns=(0, 1, 5), langs=("en",), goals=goals).cells()])
    results = Results(Path("none"), SUBJECT, ONE)
    for cell, _ in planned.asked:
        results.answers[cell.key] = Answer(-1.0 - cell.turns * (cell.condition == "A") / 10, -1.5)
    return report(planned, results, seed=1)


@pytest.mark.long
@pytest.mark.parametrize("goals", [1, 3])
def test_the_plot_is_a_png(tmp_path: Path, goals: int) -> None:
    """With intervals, and where there are too few goals for any."""
    pytest.importorskip("matplotlib")

    assert plot.draw(_made(goals), "title", tmp_path / plot.FILE)
    assert (tmp_path / plot.FILE).read_bytes().startswith(b"\x89PNG")


@pytest.mark.long
def test_a_plot_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    """In one line, with the path."""
    pytest.importorskip("matplotlib")
    with pytest.raises(GoalmodeError, match=r"gone.*cannot be written"):
        plot.draw(_made(), "title", tmp_path / "gone" / plot.FILE)


def test_without_the_library_there_is_no_plot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And no error: the table says everything."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)

    assert plot.draw(_made(), "title", tmp_path / plot.FILE) is False
    assert list(tmp_path.iterdir()) == []
