"""Long-term memory as tools see it."""

from __future__ import annotations

from typing import Protocol

from goalmode.domain.memory import Memory, MemoryKind, Remembered


class LongTermMemory(Protocol):
    """What a goal remembers beyond its end. Implemented over the store; its methods block."""

    def remember(self, kind: MemoryKind, text: str, replaces: str) -> Remembered:
        """Keep `text`, in the place of the memory with the label `replaces` if that is not empty.

        Raises:
            NotAllowed: that memory may not be replaced; nothing is stored.
        """
        ...

    def recall(self, query: str) -> tuple[Memory, ...]:
        """The memories that have any of the query's words, the best match first."""
        ...

    def start_update(self) -> str:
        """Settle now instead of when the goal completes; returns the prompt that says what is wanted.

        Raises:
            NotAllowed: it is too early.
        """
        ...
