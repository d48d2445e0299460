"""What the answers show, and what they do not: figures for programs, and sentences for people. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from goalmode.evals.design import Cell, Condition
from goalmode.evals.measure import LEAST, Answer, Method
from goalmode.evals.pollution import Plan, margins
from goalmode.evals.results import Results
from goalmode.evals.statistics import Difference, Level, Margins, difference, level, partner_of

A, B, C, N = Condition.REPLAY, Condition.REBUILT, Condition.CONTROL, Condition.NEITHER

CONTRASTS = ((A, C), (A, B), (A, N), (C, N), (B, N))
"""Pairs of contexts that are compared. The first is the question, the second what goalmode does about it."""

UNIT = {
    Method.LOGPROBS: "log p(tool) - log p(final)",
    Method.SAMPLES: "the share of tool less the share of final, sampled",
}


@dataclass(frozen=True, slots=True)
class Contrast:
    """A difference between two contexts; `lang` is None for all languages together."""

    first: Condition
    second: Condition
    turns: int
    lang: str | None
    found: Difference

    @property
    def name(self) -> str:
        """`A5 - C5`, `A5 - N`."""
        second = self.second if self.second is N else f"{self.second}{self.turns}"
        return f"{self.first}{self.turns} - {second}"


@dataclass(frozen=True, slots=True)
class Report:
    """Attributes:
    known, planned: cells. neither: cells in which the model chose neither word; other: sampled answers that were none.
    bounds: by word, answers that count in which it was not in the list.
    unequal: cells of A whose partner in C has another number of tokens by our count.
    apart: the largest difference between such partners by the server's count, as a share; None where it counts none.
    too_long: by block (`A60 zh`), the cells left out, and why.
    """

    method: Method
    top: int
    known: int
    planned: int
    neither: int
    other: int
    bounds: Mapping[str, int]
    unequal: int
    apart: float | None
    too_long: Mapping[str, tuple[int, str]]
    input: int
    output: int
    levels: Mapping[tuple[Condition, int], Level]
    contrasts: tuple[Contrast, ...]


def report(planned: Plan, results: Results, *, seed: int) -> Report:
    """Everything that the answers of this plan show so far."""
    assert results.way is not None
    known = [results.answers[cell.key] for cell, _ in planned.asked if cell.key in results.answers]
    found = margins(planned, results)
    return Report(
        results.way.method,
        results.way.top,
        known=len(known),
        planned=len(planned.asked) + len(planned.too_long),
        neither=len(known) - len(found),
        other=sum(answer.other for answer in known),
        bounds=_bounds(known, results.way.method),
        unequal=_unequal(planned),
        apart=_apart(planned, results),
        too_long=_too_long(planned, results),
        input=sum(answer.usage.input for answer in known),
        output=sum(answer.usage.output for answer in known),
        levels=_levels(found, seed),
        contrasts=tuple(_contrasts(found, seed)),
    )


def _bounds(known: Sequence[Answer], method: Method) -> Mapping[str, int]:
    return Counter(answer.bound for answer in known if answer.bound and answer.margin(method) is not None)


def _levels(found: Margins, seed: int) -> dict[tuple[Condition, int], Level]:
    groups = sorted({(cell.turns, cell.condition) for cell in found})
    made: dict[tuple[Condition, int], Level] = {}
    for turns, condition in groups:
        here = {c: m for c, m in found.items() if (c.turns, c.condition) == (turns, condition)}
        one = level(here, seed=seed)
        if one is not None:
            made[condition, turns] = one
    return made


def _contrasts(found: Margins, seed: int) -> Iterator[Contrast]:
    langs = sorted({cell.lang for cell in found})
    for first, second in CONTRASTS:
        for turns in sorted({cell.turns for cell in found if cell.condition is first}):
            # The question itself is also answered for each language.
            apart = langs if (first, second) == (A, C) and len(langs) > 1 else []
            for lang in (None, *apart):
                one = difference(found, first, second, turns, lang=lang, seed=seed)
                if one is not None:
                    yield Contrast(first, second, turns, lang, one)


def _partners(planned: Plan) -> Iterator[tuple[Cell, Cell]]:
    known = {cell for cell, _ in planned.asked}
    for cell in known:
        if cell.condition is A and (partner := partner_of(cell, C)) in known:
            yield cell, partner


def _unequal(planned: Plan) -> int:
    tokens = {cell: prompt.tokens for cell, prompt in planned.asked}
    return sum(tokens[a] != tokens[c] for a, c in _partners(planned))


def _apart(planned: Plan, results: Results) -> float | None:
    read = {key: answer.usage.input for key, answer in results.answers.items() if answer.usage.input}
    shares = [
        abs(read[a.key] - read[c.key]) / read[c.key]
        for a, c in _partners(planned)
        if a.key in read and c.key in read
    ]
    return max(shares, default=None)


def _too_long(planned: Plan, results: Results) -> dict[str, tuple[int, str]]:
    left_out = dict(planned.too_long)
    left_out |= {
        cell: results.too_long[cell.key] for cell, _ in planned.asked if cell.key in results.too_long
    }
    blocks: dict[str, tuple[int, str]] = {}
    for cell, why in left_out.items():
        blocks[cell.block] = (blocks.get(cell.block, (0, ""))[0] + 1, why)
    return blocks


def in_json(made: Report) -> dict[str, Any]:
    """The report as a JSON value; an interval that is null could not be given."""
    levels = [
        {"condition": condition.value, "turns": turns, **asdict(one)}
        for (condition, turns), one in made.levels.items()
    ]
    contrasts = [
        {
            "name": one.name,
            "first": one.first.value,
            "second": one.second.value,
            "turns": one.turns,
            "lang": one.lang,
            **asdict(one.found),
            "shown": one.found.interval is not None and one.found.interval.shown != 0,
        }
        for one in made.contrasts
    ]
    plain = {
        name: getattr(made, name)
        for name in ("known", "planned", "neither", "other", "unequal", "apart", "input", "output", "top")
    }
    return {
        "method": made.method.value,
        **plain,
        "bounds": dict(made.bounds),
        "too_long": {block: {"cells": n, "why": why} for block, (n, why) in made.too_long.items()},
        "levels": levels,
        "differences": contrasts,
        "says": list(says(made)),
    }


def says(made: Report) -> Iterator[str]:
    """What is shown and what is not, one sentence each."""
    wanted = {(A, C): "replayed claims of completion", (A, B): "replay against the rebuilt context"}
    for one in made.contrasts:
        if one.lang is None and (one.first, one.second) in wanted and one.turns:
            yield f"{wanted[one.first, one.second]}, {_verdict(one)}"
    if not any((one.first, one.second) == (A, C) for one in made.contrasts):
        yield "there is no pair of replay and control: nothing is shown"
    yield from _cautions(made)


def _verdict(one: Contrast) -> str:
    interval = one.found.interval
    if interval is None:
        return f"{one.name}: only {one.found.goals} goal(s), too few for an interval: not shown"
    if interval.shown == 0:
        return f"{one.name}: the interval of {one.name} contains 0: not shown"
    word = "less" if interval.shown < 0 else "more"
    return f"{one.name}: {word} inclined to go on, by {abs(one.found.mean):.2f}: shown"


def _cautions(made: Report) -> Iterator[str]:
    if made.neither:
        least = f", or with less than {LEAST:.0%} for both" if made.method is Method.LOGPROBS else ""
        yield f"{made.neither} of {made.known} cells were answered with neither word{least}, and do not count"
    if made.other:
        yield f"{made.other} sampled answers were neither word, and do not count"
    for word, count in sorted(made.bounds.items()):
        yield (
            f"in {count} of {made.known} cells {word} was not among the {made.top} likeliest: "
            "the last one's value stands for it, so these margins are farther from 0 than shown"
        )
    if made.unequal:
        yield f"{made.unequal} replays and their controls differ in length by our count of tokens"
    if made.apart is not None and made.apart > 0.02:
        yield (
            f"by the server's count a replay and its control differ by up to {made.apart:.1%} in length: "
            "its vocabulary is not ours"
        )
    for block, (count, why) in made.too_long.items():
        yield f"{block}: {count} cells left out: {why}"
