"""A clock that moves only when it is told to."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import anyio.lowlevel


class ManualClock:
    """All three clocks at once, moved by hand; sleeping on it moves it.

    Args:
        start: wall time at the beginning, aware.
    """

    def __init__(self, start: datetime | None = None) -> None:
        self._now = (start or datetime(2030, 1, 1, tzinfo=UTC)).astimezone(UTC)
        self._monotonic = 1_000.0
        self._boot = 1_000.0

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def lease_ms(self) -> int:
        return int(self._boot * 1000)

    async def sleep(self, seconds: float) -> None:
        """Move the clock at once, and let others run."""
        self.advance(seconds)
        await anyio.lowlevel.checkpoint()

    def advance(self, seconds: float, *, wall: float | None = None) -> None:
        """Move on by `seconds`; the wall clock by `wall` where it jumps, as when a machine sleeps."""
        self._monotonic += seconds
        self._boot += seconds if wall is None else max(seconds, wall)
        self._now += timedelta(seconds=seconds if wall is None else wall)
