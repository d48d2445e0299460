"""Cron lines: checked, and the moments at which the clocks of a zone show what they say.

Changes of clocks are met as Debian's cron does: a fixed time that the clocks jump over is made up for when they do, one
that they show twice counts once, and a line of every minute or hour goes by elapsed time.
"""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from goalmode.domain.wake import FARTHEST, Cron
from goalmode.errors import BadInput

_SHORT = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}


def checked(line: str, zone: str, now: datetime) -> Cron:
    """A cron line as it is stored.

    Raises:
        BadInput: it is none, never fires, or the zone is not known.
    """
    plain = " ".join(line.split())
    spec = Cron(_SHORT.get(plain.lower(), plain), zone)
    _zone(zone)
    if len(spec.line.split()) != 5:
        raise _bad(line, "minute hour day month weekday")
    try:
        first = next_fire(spec, now)
    except CronSimError as error:
        if _every_month(spec.line, now):
            raise _never(line) from None
        raise _bad(line, str(error)) from None
    except StopIteration:
        raise _never(line) from None
    if first - now > FARTHEST:
        raise _never(line)
    return spec


def next_fire(spec: Cron, after: datetime) -> datetime:
    """The first moment after `after` at which the line fires, in UTC."""
    moments = CronSim(spec.line, after.astimezone(_zone(spec.zone)))
    # In the hour that the clocks show twice, a time that counts once may have been before `after`.
    return next(at for moment in moments if (at := moment.astimezone(UTC)) > after)


def _every_month(line: str, now: datetime) -> bool:
    """Whether the line would do in other months: 30 February is no wrong day, there is only none."""
    minute, hour, day, month, weekday = line.split()
    try:
        CronSim(f"{minute} {hour} 1 {month} {weekday}", now)
        CronSim(f"{minute} {hour} {day} * {weekday}", now)
    except CronSimError:
        return False
    return True


def _never(line: str) -> BadInput:
    return BadInput("cron", line, "a line that fires within ten years; there is no such day")


def _bad(line: str, why: str) -> BadInput:
    return BadInput(
        "cron", line, f"five fields such as '0 9 * * 1-5', or @hourly, @daily, @weekly, … ({why})"
    )


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise BadInput("zone", name, "an IANA time zone such as Europe/Berlin or UTC") from None
