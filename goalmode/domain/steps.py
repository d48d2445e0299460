"""What the loop does after a reply, as a value. `goalmode.loop.decide` chooses it; `goalmode.loop.wakeup` does it."""

from __future__ import annotations

from dataclasses import dataclass

from goalmode.domain.exits import Exit
from goalmode.domain.messages import ToolCall


@dataclass(frozen=True, slots=True)
class RunTools:
    """Run these calls in order and give each its result. `surplus` is refused: a reply has one control call."""

    calls: tuple[ToolCall, ...]
    surplus: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """Run the ordinary calls, then judge the model's `complete` call.

    Attributes:
        complete: None where the reply claims by ending its turn, in a movement that says so.
        surplus: further control calls of the same reply: refused, each with a result.
    """

    siblings: tuple[ToolCall, ...]
    complete: ToolCall | None
    surplus: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Transition:
    """Run the ordinary calls, then go on in the movement that the model's `transition` call names."""

    siblings: tuple[ToolCall, ...]
    call: ToolCall
    surplus: tuple[ToolCall, ...] = ()


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
class Rerender:
    """The conversation has outgrown the model: render the context anew and go on. `refused` are calls not run."""

    refused: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Close:
    """End the wakeup. `refused` are calls of the reply that were not run."""

    exit: Exit
    refused: tuple[ToolCall, ...] = ()


NextStep = RunTools | Claim | Transition | Nudge | Resend | Rerender | Close
