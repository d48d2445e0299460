"""Whether rows hold what their columns promise: SQLite itself stores a text where a number belongs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from goalmode.errors import StoreUnreadable
from goalmode.state.columns import UTCDateTime

_KINDS: tuple[tuple[type[Any], type, str], ...] = (
    (sa.Integer, int, "a whole number"),
    (sa.String, str, "a text"),
    (UTCDateTime, datetime, "a time"),
)
"""By the class of a column's type: what its values are. Columns that hold JSON are their readers' own."""


def held(
    connection: sa.Connection, statement: sa.Select[Any], named: Callable[[sa.Row[Any]], str]
) -> list[sa.Row[Any]]:
    """The rows of a statement, each value of the type of its column.

    Args:
        named: how a row is called in a message: `wakeup 3`.

    Raises:
        StoreUnreadable: one is not; the row, the column and the value are named.
    """
    try:
        rows = list(connection.execute(statement))
    except ValueError as error:  # Out of the driver, which does not say of which column.
        raise StoreUnreadable(_no_time(connection, statement) or f"a stored value is none: {error}") from None
    columns = [
        (name, kind, expected)
        for name, column in statement.selected_columns.items()
        for base, kind, expected in _KINDS
        if isinstance(column.type, base)
    ]
    for row in rows:
        fields = row._mapping
        for name, kind, expected in columns:
            value = fields[name]
            if value is not None and type(value) is not kind:
                raise StoreUnreadable(f"{named(row)}: {name} is {value!r}, {expected} was expected")
    return rows


def _no_time(connection: sa.Connection, statement: sa.Select[Any]) -> str:
    """The first time of the rows that is none, as text; empty if that is not what is wrong with them."""
    times = [c for c in statement.selected_columns if isinstance(c.type, UTCDateTime)]
    as_text = statement.with_only_columns(*(sa.type_coerce(c, sa.String).label(c.name) for c in times))
    for row in connection.execute(as_text):
        for name, value in row._mapping.items():
            try:
                datetime.fromisoformat(value or "2000-01-01")
            except (TypeError, ValueError):
                return f"{name} is {value!r}, a time was expected"
    return ""


def an_object(what: str, value: object) -> Mapping[str, Any]:
    """A JSON object.

    Raises:
        StoreUnreadable: it is none; `what` is named.
    """
    if not isinstance(value, Mapping):
        raise StoreUnreadable(f"{what} is {value!r}, an object was expected")
    return value


def objects(what: str, value: object, *keys: str) -> list[Mapping[str, Any]]:
    """A JSON list of objects that have these keys.

    Raises:
        StoreUnreadable: it is none; `what` is named.
    """
    if isinstance(value, list) and all(
        isinstance(one, Mapping) and all(key in one for key in keys) for one in value
    ):
        return value
    raise StoreUnreadable(f"{what} is {value!r}, a list of objects with {' and '.join(keys)} was expected")
