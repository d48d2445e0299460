"""What a model is shown and asked, in two languages: data in TOML files, the same goals in the same order in both."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources

TOOL, FINAL = "tool", "final"
"""The two words a model chooses between, the same in every language."""

LANGS = ("en", "zh")


@dataclass(frozen=True, slots=True)
class Turn:
    """One earlier reply, in two wordings of as many tokens."""

    completion: str
    progress: str


@dataclass(frozen=True, slots=True)
class EvalGoal:
    """A goal that is half done in every context: its deliverable is missing.

    Attributes:
        id: the same in every language.
        commands: what the shell was used for so far.
        done, pending: what a checkpoint has saved as done, and as still to be verified.
    """

    id: str
    objective: str
    deliverable: str
    commands: tuple[str, ...]
    done: str
    pending: str


@dataclass(frozen=True, slots=True)
class Wording:
    """Attributes:
    asked: the question, with places for the two meanings in their order and for the two words.
    tool, final: what each word means.
    go_on: what the user says before each earlier reply.
    """

    lang: str
    asked: str
    tool: str
    final: str
    go_on: str
    turns: tuple[Turn, ...]
    goals: tuple[EvalGoal, ...]

    def question(self, *, tool_first: bool) -> str:
        """The question, with its alternatives in one of their two orders."""
        pairs = [(TOOL, self.tool), (FINAL, self.final)]
        (one, first), (other, second) = pairs if tool_first else pairs[::-1]
        return self.asked.format(first=first, second=second, one=one, other=other)


@cache
def wording(lang: str) -> Wording:
    """The wording in one of `LANGS`."""
    file = resources.files(__package__).joinpath(f"pollution.{lang}.toml")
    table = tomllib.loads(file.read_text("utf-8"))
    goals = (EvalGoal(**{**goal, "commands": tuple(goal["commands"])}) for goal in table["goal"])
    return Wording(
        lang,
        table["question"].strip(),
        table["tool"],
        table["final"],
        table["go_on"],
        tuple(Turn(**turn) for turn in table["turn"]),
        tuple(goals),
    )
