"""A goal's limits in words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from goalmode.domain.cost import dollars
from goalmode.domain.text import counted


def limits_told(limits: Mapping[str, Any]) -> str:
    """Those that are set, on one line; `none` where none is.

    Args:
        limits: as `show` gives them: numbers by the names of their fields, and the deadline as ISO text.
    """
    told = [_told(name, value) for name, value in limits.items() if value is not None]
    return ", ".join(told) or "none"


def _told(name: str, value: Any) -> str:
    match name:
        case "cost_micro":
            return dollars(value)
        case "active_seconds":
            return f"{value:,.10g} s of work"
        case "deadline":
            return f"until {datetime.fromisoformat(value).isoformat(sep=' ', timespec='seconds')}"
        case _:
            return counted(value, name.removesuffix("s"))
