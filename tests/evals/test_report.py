"""What is said of the answers: what is shown, and as plainly what is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from goalmode.domain.messages import Usage
from goalmode.evals.design import Cell, Design
from goalmode.evals.measure import Answer, Method, Way
from goalmode.evals.pollution import Plan
from goalmode.evals.report import Report, in_json, report, says
from goalmode.evals.results import Results
from tests.evals.builders import ONE, SUBJECT, prompt

DESIGN = Design(turns=(0, 5), langs=("en", "zh"), goals=4)


def _report(
    answer: Callable[[Cell], Answer | None],
    *,
    way: Way = ONE,
    design: Design = DESIGN,
    tokens: dict[str, int] | None = None,
) -> Report:
    """The report on a model that answers each cell as `answer` says; None: not asked yet."""
    sizes = tokens or {}
    planned = Plan([(cell, prompt(cell.key, sizes.get(cell.condition, 100))) for cell in design.cells()])
    results = Results(Path("none"), SUBJECT, way)
    for cell, _ in planned.asked:
        found = answer(cell)
        if found is not None:
            results.answers[cell.key] = found
    return report(planned, results, seed=1)


def _lower_behind_claims(cell: Cell) -> Answer:
    by = {"A": -2.0, "C": -1.0, "B": -1.0, "N": 0.5}[cell.condition] + len(cell.goal) / 1000
    return Answer(by - 1, -1.0, usage=Usage(input=100, output=4))


def test_a_difference_that_is_shown_is_named_with_its_size() -> None:
    """Each goal differs by exactly 1: the interval is that one point."""
    made = _report(_lower_behind_claims)
    said = list(says(made))

    assert "replayed claims of completion, A5 - C5: less inclined to go on, by 1.00: shown" in said
    assert "replay against the rebuilt context, A5 - B5: less inclined to go on, by 1.00: shown" in said
    [one] = [c for c in made.contrasts if c.name == "A5 - C5" and c.lang is None]
    assert (one.found.pairs, one.found.goals, one.found.to_final) == (16, 4, 0)
    assert [c.lang for c in made.contrasts if c.name == "A5 - C5"] == [None, "en", "zh"]
    [flipped] = [c for c in made.contrasts if c.name == "A5 - N"]
    assert (flipped.found.to_final, flipped.found.to_tool) == (16, 0)


def test_what_is_not_shown_is_said_in_so_many_words() -> None:
    """Two goals one way, two the other."""
    made = _report(lambda c: Answer((1.0 if len(c.goal) % 2 else -1.0) if c.condition == "A" else 0.0, 0.0))

    assert any("A5 - C5: the interval of A5 - C5 contains 0: not shown" in line for line in says(made))


def test_too_few_goals_have_no_interval() -> None:
    """Two are too few, three are not."""
    for goals, told in ((2, True), (3, False)):
        made = _report(_lower_behind_claims, design=replace(DESIGN, goals=goals))
        assert any("too few for an interval: not shown" in line for line in says(made)) is told


def test_no_pair_shows_nothing() -> None:
    """An evaluation that has only begun."""
    made = _report(lambda c: _lower_behind_claims(c) if c.condition == "N" else None)

    assert (made.known, made.planned) == (16, 80)
    assert list(says(made)) == ["there is no pair of replay and control: nothing is shown"]


def test_answers_that_do_not_count_are_counted() -> None:
    """Neither word, a word beyond the list's end, and samples of something else."""
    made = _report(
        lambda c: Answer(None, None) if c.condition == "B" else Answer(-1.0, -9.0, "final", other=2)
    )
    said = "\n".join(says(made))

    assert "32 of 80 cells were answered with neither word" in said
    assert "in 48 of 80 cells final was not among the 20 likeliest" in said
    assert "96 sampled answers were neither word" in said


@pytest.mark.parametrize(("read", "told"), [(100, False), (102, False), (103, True)])
def test_a_server_that_counts_otherwise_is_told(read: int, told: bool) -> None:
    """More than two in a hundred."""
    made = _report(lambda c: Answer(0.0, 0.0, usage=Usage(input=read if c.condition == "A" else 100)))

    assert any("differ by up to 3.0% in length" in line for line in says(made)) is told


def test_a_replay_longer_than_its_control_is_told() -> None:
    """It would be no control."""
    made = _report(_lower_behind_claims, tokens={"A": 101})

    assert made.unequal == 16
    assert any("16 replays and their controls differ in length" in line for line in says(made))


def test_what_did_not_fit_is_told_with_its_reason() -> None:
    """By our count before, by the server's in the middle."""
    cells = list(DESIGN.cells())
    early, late = [c for c in cells if c.block == "A5 zh"], [c for c in cells if c.block == "C5 zh"]
    planned = Plan([(c, prompt()) for c in cells if c not in early], dict.fromkeys(early, "9000 tokens"))
    results = Results(Path("none"), SUBJECT, ONE, too_long={c.key: "context size exceeded" for c in late})
    said = list(says(report(planned, results, seed=1)))

    assert "A5 zh: 8 cells left out: 9000 tokens" in said
    assert "C5 zh: 8 cells left out: context size exceeded" in said


def test_sampled_answers_are_compared_by_their_shares() -> None:
    """From -1, all final, to 1, all tool."""
    way = Way(Method.SAMPLES, 0, 10, 16)
    made = _report(lambda c: Answer(4.0, 6.0) if c.condition == "A" else Answer(6.0, 4.0), way=way)
    [one] = [c for c in made.contrasts if c.name == "A5 - C5" and c.lang is None]

    assert one.found.mean == pytest.approx(-0.4)
    assert one.found.to_final == 16


def test_a_program_gets_the_same() -> None:
    """Every figure and every sentence, as JSON."""
    made = _report(_lower_behind_claims)
    value = in_json(made)
    [one] = [d for d in value["differences"] if d["name"] == "A5 - C5" and d["lang"] is None]

    assert (one["mean"], one["shown"]) == (pytest.approx(-1), True)
    assert one["interval"] == {"low": pytest.approx(-1), "high": pytest.approx(-1)}
    assert value["says"] == list(says(made))
    assert {(level["condition"], level["turns"]) for level in value["levels"]} == {
        ("N", 0), ("B", 0), ("B", 5), ("A", 5), ("C", 5)
    }  # fmt: skip
