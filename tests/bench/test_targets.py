"""Targets: where a figure stands, which of several counts, and what makes a run fail."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from goalmode.bench import __main__ as bench
from goalmode.bench.page import page
from goalmode.bench.sections import SECTIONS
from goalmode.bench.sizes import FULL, QUICK
from goalmode.bench.table import Grid, Results, as_markdown, as_text, shown
from goalmode.bench.targets import BY_KEY, TARGETS, Figure, Mark, Target, merged, missed

AT = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("least", "value", "mark"),
    [
        (False, 1.0, Mark.AIM),
        (False, 1.01, Mark.MUST),
        (False, 2.0, Mark.MUST),
        (False, 2.01, Mark.MISSED),
        (False, None, Mark.NONE),
        (True, 90.0, Mark.AIM),
        (True, 89.9, Mark.MUST),
        (True, 85.0, Mark.MUST),
        (True, 84.9, Mark.MISSED),
        (True, None, Mark.NONE),
    ],
)
def test_where_a_figure_stands(least: bool, value: float | None, mark: Mark) -> None:
    """The bounds themselves are reached; what was not measured misses nothing."""
    most, best = (85.0, 90.0) if least else (2.0, 1.0)
    assert Target("k", "what", most, best, least=least).mark(value) is mark


def test_of_several_figures_the_worst_counts() -> None:
    """The most of what must be little, the least of what must be much; one that was measured beats one that was not."""
    found = merged(
        [
            Figure("recall", 50, note="at 180"),
            Figure("over", 0, note="a"),
            Figure("recall", 49, note="at 1,000"),
            Figure("over", 3, note="b"),
            Figure("written", None, note="no /proc"),
            Figure("written", 9.5),
        ]
    )

    assert [(one.key, one.value, one.note) for one in found] == [
        ("written", 9.5, "no /proc"),
        ("recall", 49, "at 180; at 1,000"),
        ("over", 3, "a; b"),
    ]
    assert [one.key for one in missed(found)] == ["recall", "over"]


@pytest.mark.parametrize(
    ("value", "code"),
    [(0.9, 0), (2.0, 0), (2.0001, 1), (None, 0)],
    ids=["aim", "must", "missed", "unmeasured"],
)
def test_a_run_fails_only_when_a_must_is_missed(
    value: float | None, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An aim that is not reached, and what could not be measured, fail nothing. What fails is named."""
    results = Results((Figure("cpu", value),))
    file, markdown = tmp_path / "bench.json", tmp_path / "BENCHMARKS.md"

    assert bench.report(results, json_file=file, page_file=markdown, at=AT, command="bench") == code

    told = capsys.readouterr()
    assert BY_KEY["cpu"].what in told.out
    assert told.err == ("missed: CPU per turn, all commits included\n" if code else "")
    (figure,) = json.loads(file.read_text())["figures"]
    assert (figure["value"], figure["must"], figure["unit"]) == (value, 2.0, "× H")
    assert markdown.read_text().startswith("# Benchmarks\n\n2030-01-02, `bench`: ")


def test_a_table_reads_the_same_in_a_terminal_and_on_a_page() -> None:
    """Aligned in the one, ruled in the other, with the note below."""
    grid = Grid("Sizes", ("what", "bytes"), [("a|b", "1"), ("longer", "20,000")], "Of files.")

    assert as_text(grid) == "Sizes\n  what    bytes\n  a|b     1\n  longer  20,000\n  Of files."
    assert as_markdown(grid) == (
        "## Sizes\n\n| what | bytes |\n| --- | --- |\n| a/b | 1 |\n| longer | 20,000 |\n\nOf files."
    )


@pytest.mark.parametrize(
    ("value", "told"),
    [(0.0, "0"), (50, "50"), (1.6234, "1.62"), (12_345.6, "12,346"), (0.0312, "0.031"), (164.2, "164")],
)
def test_numbers_have_as_many_digits_as_say_something(value: float, told: str) -> None:
    """Three, or all of a whole number."""
    assert shown(value) == told


def test_a_page_says_what_is_not_reached_and_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missed comes first; what reaches its aim is not spoken of."""
    figures = (Figure("help", 6.0), Figure("cpu", 3.0), Figure("over", 0))
    monkeypatch.setitem(
        BY_KEY, "cpu", Target("cpu", "CPU per turn", 2.0, 1.0, limit="Statements are built anew.")
    )

    told = page(Results(figures), AT, "bench").partition("## What is not reached, and why\n\n")[2]

    assert told.splitlines() == [
        "- CPU per turn: missed. Statements are built anew.",
        f"- CPU of goalmode --help ÷ bare python: not yet what is aimed at. {BY_KEY['help'].limit}",
    ]


@pytest.mark.parametrize("option", ["--json", "--page"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And not after ten minutes."""
    for file in (tmp_path, tmp_path / "none" / "bench.json"):
        with pytest.raises(SystemExit, match="2"):
            bench.main([option, str(file)])
        assert f"{file}: a file in a directory that exists is needed" in capsys.readouterr().err


def test_every_part_of_a_run_is_known() -> None:
    """A size names parts that exist, and every target has a name of its own."""
    assert set(FULL.sections) == set(SECTIONS)
    assert set(QUICK.sections) <= set(SECTIONS)
    assert len(BY_KEY) == len(TARGETS)
