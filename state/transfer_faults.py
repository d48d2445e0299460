"""What is wrong with a goal in a file, told so that it can be mended. Its shape: `transfer_shape`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from goalmode.state import tables as t
from goalmode.state.columns import UTCDateTime, time_of
from goalmode.state.transfer_shape import FORMAT, GOAL, OVER, VERSION, Part

MAX_FAULTS = 20
"""Faults that are told; of more, that there are more."""

_LISTS = {"sections", "rests_on", "repairs", "options"}
"""JSON columns that hold a list; the others hold an object."""

_LARGEST = 2**63 - 1

_HEAD = ("format", "version", "id", "over")


def faults(document: object) -> list[str]:
    """What is wrong with a goal in a file, one line each: the place, the value, and what would be right."""
    found: list[str] = []
    for fault in _faults(document):
        if len(found) == MAX_FAULTS:
            return [*found, "there are more faults"]
        found.append(fault)
    return found


def _faults(document: object) -> Iterator[str]:
    if not isinstance(document, Mapping):
        yield _fault("file", document, "a JSON object")
        return
    if document.get("format") != FORMAT:
        yield _fault("format", document.get("format"), repr(FORMAT))
        return
    if document.get("version") != VERSION:
        newer = "; upgrade goalmode to read it" if _is_whole(document.get("version")) else ""
        yield _fault("version", document.get("version"), f"{VERSION}{newer}")
        return
    yield from _head(document)
    goal = {name: value for name, value in document.items() if name not in _HEAD}
    shape = list(_of_row(GOAL, goal, ""))
    yield from shape or _references(goal)


def _head(document: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(document.get("id"), str):
        yield _fault("id", document.get("id"), "a goal's id")
    over = document.get("over")
    if over is not None and not (
        isinstance(over, Mapping)
        and over.keys() == {"status", "detail"}
        and over["status"] in OVER
        and isinstance(over["detail"], str)
    ):
        yield _fault("over", over, f"null, or status ({' or '.join(OVER)}) and detail")


def _of_row(part: Part, row: object, place: str) -> Iterator[str]:
    if not isinstance(row, Mapping):
        yield _fault(place, row, "an object")
        return
    for name in row:
        if name not in part.names:
            yield _fault(
                _at(place, str(name)), row[name], f"no such field; known are {', '.join(part.names)}"
            )
    for name in part.names:
        if name not in row:
            yield f"{_at(place, name)}: is missing"
    for name in (*part.own, *part.places, *part.bodies):
        if name in row:
            expected = _expected(part, name, row[name])
            if expected:
                yield _fault(_at(place, name), row[name], expected)
    for inner in part.parts:
        if inner.name in row:
            yield from _of_rows(inner, row[inner.name], _at(place, inner.name))


def _of_rows(part: Part, rows: object, place: str) -> Iterator[str]:
    if not isinstance(rows, list):
        yield _fault(place, rows, "a list")
        return
    seen = set()
    for number, row in enumerate(rows):
        yield from _of_row(part, row, f"{place}[{number}]")
        if part.unique and isinstance(row, Mapping):
            key = row.get(part.unique)
            if _is_whole(key) and key in seen:
                yield _fault(
                    _at(f"{place}[{number}]", part.unique), key, "another one than its siblings have"
                )
            seen.add(key if _is_whole(key) else None)


def _references(goal: Mapping[str, Any]) -> Iterator[str]:
    """What the shape alone does not say: that a number of another row is the number of one."""
    said, numbers = len(goal["inbox"]), {w["seq"] for w in goal["wakeups"]}
    for number, row in enumerate(goal["inbox"]):
        if row["superseded_by"] is not None and not 1 <= row["superseded_by"] <= said:
            yield _fault(
                f"inbox[{number}].superseded_by", row["superseded_by"], f"an entry's place, 1 to {said}"
            )
    for number, row in enumerate(goal["checks"]):
        if row["wakeup"] is not None and row["wakeup"] not in numbers:
            yield _fault(f"checks[{number}].wakeup", row["wakeup"], "the number of one of its wakeups")
    fences = set()
    for number, row in enumerate(goal["wakeups"]):
        if row["inbox_seen"] is None or row["inbox_seen"] > said:
            yield _fault(
                f"wakeups[{number}].inbox_seen", row["inbox_seen"], f"0 to {said}, as many as were said"
            )
        if row["fence"] in fences or row["fence"] > goal["fence"]:
            yield _fault(f"wakeups[{number}].fence", row["fence"], f"its own, at most {goal['fence']}")
        fences.add(row["fence"])
        for place, turn in enumerate(row["model_calls"]):
            if turn["state"] == t.TurnState.OPEN:
                expected = "one of " + ", ".join(s for s in t.TurnState if s is not t.TurnState.OPEN)
                yield _fault(f"wakeups[{number}].model_calls[{place}].state", turn["state"], expected)


def _expected(part: Part, name: str, value: object) -> str:
    """What a field should hold; empty if it does."""
    if name in part.bodies:
        return "" if value is None or isinstance(value, str) else "a text, or null"
    if name in part.places:
        return "" if value is None or _is_whole(value) else "a whole number from 0, or null"
    column = part.table.c[name]
    if value is None:
        return "" if column.nullable and name not in part.required else f"{_kind(part, column)}, not null"
    return "" if _fits(part, column, value) else _kind(part, column)


def _fits(part: Part, column: sa.Column[Any], value: object) -> bool:
    words = _words(part.table, column.name)
    match column.type:
        case sa.Boolean():
            return isinstance(value, bool)
        case sa.Integer():
            return _is_whole(value, below_zero=column.name == "exit_code")
        case UTCDateTime():
            return time_of(value) is not None
        case sa.String():
            long = (
                column.type.length is not None and isinstance(value, str) and len(value) > column.type.length
            )
            return isinstance(value, str) and not long and (not words or value in words)
        case _:
            return isinstance(value, list if column.name in _LISTS else Mapping)


def _kind(part: Part, column: sa.Column[Any]) -> str:
    words = _words(part.table, column.name)
    match column.type:
        case sa.Boolean():
            return "true or false"
        case sa.Integer():
            return "a whole number" + ("" if column.name == "exit_code" else " from 0")
        case UTCDateTime():
            return "a time with its offset, such as 2030-01-31T18:00:00+00:00"
        case sa.String():
            length = column.type.length
            limited = "" if length is None else f" of at most {length} characters"
            return f"one of {', '.join(words)}" if words else f"a text{limited}"
        case _:
            return "a list" if column.name in _LISTS else "an object"


def _words(table: sa.Table, column: str) -> Sequence[str]:
    """The words that the table's own check allows in a column; empty if it has none."""
    for check in table.constraints:
        if isinstance(check, sa.CheckConstraint) and str(check.sqltext).startswith(f"{column} IN ("):
            return re.findall(r"'([^']*)'", str(check.sqltext))
    return ()


def _is_whole(value: object, *, below_zero: bool = False) -> bool:
    lowest = -_LARGEST if below_zero else 0
    return isinstance(value, int) and not isinstance(value, bool) and lowest <= value <= _LARGEST


def _at(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _fault(place: str, value: object, expected: str) -> str:
    shown = repr(value) if not isinstance(value, str) else f"{value!r}"
    shown = f"{shown[:77]}…" if len(shown) > 80 else shown
    return f"{place}: {shown} is not valid: {expected}"
