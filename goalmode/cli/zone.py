"""The IANA time zone in which this user's clocks run: what a cron line without a zone is meant in."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from zoneinfo import ZoneInfo

_DATABASE = "zoneinfo/"
"""In the path of a zone's file, before its name."""


def local_zone(environ: Mapping[str, str], etc: Path = Path("/etc")) -> str | None:
    """The zone's name, None where there is none: a rule such as `CET-1CEST` says no place, so it cannot be stored."""
    if "TZ" in environ:
        candidates: Iterator[str] = iter([environ["TZ"].removeprefix(":") or "UTC"])
    else:
        candidates = _configured(etc)
    return next((name for name in map(_name, candidates) if _is_zone(name)), None)


def _configured(etc: Path) -> Iterator[str]:
    link = etc / "localtime"
    if link.is_symlink():
        yield os.path.realpath(link)
    with suppress(OSError):
        yield (etc / "timezone").read_text(encoding="utf-8").strip()
    if not link.exists():
        yield "UTC"


def _name(text: str) -> str:
    return text.rpartition(_DATABASE)[2] if text.startswith("/") else text


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return False
    return True
