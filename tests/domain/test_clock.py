"""The system's three clocks, and the one that only moves by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import anyio

from goalmode.domain.clock import SystemClock
from goalmode.testing import ManualClock


def test_the_system_clock_is_aware_and_never_goes_back() -> None:
    """Wall time has its zone; the other two do not decrease."""
    clock = SystemClock()

    assert timedelta(0) == clock.now().utcoffset()
    assert clock.monotonic() <= clock.monotonic()
    assert clock.lease_ms() <= clock.lease_ms()


def test_a_manual_clock_moves_only_when_told() -> None:
    """Reading it does not move it; advancing moves all three clocks alike."""
    clock = ManualClock(datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))))
    before = clock.monotonic(), clock.lease_ms()

    clock.advance(2.5)

    assert datetime(2026, 1, 1, 0, 0, 2, 500_000, tzinfo=UTC) == clock.now()
    assert (before[0] + 2.5, before[1] + 2_500) == (clock.monotonic(), clock.lease_ms())


def test_a_manual_clock_can_sleep_like_a_closed_laptop() -> None:
    """B30: wall time and the lease's clock jump by 17 h while active time moves by 1 s."""
    clock = ManualClock()
    wall, active, lease = clock.now(), clock.monotonic(), clock.lease_ms()

    clock.advance(1, wall=17 * 3600)

    assert timedelta(hours=17) == clock.now() - wall
    assert (clock.monotonic() - active, clock.lease_ms() - lease) == (1.0, 17 * 3_600_000)


def test_sleeping_on_a_manual_clock_lets_others_run() -> None:
    """It takes no real time, and another task gets its turn."""
    clock, seen = ManualClock(), []

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(other)
            await clock.sleep(3_600)
            seen.append("slept")

    async def other() -> None:
        seen.append("other")

    anyio.run(main)

    assert seen == ["other", "slept"]
