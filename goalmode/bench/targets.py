"""What is to be reached, as data: for each figure what it must be, what is aimed at, and what keeps it from that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from goalmode.bench.measure import Spread


class Mark(StrEnum):
    """How a figure stands to its target."""

    AIM = "aim reached"
    MUST = "holds"
    MISSED = "MISSED"
    NONE = ""
    """There is no target, or nothing was measured."""


@dataclass(frozen=True, slots=True)
class Target:
    """A figure's target.

    Attributes:
        unit: behind the figures, with its blank where it has one.
        must: the most that it may be, or with `least` the least that it must be. aim: what is better still.
        limit: what keeps the figure from what is aimed at; told as long as it is not reached.
    """

    key: str
    what: str
    must: float
    aim: float
    unit: str = ""
    least: bool = False
    limit: str = ""

    def mark(self, value: float | None) -> Mark:
        """Where `value` stands; a figure that was not measured misses nothing."""
        if value is None:
            return Mark.NONE
        sign = -1 if self.least else 1
        if sign * value <= sign * self.aim:
            return Mark.AIM
        return Mark.MUST if sign * value <= sign * self.must else Mark.MISSED


@dataclass(frozen=True, slots=True)
class Figure:
    """What was measured.

    Attributes:
        key: of its target.
        value: the median of the repetitions, None where it could not be measured.
        low, high: the least and the greatest of them; None where there was one.
        note: how it was measured here, or why it was not.
    """

    key: str
    value: float | None
    low: float | None = None
    high: float | None = None
    count: int = 1
    note: str = ""


def figure_of(key: str, spread: Spread, note: str) -> Figure:
    """A figure that was measured several times."""
    return Figure(key, spread.median, spread.low, spread.high, spread.count, note)


TARGETS = (
    Target(
        "cpu",
        "CPU per turn, all commits included",
        2.0,
        1.0,
        " × H",
        limit=(
            "H does one of each: one request that is not streamed, one parse, one commit. A turn here has "
            "two commits in which a dozen statements run, a streamed answer, three counts of tokens, a "
            "lock and a fence before its tool, four hops to a thread, and a tenth of a context rendered "
            "anew. The same steps through the same libraries, with nothing between them, take most or all "
            "of what the target allows: see L below. The rest is what goalmode is for: to check, repair, "
            "redact, record and tell. Its profile is flat, no part of it has more than a fifth: what is "
            "left is the number of steps. On a machine that others share, runs of one day gave 3.5 and "
            "5.9: H fits into caches that a turn does not, so it gains more where nobody else is."
        ),
    ),
    Target(
        "flat",
        "CPU per turn at turn 10,000 ÷ at turn 10",
        1.25,
        1.05,
        limit="Indexes are deeper, and fewer of their pages are in the cache.",
    ),
    Target(
        "stored",
        "database bytes per turn at 1,000 turns",
        2.0,
        0.7,
        " × P",
        limit=(
            "Each reply and each result is packed by itself, and a turn's rows hold its usage, its call, "
            "their hashes and their times."
        ),
    ),
    Target(
        "written",
        "bytes written per turn",
        14,
        6,
        " × P",
        limit="Each of two commits writes its pages to the log, and a checkpoint writes them once more.",
    ),
    Target(
        "resume",
        "resume to the first request, 10,000 prior turns ÷ 10",
        1.5,
        1.1,
        limit="Indexes of a larger store are deeper.",
    ),
    Target(
        "tokens_180",
        "input tokens ÷ full replay, 180 turns, window 12k",
        0.30,
        0.165,
        limit=(
            "A tooth keeps the last turns, and tells the saved state again: a smaller share of both would "
            "forget more."
        ),
    ),
    Target(
        "tokens_1000",
        "input tokens ÷ full replay, 1,000 turns, window 12k",
        0.06,
        0.03,
        limit="As with 180 turns; of what is sent, nearly all is what is told again.",
    ),
    Target("recall", "facts saved early that are told late", 50, 50, " of 50", least=True),
    Target("over", "requests above their token bound", 0, 0),
    Target("syncs_read", "fsyncs per turn that only reads", 2, 1),
    Target("syncs_effect", "fsyncs per turn with an effect", 2, 2),
    Target(
        "prefix",
        "request bytes that repeat the request before, window 12k",
        85,
        90,
        " %",
        least=True,
        limit="At each tooth a request begins anew behind the system prompt.",
    ),
    Target(
        "help",
        "CPU of goalmode --help ÷ bare python",
        7,
        3,
        limit="Half of it is click and the finding of files of our own modules.",
    ),
    Target(
        "memory",
        "peak memory over bare python",
        60,
        30,
        " MB",
        limit=(
            "The libraries and o200k's vocabulary alone take twice what the target allows, as measured "
            "beside it; of the vocabulary 58 MB stay. Without it, and with no count of tokens in the "
            "process, it would be about 70. Turns add nothing."
        ),
    ),
)
"""In the order in which they are shown."""

BY_KEY = {target.key: target for target in TARGETS}


def merged(figures: Iterable[Figure]) -> list[Figure]:
    """One figure for each target, in the targets' order: of several the worst, with what all of them say of theirs."""
    found: dict[str, Figure] = {}
    for figure in figures:
        known = found.get(figure.key)
        found[figure.key] = figure if known is None else _worse(known, figure)
    return [found[target.key] for target in TARGETS if target.key in found]


def _worse(one: Figure, other: Figure) -> Figure:
    note = "; ".join(note for note in (one.note, other.note) if note)
    if one.value is None or other.value is None:
        return replace(other if one.value is None else one, note=note)
    least = BY_KEY[one.key].least
    return replace((min if least else max)((one, other), key=_value), note=note)


def _value(figure: Figure) -> float:
    return 0.0 if figure.value is None else figure.value


def missed(figures: Sequence[Figure]) -> list[Figure]:
    """The figures that are not what they must be."""
    return [figure for figure in figures if BY_KEY[figure.key].mark(figure.value) is Mark.MISSED]
