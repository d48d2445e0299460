"""Time as a value that is passed in. Three clocks, because they answer three questions."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """Wall time, aware UTC: what is stored and shown."""
        ...

    def monotonic(self) -> float:
        """Seconds that never jump and stand still while the machine sleeps: active time is measured with it."""
        ...

    def lease_ms(self) -> int:
        """Milliseconds since boot, sleep included: leases are measured with it."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    def lease_ms(self) -> int:
        clock = getattr(time, "CLOCK_BOOTTIME", None)
        seconds = time.clock_gettime(clock) if clock is not None else time.monotonic()
        return int(seconds * 1000)

    async def sleep(self, seconds: float) -> None:
        import anyio

        await anyio.sleep(seconds)
