"""Cron lines with their zones: the moments that a user means, whatever clocks and processes do."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from goalmode.domain.wake import Cron
from goalmode.errors import BadInput
from goalmode.orchestrator.cron import checked, next_fire

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def fires(line: str, zone: str, after: str, count: int = 1) -> list[str]:
    """The next moments, as the clocks of the zone show them."""
    found, last = [], datetime.fromisoformat(after)
    for _ in range(count):
        last = next_fire(Cron(line, zone), last)
        found.append(last.astimezone(ZoneInfo(zone)).isoformat(timespec="minutes"))
    return found


@pytest.mark.parametrize(
    ("zone", "base", "expected"),
    [
        ("Europe/Berlin", "2026-10-23T09:00+02:00", "2026-10-26T09:00+01:00"),
        ("Europe/Berlin", "2027-03-26T09:00+01:00", "2027-03-29T09:00+02:00"),
        ("UTC", "2026-10-23T09:00+00:00", "2026-10-26T09:00+00:00"),
        ("UTC", "2027-03-26T09:00+00:00", "2027-03-29T09:00+00:00"),
    ],
)
def test_a_time_of_day_stays_one_over_a_change_of_clocks(zone: str, base: str, expected: str) -> None:
    """B32: nine o'clock on weekdays is nine o'clock, in summer and in winter."""
    assert fires("0 9 * * 1-5", zone, base) == [expected]


@pytest.fixture(params=["UTC", "Asia/Shanghai", "Europe/Warsaw"])
def process_zone(request: pytest.FixtureRequest) -> Iterator[str]:
    """The zone that this process runs in."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()


def test_the_zone_of_the_process_does_not_matter(process_zone: str) -> None:
    """B35: two fires of a daily 06:30 in Warsaw, across the change of clocks."""
    first = next_fire(Cron("30 6 * * *", "Europe/Warsaw"), datetime(2026, 10, 24, tzinfo=UTC))
    second = next_fire(Cron("30 6 * * *", "Europe/Warsaw"), first)

    assert [first, second] == [
        datetime.fromisoformat("2026-10-24T06:30+02:00"),
        datetime.fromisoformat("2026-10-25T06:30+01:00"),
    ]


@pytest.mark.parametrize(
    ("line", "after", "expected"),
    [
        ("30 2 * * *", "2026-03-28T12:00+01:00", ["2026-03-29T03:00+02:00", "2026-03-30T02:30+02:00"]),
        ("30 2 * * *", "2026-10-24T12:00+02:00", ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"]),
        ("30 2 * * *", "2026-10-25T02:10+01:00", ["2026-10-26T02:30+01:00"]),
        ("0 * * * *", "2026-10-25T01:30+02:00", ["2026-10-25T02:00+02:00", "2026-10-25T02:00+01:00"]),
        ("0 * * * *", "2026-03-29T01:30+01:00", ["2026-03-29T03:00+02:00", "2026-03-29T04:00+02:00"]),
        ("*/30 * * * *", "2026-10-25T02:30+02:00", ["2026-10-25T02:00+01:00", "2026-10-25T02:30+01:00"]),
    ],
)
def test_hours_that_are_missing_or_there_twice(line: str, after: str, expected: list[str]) -> None:
    """A fixed time fires once a day, also one that the clocks jump over; every hour is every hour."""
    assert fires(line, "Europe/Berlin", after, len(expected)) == expected


@pytest.mark.parametrize(
    ("line", "stored"),
    [("  0   9 * *  mon-fri ", "0 9 * * mon-fri"), ("@HOURLY", "0 * * * *"), ("0 0 29 2 *", "0 0 29 2 *")],
)
def test_lines_are_stored_plain(line: str, stored: str) -> None:
    """Short names are written out, blanks are single; a day that is rare is one all the same."""
    assert checked(line, "UTC", NOW) == Cron(stored, "UTC")


@pytest.mark.parametrize("line", ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 * 2 MON#5"])
def test_a_line_that_never_fires_is_refused(line: str) -> None:
    """There is no 30 February, and nobody waits for it."""
    with pytest.raises(BadInput, match=r"cron: .* is not valid: a line that fires within ten years"):
        checked(line, "UTC", NOW)


@pytest.mark.parametrize(
    "line",
    ["", "* * * *", "* * * * * *", "61 * * * *", "R * * * *", "H 1 * * *", "@reboot", "x", "1/0 * * * *"],
)
def test_what_is_no_cron_line_is_refused(line: str) -> None:
    """With the fields that are wanted; seconds and random fields are not."""
    with pytest.raises(BadInput, match="five fields such as"):
        checked(line, "UTC", NOW)


@pytest.mark.parametrize(
    "zone", ["Mars/Olympus", "", "Europe", "../../etc/passwd", "/etc/passwd", "CET-1CEST"]
)
def test_an_unknown_zone_is_refused(zone: str) -> None:
    """Names of the IANA database only, and no path is looked at."""
    with pytest.raises(BadInput, match=r"zone: .* an IANA time zone such as Europe/Berlin"):
        checked("0 9 * * *", zone, NOW)


def test_the_next_moment_is_always_later() -> None:
    """Within the second of a tick too: a schedule never fires twice for one tick."""
    tick = datetime(2026, 5, 1, 9, tzinfo=UTC)
    spec = Cron("0 9 * * *", "UTC")

    assert next_fire(spec, tick - timedelta(microseconds=1)) == tick
    assert next_fire(spec, tick) == tick + timedelta(days=1)
    assert next_fire(spec, tick + timedelta(microseconds=1)) == tick + timedelta(days=1)
