"""Long-term memory: what outlives a goal, because action confirmed it. When a goal settles into it, and how often."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

SETTLEMENT_TURNS = 15
"""A task of 15 or more turns settles when it completes: `turns >= 15`, worded so in every template and description."""

EARLIEST_TURN = 10
"""`start_long_term_update` is refused before this turn of the stretch, and then does not count as settlement."""

MAX_ATTEMPTS = 3
"""Calls that one settlement may take."""

MAX_MEMORY = 1_000
"""Longest memory, in characters."""

MAX_RECALLED = 10
"""Memories that one search finds at most."""


class MemoryKind(StrEnum):
    ENVIRONMENT = "environment"
    """A fact about the machine, the project or a service."""
    PREFERENCE = "preference"
    """How the user wants things done."""
    EXPERIENCE = "experience"
    """What worked, or did not, and why."""


class SettlementState(StrEnum):
    """Of a stretch: the turns since the goal was created or last opened again."""

    NONE = "none"
    STARTED = "started"
    DONE = "done"
    FAILED = "failed"
    """All attempts came to nothing. The ending was not held up."""
    SKIPPED = "skipped"
    """No call was affordable."""


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory.

    Attributes:
        id: its number in the store; shown as `M7`.
        workspace: the workspace whose goals see it; empty: a user promoted it, and every goal sees it.
        goal, wakeup, turn: where it comes from; the goal is its public id.
        superseded_by: the memory that took its place, None while it stands.
    """

    id: int
    kind: MemoryKind
    text: str
    workspace: str
    goal: str
    wakeup: int
    turn: int
    created_at: datetime
    superseded_by: int | None = None
    forgotten_at: datetime | None = None

    @property
    def label(self) -> str:
        return f"M{self.id}"

    @property
    def stands(self) -> bool:
        """Whether goals are told of it: nothing took its place, and nobody forgot it."""
        return self.superseded_by is None and self.forgotten_at is None


@dataclass(frozen=True, slots=True)
class Remembered:
    """What became of a wish to remember. `known`: the memory said so already, and nothing was stored."""

    memory: Memory
    known: bool = False
