"""How long a provider asks to wait, in all the ways it can say so. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

_RESET_HEADERS = ("x-ratelimit-reset", "ratelimit-reset")
_LIMITS = ("requests", "tokens")
"""OpenAI's `x-ratelimit-reset-…` come for each limit, hit or not; `x-ratelimit-remaining-…` tells."""
_RESET_KEYS = ("resets_at", "reset_at", "resets_in_seconds", "retry_after", "retryDelay")
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
_REGAINED = re.compile(r"regain access on (\d{4}-\d\d-\d\d) at (\d\d:\d\d) UTC")
"""Anthropic says in words when a spend limit is over."""
_MAX_DAYS = 400


@dataclass(frozen=True, slots=True)
class Waiting:
    """Attributes:
    after: seconds to wait at least.
    until: the moment a spent limit is there again, aware UTC.
    should_retry: the server's own word on whether asking again makes sense.
    """

    after: float | None = None
    until: datetime | None = None
    should_retry: bool | None = None


def waiting(headers: Mapping[str, str], error: Mapping[str, Any], now: datetime) -> Waiting:
    """Read headers (names in lower case) and error object."""
    after = _seconds(headers.get("retry-after-ms"), scale=0.001)
    if after is None and (said := headers.get("retry-after")) is not None:
        after = _until(moment(said, now), now)
    until = _reset(headers, error, now)
    if after is None:
        after = _until(until, now)
    elif until is None or until < now + timedelta(seconds=after):
        until = now + timedelta(seconds=after)
    verdict = headers.get("x-should-retry", "").strip().lower()
    return Waiting(after, until, {"true": True, "false": False}.get(verdict))


def moment(said: object, now: datetime) -> datetime | None:
    """The time that a header or field names, None if it names none or one over a year away.

    Read are seconds from now, Unix times in seconds or milliseconds, durations (`1m30s`), ISO 8601 and HTTP dates.
    """
    when = _moment(said, now)
    return when if when is not None and when - now < timedelta(days=_MAX_DAYS) else None


def _moment(said: object, now: datetime) -> datetime | None:
    if isinstance(said, str):
        said = said.strip()
    try:
        if (number := _seconds(said)) is not None:
            if number < 1e8:
                return now + timedelta(seconds=number)
            return datetime.fromtimestamp(number / 1000 if number > 1e11 else number, UTC)
        if not isinstance(said, str) or not said:
            return None
        if (duration := _DURATION.fullmatch(said)) is not None:
            days, hours, minutes, seconds, milliseconds = (float(part or 0) for part in duration.groups())
            return now + timedelta(
                days=days, hours=hours, minutes=minutes, seconds=seconds, milliseconds=milliseconds
            )
        return _date(said)
    except (ValueError, OverflowError, OSError):
        return None


def _date(said: str) -> datetime:
    date = datetime.fromisoformat(said) if said[:4].isdecimal() else parsedate_to_datetime(said)
    return date.astimezone(UTC) if date.tzinfo else date.replace(tzinfo=UTC)


def _reset(headers: Mapping[str, str], error: Mapping[str, Any], now: datetime) -> datetime | None:
    metadata = error.get("metadata")
    inner = metadata.get("headers") if isinstance(metadata, dict) else None
    passed_on = {str(k).lower(): v for k, v in inner.items()} if isinstance(inner, dict) else {}
    said = [source.get(name) for source in (headers, passed_on) for name in _RESET_HEADERS]
    said += [
        headers.get(f"x-ratelimit-reset-{limit}")
        for limit in _LIMITS
        if headers.get(f"x-ratelimit-remaining-{limit}", "0").strip() == "0"
    ]
    said += [error.get(key) for key in _RESET_KEYS]
    details = error.get("details")
    said += [d.get("retryDelay") for d in details if isinstance(d, dict)] if isinstance(details, list) else []
    said += [f"{day}T{time}Z" for day, time in _REGAINED.findall(str(error.get("message"))[:1_000])]
    times = [when for value in said if (when := moment(value, now)) is not None and when > now]
    return max(times, default=None)


def _until(when: datetime | None, now: datetime) -> float | None:
    return None if when is None else max(0.0, (when - now).total_seconds())


def _seconds(said: object, scale: float = 1.0) -> float | None:
    if isinstance(said, bool) or not isinstance(said, str | int | float):
        return None
    try:
        number = float(said)
    except (ValueError, OverflowError):
        return None
    return number * scale if 0 <= number < 1e15 else None
