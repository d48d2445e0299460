"""What the loop does after a reply, as a value. `goalmode.loop.decide` chooses it; `goalmode.loop.wakeup` does it."""

from __future__ import annotations

from dataclasses import dataclass

from goalmode.domain.exits import Exit
from goalmode.domain.messages import ToolCall


@dataclass(frozen=True, slots=True)
class RunTools:
    """Run these calls in order and give each its result."""

    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Claim:
    """Run the ordinary calls, then judge the model's `complete` call."""

    siblings: tuple[ToolCall, ...]
    complete: ToolCall
    surplus: tuple[ToolCall, ...] = ()
    """Further control calls of the same reply: refused, each with a result."""


@dataclass(frozen=True, slots=True)
class Nudge:
    """Answer with the prompt template `prompt`. `recovery` counts against the wakeup's bounded recoveries.

    `refused` are calls of the reply that must not run, each answered with a result before the prompt.
    """

    prompt: str
    recovery: bool = False
    refused: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Resend:
    """The provider paused: send the conversation again, the paused turn appended unchanged."""


@dataclass(frozen=True, slots=True)
class Close:
    """End the wakeup. `refused` are calls of the reply that were not run."""

    exit: Exit
    refused: tuple[ToolCall, ...] = ()


NextStep = RunTools | Claim | Nudge | Resend | Close
