"""Wake sources, as text for people: one line each, every time with its offset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from goalmode.cli.output import say
from goalmode.domain.text import one_line

Row = Mapping[str, Any]


def line(source: Row) -> str:
    """One source: what it is, when it comes, and what became of it."""
    return f"{source['id'] or '--'}  {one_line(source['what'])}: {_state(source)}"


def listed(found: Sequence[Row]) -> None:
    """The section of `show` and `why`; nothing where nothing is waited for."""
    shown = [source for source in found if source["status"] != "removed"]
    if any(source["id"] for source in shown):
        say("\nWake sources", strong=True)
        for source in shown:
            say(f"  {line(source)}")


def _state(source: Row) -> str:
    if source["status"] != "open":
        return " ".join(filter(None, [source["status"], source["fired_at"]]))
    last = f", last {source['fired_at']}" if source["fired_at"] else ""
    if source["due_at"]:
        return f"due {source['due_at']}{last}"
    return f"until {source['ceiling_at']}" if source["ceiling_at"] else "open"
