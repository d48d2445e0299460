"""Several servers look at the same goals, the oldest first. Whoever comes too late looks further down the list."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

FURTHEST = 64
"""Goals behind the oldest that one may be taken from, at most."""

Found = TypeVar("Found")


@dataclass
class Crowd:
    """How much the others are in the way. Alone, a server takes the oldest; among others, some of the oldest.

    Attributes:
        depth: goals behind the oldest that are looked at too.
    """

    chance: random.Random = field(default_factory=random.Random)
    depth: int = field(default=0, init=False)

    def too_late(self) -> None:
        """Somebody else has woken what was to be woken here."""
        self.depth = min(FURTHEST, 2 * self.depth + 1)

    def in_time(self) -> None:
        self.depth //= 2

    def some(self, found: Sequence[Found], limit: int) -> list[Found]:
        """At most `limit` of those found, in their order: the first where nobody is in the way, else any."""
        if not self.depth or len(found) <= limit:
            return list(found[:limit])
        return [found[place] for place in sorted(self.chance.sample(range(len(found)), limit))]
