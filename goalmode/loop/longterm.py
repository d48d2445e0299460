"""Long-term memory in a wakeup: what it offers, and how the model is asked what is worth remembering."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from goalmode.context.cut import to_tokens
from goalmode.domain.goal import Goal
from goalmode.domain.memory import MAX_ATTEMPTS, Memory, MemoryKind, Remembered, SettlementState
from goalmode.domain.messages import Usage, User
from goalmode.errors import NotAllowed
from goalmode.loop.guards.settlement import too_early
from goalmode.state.settlement import Pending

if TYPE_CHECKING:
    from goalmode.loop.turn import Run

SHOWN_TOKENS = 1_500
"""Tokens of memories that the invitation shows; those of the model's own goal and the most relevant come first."""

SHOWN_MEMORY = 120
"""Tokens of one of them, head and tail."""

INVITATION_TOKENS = 2_000
"""Tokens that no invitation is longer than."""


class LongTerm(Protocol):
    """What a wakeup remembers, and the ending that stands while it settles; every method is one transaction.

    Every method that writes raises Fenced once another owner has the goal.
    """

    def goal(self) -> Goal:
        """The goal as it is stored now. What the wakeup knows of it stays as it is."""
        ...

    def remember(self, kind: MemoryKind, text: str, replaces: str) -> Remembered:
        """See `goalmode.tools.longterm.LongTermMemory`."""
        ...

    def recall(self, query: str) -> tuple[Memory, ...]: ...

    def current(self) -> tuple[Memory, ...]:
        """What a model is shown before it adds to it, the most relevant first."""
        ...

    def start(self) -> None:
        """Note that the present stretch settles, if it has not yet."""
        ...

    def hold(self, pending: Pending) -> None:
        """Store an ending as pending: from now on the wakeup closes with it."""
        ...

    def attempt(self, usage: Usage) -> None:
        """Count a call of settlement, and reserve what it may cost."""
        ...

    def finish(self, state: SettlementState) -> None:
        """Note how settlement went."""
        ...

    def withdraw(self) -> None:
        """The pending ending stands no more."""
        ...


@dataclass(frozen=True)
class Remembering:
    """Long-term memory as the tools of a wakeup see it."""

    run: Run

    def remember(self, kind: MemoryKind, text: str, replaces: str) -> Remembered:
        return self.run.wake.longterm.remember(kind, text, replaces)

    def recall(self, query: str) -> tuple[Memory, ...]:
        return self.run.wake.longterm.recall(query)

    def start_update(self) -> str:
        longterm = self.run.wake.longterm
        if early := too_early(longterm.goal()):
            raise NotAllowed(early)
        longterm.start()
        return invitation(self.run)


def invitation(run: Run, *, closing: bool = False, attempt: int = 1, nothing: bool = False) -> str:
    """The prompt of settlement, the same for the tool and for the gate.

    Args:
        closing: the goal's ending stands already, and nothing but memories is wanted any more.
        attempt: the first one shows what is remembered, the others only remind of it.
        nothing: the model can only say that there is nothing by a call of its own.
    """
    memories, left_out = _shown(run) if attempt == 1 else ((), 0)
    return run.ports.prompt(
        "settlement",
        memories=memories,
        left_out=left_out,
        closing=closing,
        attempt=attempt,
        of=MAX_ATTEMPTS,
        nothing=nothing,
    )


def _shown(run: Run) -> tuple[tuple[tuple[str, str, str], ...], int]:
    """(label, kind, text) of the memories that fit, and how many do not."""

    def count(text: str) -> int:
        return run.ports.count_message(User(text))

    memories = run.wake.longterm.current()
    shown: list[tuple[str, str, str]] = []
    left = SHOWN_TOKENS
    for memory in memories:
        text = to_tokens(memory.text, SHOWN_MEMORY, count)
        left -= count(text) + count(memory.label)
        if left < 0:
            break
        shown.append((memory.label, memory.kind.value, text))
    return tuple(shown), len(memories) - len(shown)
