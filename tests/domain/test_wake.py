"""When wake sources come: elapsed time, whatever clocks do, and words that say what is waited for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from goalmode.domain.wake import (
    At,
    Cron,
    Every,
    FileChange,
    FileMark,
    GoalEnd,
    ProcessEnd,
    SourceStatus,
    WakeSource,
    has_come,
    next_tick,
    span,
)

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
TWO_HOURS = 7200.0


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("2026-03-08T01:30-05:00", "2026-03-08T04:30-04:00"),
        ("2026-11-01T00:30-04:00", "2026-11-01T01:30-05:00"),
    ],
)
def test_an_interval_is_elapsed_time(base: str, expected: str) -> None:
    """B34: two hours are 7200 s, also where clocks change in between."""
    toronto = ZoneInfo("America/Toronto")
    start = datetime.fromisoformat(base).astimezone(toronto)

    fire = next_tick(start, TWO_HOURS, start)

    assert fire == datetime.fromisoformat(expected)
    assert fire.astimezone(toronto).isoformat(timespec="minutes") == expected
    assert fire.astimezone(UTC) - start.astimezone(UTC) == timedelta(seconds=7200)


@pytest.mark.parametrize(
    ("late", "ahead"),
    [(0, 7200), (1, 7199), (7199, 1), (7200, 7200), (7201, 7199), (86_400, 7200)],
)
def test_the_next_tick_is_the_first_after_now(late: float, ahead: float) -> None:
    """Ticks that were missed are left out, and the series keeps its step; a tick is never now."""
    now = NOON + timedelta(seconds=late)

    assert next_tick(NOON, TWO_HOURS, now) == now + timedelta(seconds=ahead)


def test_a_clock_that_was_set_back_skips_no_tick() -> None:
    """The tick after one that fired is one step later, wherever the clock is."""
    assert next_tick(NOON, TWO_HOURS, NOON - timedelta(days=3650)) == NOON + timedelta(hours=2)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (30, "30 s"),
        (90, "90 s"),
        (60, "1 min"),
        (5400, "90 min"),
        (7200, "2 h"),
        (172_800, "2 d"),
        (0.5, "0.5 s"),
    ],
)
def test_spans_are_said_in_their_largest_whole_unit(seconds: float, said: str) -> None:
    """Nothing is rounded."""
    assert span(seconds) == said


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (At(datetime.fromisoformat("2030-01-01T09:00+01:00")), "at 2030-01-01T09:00:00+01:00"),
        (Every(7200), "every 2 h"),
        (Cron("0 9 * * 1-5", "Europe/Berlin"), "cron 0 9 * * 1-5 (Europe/Berlin)"),
        (FileChange("a.csv"), "file a.csv is created"),
        (FileChange("a\n.csv", FileMark(1, 2, 3)), "file a\\n.csv is changed"),
        (ProcessEnd(42, "1", "boot"), "process 42 ends"),
        (GoalEnd(7, "abcd"), "goal abcd is over"),
    ],
)
def test_each_kind_says_what_it_waits_for(spec: object, said: str) -> None:
    """On one line, times with their offsets."""
    assert str(spec) == said


def test_a_source_says_when_it_is_given_up() -> None:
    """And is due by its ceiling at the latest."""
    ceiling = NOON + timedelta(days=7)
    source = WakeSource(3, FileChange("a"), SourceStatus.OPEN, None, ceiling, NOON)

    assert str(source) == "S3: file a is created, or 2030-01-08T12:00:00+00:00 comes"
    assert source.awaited == f"waits for {source}"
    assert not has_come(source.awaited)
    assert source.next_at == ceiling
    assert not source.recurs
    assert WakeSource(1, Every(60), SourceStatus.OPEN, NOON, None, NOON).recurs
