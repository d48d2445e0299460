"""How a server's wakeups end when it is to stop: after the turn that runs if there is time, else within it."""

from __future__ import annotations

from collections.abc import Callable

from goalmode.domain.exits import Exit
from goalmode.loop.ports import Event

CLOSING_SECONDS = 3.0
"""Of the time given, what is kept for ending tools and for closing the wakeup."""


class Stopping:
    """What was asked of the server, and how long its turns may still take.

    Args:
        monotonic: seconds of a clock that never jumps.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._asked: Exit | None = None
        self._patient_until = 0.0

    @property
    def asked(self) -> Exit | None:
        return self._asked

    def ask(self, exit: Exit, grace_seconds: float) -> None:
        """Let every wakeup end with `exit`, all of them closed within `grace_seconds`."""
        if self._asked is None:
            self._asked = exit
            kept = min(CLOSING_SECONDS, grace_seconds)
            self._patient_until = self._monotonic() + grace_seconds - kept

    @property
    def in_a_hurry(self) -> bool:
        """Whether there is no time left to wait for the end of a turn."""
        return self._asked is not None and self._monotonic() >= self._patient_until


class Turnwise:
    """The stop of one wakeup: asked between its turns, and once there is a hurry also within them."""

    def __init__(self, stopping: Stopping) -> None:
        self._stopping, self._in_turn = stopping, False

    def note(self, event: Event) -> None:
        """Follow the wakeup's events: each is told after its commit."""
        match event.kind:
            case "asking":
                self._in_turn = True
            case "turn":
                self._in_turn = False

    def __call__(self) -> Exit | None:
        """See `goalmode.loop.ports.Ports.stop`."""
        return self._stopping.asked if not self._in_turn or self._stopping.in_a_hurry else None
