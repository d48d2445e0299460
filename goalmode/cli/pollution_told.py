"""What `eval pollution` says: the cost before it starts, how far it is, and the tables at the end."""

from __future__ import annotations

from collections.abc import Sequence

from goalmode.cli.output import remark, say, table
from goalmode.domain.cost import dollars
from goalmode.domain.profile import ModelProfile
from goalmode.evals.design import Cell, Condition
from goalmode.evals.measure import WHOLE_CHARACTER, Method, Way
from goalmode.evals.pollution import Asked, Plan, estimate
from goalmode.evals.prompts import Prompt
from goalmode.evals.report import UNIT, Contrast, Report, says
from goalmode.evals.results import Results
from goalmode.evals.statistics import LEVEL, RESAMPLES, Interval

_CONDITIONS = (
    "A: so many turns of completion prose, replayed. C: as many turns of work in progress, of the same length.",
    "B: goalmode's context, rebuilt after such turns. N: neither. Above 0 the model goes on, below it ends.",
)
_ONE = Way(Method.LOGPROBS, 0, 1, WHOLE_CHARACTER)


def costs(
    planned: Plan, results: Results, profile: ModelProfile, fallback: Way, method: str, *, quiet: bool
) -> None:
    """Say on standard error what is about to be asked, at most."""
    if quiet:
        return
    todo = planned.open(results)
    known = len(planned.asked) - len(todo)
    if known:
        remark(f"{known} of {len(planned.asked)} cells are known from {results.path}.")
    if results.way is not None:
        remark(_cost(todo, results.way, profile))
        return
    if method != Method.SAMPLES:
        remark(_cost(todo, _ONE, profile))
    if method != Method.LOGPROBS:
        before = "" if method == Method.SAMPLES else "If the server tells no log-probabilities: "
        remark(before + _cost(todo, fallback, profile))
    if profile.price is None:
        remark(f"{profile.name} has no price in goalmode.toml: what that costs is not known here.")


def _cost(todo: Sequence[tuple[Cell, Prompt]], way: Way, profile: ModelProfile) -> str:
    most = estimate(todo, way, profile.price)
    money = "" if most.micro is None else f", at most {dollars(most.micro)}"
    return (
        f"{most.requests:,} requests, about {most.input:,} tokens in and at most {most.output:,} out{money}."
    )


def progress(*, quiet: bool) -> Asked:
    """Says on standard error when another context begins."""
    before = ""

    def told(cell: Cell, known: int, total: int) -> None:
        nonlocal before
        if not quiet and cell.block != before:
            remark(f"{known:>5} of {total}  {cell.block}")
            before = cell.block

    return told


def tell(made: Report, title: str) -> None:
    """Print everything that is shown, and what is not."""
    say(title, strong=True)
    say(f"{made.known} of {made.planned} cells; {made.input:,} tokens in, {made.output:,} out.")
    for line in _CONDITIONS:
        say(line)
    say()
    _levels(made)
    say()
    head = ["DIFFERENCE", "MEAN", f"{LEVEL:.0%} INTERVAL", "PAIRS", "GOALS", "TO FINAL", "TO TOOL", ""]
    table(head, [_row(one) for one in made.contrasts])
    say()
    for sentence in says(made):
        say(f"- {sentence}.")
    say(
        f"Each interval ({RESAMPLES:,} resamples of the goals) holds by itself: of twenty, one is wrong by chance. TO "
        "FINAL and TO TOOL count pairs in which the first context made the model choose the other word."
    )


def _levels(made: Report) -> None:
    say(f"Mean of {UNIT[made.method]}, and how often tool was chosen:")
    turns = sorted({n for _, n in made.levels})
    order = (Condition.REPLAY, Condition.CONTROL, Condition.REBUILT, Condition.NEITHER)
    rows = [[str(n), *(_level(made, condition, n) for condition in order)] for n in turns]
    table(["TURNS", *order], rows)


def _level(made: Report, condition: Condition, turns: int) -> str:
    one = made.levels.get((condition, turns))
    return "-" if one is None else f"{one.mean:+.2f} ({one.tool_share:.0%})"


def _row(one: Contrast) -> list[str]:
    found = one.found
    name = one.name if one.lang is None else f"  {one.name}, {one.lang}"
    counts = [str(n) for n in (found.pairs, found.goals, found.to_final, found.to_tool)]
    return [name, f"{found.mean:+.3f}", _interval(found.interval), *counts, _word(found.interval)]


def _interval(interval: Interval | None) -> str:
    return "-" if interval is None else f"{interval.low:+.3f} to {interval.high:+.3f}"


def _word(interval: Interval | None) -> str:
    if interval is None or interval.shown == 0:
        return "not shown"
    return "less tool" if interval.shown < 0 else "more tool"
