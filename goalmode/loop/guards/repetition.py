"""Repetition: the same calls with the same results again and again, one by one or in a cycle of two or three. Pure.

What changes is no repetition: a poll may go on for ever as long as its results differ. Calls that save state or ask for
an ending do not break a repetition of reads and writes, or a reworded checkpoint between two of them would hide it; a
repetition of calls that save, with nothing read or written between them, is one as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from goalmode.domain.calls import SUBSTANTIVE, CallOutcome, CallRecord, Effect, arguments_digest, digest
from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.messages import ToolCall

WARN_AT = 5
"""Times in a row after which the model is told."""

STOP_AT = 10
"""Times in a row after which the movement ends with NO_PROGRESS; in one reply, after which its calls are skipped."""

MAX_PERIOD = 3
"""Calls of the longest cycle that is seen."""

REMEMBERED = STOP_AT * MAX_PERIOD

Keys = frozenset[tuple[str, str]]
"""By which a repetition is known: of its calls, what was asked and what came of it."""

_MADE = frozenset({CallOutcome.SUCCESS, CallOutcome.FAILED})


@dataclass(frozen=True, slots=True)
class Made:
    """One call with its result, as far as it takes to know it again and to name it.

    Attributes:
        asked: the tool and its arguments. got: what came of it.
    """

    asked: str
    got: str
    tool: str
    brief: str

    def __str__(self) -> str:
        return f"{self.tool}: {self.brief}" if self.brief else self.tool


@dataclass(frozen=True, slots=True)
class Repetition:
    """`calls`, one to three of them, were made `count` times in a row with the same results.

    Attributes:
        told: the model knew of it before the reply that went on with it.
    """

    calls: tuple[Made, ...] = ()
    count: int = 0
    told: bool = False

    @property
    def ends(self) -> bool:
        """Whether the movement ends with it. Not before the model could have broken it."""
        return self.told and self.count >= STOP_AT

    @property
    def keys(self) -> Keys:
        """The same wherever in its cycle it is."""
        return frozenset((call.asked, call.got) for call in self.calls)

    def asks_again(self, call: ToolCall) -> bool:
        """Whether it has gone far enough, and `call` would go on with it."""
        asked = _asked(call.name, arguments_digest(call.arguments))
        return self.count >= STOP_AT and any(made.asked == asked for made in self.calls)


@dataclass(frozen=True, slots=True)
class Recent:
    """The newest calls of a wakeup, oldest first and as many as a repetition can be made of.

    Attributes:
        work: calls that read or write.
        saves: calls that saved state since the last of those.
        told: keys of the repetitions that the model was told of, as long as they go on.
    """

    work: tuple[Made, ...] = ()
    saves: tuple[Made, ...] = ()
    told: frozenset[Keys] = frozenset()

    def after(self, record: CallRecord) -> tuple[Recent, Repetition]:
        """The newest calls with one more, and what it repeats. A call that did not run is none."""
        saves = record.effect is Effect.STATE
        if record.outcome not in _MADE or not (saves or record.effect in SUBSTANTIVE):
            return self, Repetition()
        before = self.saves if saves else self.work
        calls = (*before, _made(record))[-REMEMBERED:]
        recent = replace(self, saves=calls) if saves else replace(self, work=calls, saves=())
        return recent, _repeated(calls)


def watch(recent: Recent, records: Iterable[CallRecord]) -> tuple[Recent, Repetition | None]:
    """The newest calls after those of one reply, and the repetition that is to be told of, or that ends the movement.

    None where there is none, or the model was told of it and it may still break it.
    """
    longest = Repetition()
    for record in records:
        recent, seen = recent.after(record)
        longest = max(longest, seen, key=lambda one: one.count)
    longest = replace(longest, told=longest.keys in recent.told)
    going_on = {one.keys for one in map(_repeated, (recent.work, recent.saves)) if one.count >= WARN_AT}
    recent = replace(recent, told=frozenset(going_on & {*recent.told, longest.keys}))
    matters = longest.ends or (longest.count >= WARN_AT and not longest.told)
    return recent, longest if matters else None


def no_progress(seen: Repetition) -> Exit:
    """The ending of a movement that repeats itself."""
    calls = [str(call) for call in seen.calls]
    what = "the same call was" if len(calls) == 1 else f"the same {len(calls)} calls were"
    detail = f"{what} made {seen.count} times in a row with the same result: {'; '.join(calls)}"
    facts = {"tool": seen.calls[-1].tool, "calls": calls, "count": seen.count, "period": len(calls)}
    return Exit(ExitReason.NO_PROGRESS, detail, facts)


def _made(record: CallRecord) -> Made:
    """Of a call that saves only the arguments count: its result may tell how often it was made."""
    asked, got = _asked(record.tool, record.arguments_sha), ""
    if record.effect is not Effect.STATE:
        got = f"{record.outcome}:{record.result_sha or digest(record.body or record.shown)}"
    return Made(asked, got, record.tool, record.brief)


def _asked(tool: str, arguments_sha: str) -> str:
    return f"{tool}:{arguments_sha}"


def _repeated(calls: Sequence[Made]) -> Repetition:
    """What the newest calls repeat, in the shortest cycle that says it."""
    keys = [(call.asked, call.got) for call in calls]
    periods = range(1, min(MAX_PERIOD, len(keys)) + 1)
    period = max(periods, key=lambda period: _times(keys, period), default=0)
    return Repetition(tuple(calls[-period:]), _times(keys, period)) if period else Repetition()


def _times(keys: Sequence[tuple[str, str]], period: int) -> int:
    """How often the last `period` keys stand there in a row."""
    block, times = keys[-period:], 1
    while keys[-(times + 1) * period : -times * period] == block:
        times += 1
    return times
