"""What goals ask, as text for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from goalmode.cli.output import pairs, say, table
from goalmode.domain.text import one_line

Row = Mapping[str, Any]

MAX_TEXT = 200
"""Characters of a question in a table."""


def listed(found: Sequence[Row]) -> None:
    """The table of `questions`."""
    head = ["GOAL", "ID", "STATUS", "ASKED", "ANSWER", "QUESTION"]
    table(
        head, [[q["goal"], q["id"], q["status"], _time(q["asked_at"]), _answer(q), _text(q)] for q in found]
    )


def waiting(found: Sequence[Row]) -> None:
    """The open questions, whole, with the answers to choose from."""
    for q in found:
        pairs([(q["id"], q["text"])])
        if q["why"]:
            say(f"    why: {one_line(q['why'])}")
        if q["session_id"]:
            say(f"    session: {one_line(q['session_id'])}")
        for number, option in enumerate(q["options"], 1):
            say(f"    {number}) {one_line(option)}")
        if q["default_at"]:
            say(f"    {_default(q)}")


def _text(question: Row) -> str:
    return one_line(question["text"], MAX_TEXT)


def _answer(question: Row) -> str:
    """The answer, or what may be answered."""
    if question["status"] == "answered":
        by = "" if question["answered_by"] == "user" else " (default)"
        return f"{one_line(question['answer'], 40)}{by}"
    if question["status"] != "open":
        return "-"
    options = ", ".join(f"{n}) {one_line(text, 30)}" for n, text in enumerate(question["options"], 1))
    default = _default(question) if question["default_at"] else ""
    return "; ".join(part for part in (options, default) if part) or "-"


def _default(question: Row) -> str:
    return f"default from {_time(question['default_at'])}: {one_line(question['default'], 40)}"


def _time(iso: str | None) -> str:
    """A stored time in this machine's zone."""
    if iso is None:
        return "-"
    return datetime.fromisoformat(iso).astimezone().isoformat(sep=" ", timespec="minutes")[:16]
