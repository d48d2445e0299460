"""Whether rows hold what their columns promise: SQLite itself stores a text where a number belongs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary

import sqlalchemy as sa
from sqlalchemy.exc import OperationalError

from goalmode.errors import StoreUnreadable
from goalmode.state.columns import UTCDateTime, time_reader

_KINDS: tuple[tuple[type[Any], tuple[type, ...], str], ...] = (
    (sa.Integer, (int,), "a whole number"),
    (sa.String, (str,), "a text"),
    (UTCDateTime, (datetime,), "a time"),
    (sa.JSON, (dict, list, str, int, float, bool), "JSON"),
)
"""By the class of a column's type: what its values are. What is in a JSON value is its readers' own."""

_NOT_UTF8 = "Could not decode to UTF-8"
"""What Python's sqlite3 says of a text that is none; it names the column."""

_Column = tuple[str, tuple[type, ...], str]
_columns: WeakKeyDictionary[sa.Select[Any], list[_Column]] = WeakKeyDictionary()
"""Of each statement that is alive: to ask it takes longer than to look at its rows."""


def held(
    connection: sa.Connection,
    statement: sa.Select[Any],
    named: Callable[[sa.Row[Any]], str],
    values: Mapping[str, Any] | None = None,
) -> list[sa.Row[Any]]:
    """The rows of a statement, each value of the type of its column.

    Args:
        named: how a row is called in a message: `wakeup 3`.
        values: what the statement leaves open.

    Raises:
        StoreUnreadable: one is not; the row, the column and the value are named.
    """
    try:
        rows = list(connection.execute(statement, values))
    except OperationalError as error:
        if _NOT_UTF8 not in str(error.orig):
            raise
        raise StoreUnreadable(str(error.orig)) from None
    except StoreUnreadable as error:  # Out of a column's type, which does not know whose it is.
        raise StoreUnreadable(_no_time(connection, statement, named, values) or str(error)) from None
    columns = _columns.get(statement)
    if columns is None:
        columns = _columns[statement] = _expected(statement)
    for row in rows:
        fields = row._mapping
        for name, kinds, expected in columns:
            value = fields[name]
            if value is not None and not isinstance(value, kinds):
                raise StoreUnreadable(f"{named(row)}: {name} is {value!r}, {expected} was expected")
    return rows


def each(
    connection: sa.Connection,
    statement: sa.Select[Any],
    named: Callable[[sa.Row[Any]], str],
    *keys: sa.ColumnElement[Any],
) -> list[tuple[sa.Row[Any], StoreUnreadable | None]]:
    """The rows of a statement, whatever single ones hold: those of other goals must not be hidden by one.

    Args:
        keys: columns that are surely right; the first of them tells the rows apart.

    Returns:
        Each row, or, where one is not what its columns promise, its keys and what is wrong with it.
    """
    try:
        return [(row, None) for row in held(connection, statement, named)]
    except StoreUnreadable:
        found = connection.execute(statement.with_only_columns(*keys)).all()
    return [_one(connection, statement.where(keys[0] == row[0]), named, row) for row in found]


def _one(
    connection: sa.Connection,
    statement: sa.Select[Any],
    named: Callable[[sa.Row[Any]], str],
    keys: sa.Row[Any],
) -> tuple[sa.Row[Any], StoreUnreadable | None]:
    try:
        return held(connection, statement, named)[0], None
    except StoreUnreadable as error:
        return keys, error


def _expected(statement: sa.Select[Any]) -> list[_Column]:
    return [
        (name, kinds, expected)
        for name, column in statement.selected_columns.items()
        for base, kinds, expected in _KINDS
        if isinstance(column.type, base)
    ]


def _no_time(
    connection: sa.Connection,
    statement: sa.Select[Any],
    named: Callable[[sa.Row[Any]], str],
    values: Mapping[str, Any] | None,
) -> str:
    """The first time of the rows that is none, by its row and column; empty if there is none any more."""
    columns = list(statement.selected_columns)
    times = [column.name for column in columns if isinstance(column.type, UTCDateTime)]
    as_stored = statement.with_only_columns(
        *(sa.type_coerce(c, sa.String).label(c.name) if c.name in times else c for c in columns)
    )
    read = time_reader(connection.dialect)
    for row in connection.execute(as_stored, values):
        for name in times:
            value = row._mapping[name]
            try:
                read(value)
            except StoreUnreadable:
                return f"{named(row)}: {name} is {value!r}, a time was expected"
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
