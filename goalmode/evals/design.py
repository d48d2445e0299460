"""Which contexts are compared, and in which order they are asked about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from goalmode.evals.wording import LANGS, wording


class Condition(StrEnum):
    """What stands before the question. The words are stored."""

    REPLAY = "A"
    """The last turns, sent again, each a claim of completion."""
    CONTROL = "C"
    """The same replay, each turn a report of work in progress, of as many tokens."""
    REBUILT = "B"
    """The context that goalmode renders after as many turns of claims."""
    NEITHER = "N"
    """The goal alone: what A and C are without any turn."""


TURNS = (0, 1, 5, 20, 60)
QUICK_TURNS = (0, 5, 20)
QUICK_GOALS = 6

DRAWS = 3
"""Different beginnings of the earlier turns: with one alone, every goal would be asked behind the same sentences; with
one a goal, a server with one place for a prompt would read every history anew."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One question. `turns` are replayed, or stand behind the rebuilt context; `goal` is the goal's id."""

    condition: Condition
    turns: int
    lang: str
    goal: str
    tool_first: bool

    @property
    def key(self) -> str:
        """The name under which its answer is stored."""
        order = "tool-first" if self.tool_first else "final-first"
        return f"{self.condition}/{self.turns}/{self.lang}/{self.goal}/{order}"

    @property
    def block(self) -> str:
        """The cells it is asked with: `A20 en`."""
        return f"{self.condition}{self.turns} {self.lang}"


@dataclass(frozen=True, slots=True)
class Design:
    """Attributes:
    goals: how many of the goals there are in the wording, from the first.
    """

    turns: tuple[int, ...] = TURNS
    langs: tuple[str, ...] = LANGS
    goals: int = len(wording(LANGS[0]).goals)

    def cells(self) -> Iterator[Cell]:
        """Every cell, those that begin alike one after the other, so that a prefix cache serves the most."""
        for lang in self.langs:
            for condition, turns in self._histories():
                for goal in self._by_draw(lang):
                    for tool_first in (True, False):
                        yield Cell(condition, turns, lang, goal, tool_first)

    def _histories(self) -> Iterator[tuple[Condition, int]]:
        yield Condition.NEITHER, 0
        for condition in (Condition.REBUILT, Condition.REPLAY, Condition.CONTROL):
            for turns in self.turns:
                if turns or condition is Condition.REBUILT:  # A and C without a turn are N.
                    yield condition, turns

    def _by_draw(self, lang: str) -> list[str]:
        ids = [goal.id for goal in wording(lang).goals[: self.goals]]
        return [ids[n] for draw in range(DRAWS) for n in range(draw, len(ids), DRAWS)]


def draw_of(lang: str, goal: str) -> int:
    """Which beginning of the earlier turns this goal is asked behind, from 0."""
    return [known.id for known in wording(lang).goals].index(goal) % DRAWS
