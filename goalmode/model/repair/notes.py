"""What the steps of a repair share: where a message stood, and what was done."""

from __future__ import annotations

from dataclasses import dataclass, field

from goalmode.domain.messages import Fix, FixKind, Message

Placed = tuple[int, Message]
"""A message and its position in the conversation as it was given."""


@dataclass(slots=True)
class Notes:
    """The repairs so far."""

    fixes: list[Fix] = field(default_factory=list)

    def add(self, kind: FixKind, at: int, why: str) -> None:
        self.fixes.append(Fix(kind, at, why))
