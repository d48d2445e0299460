"""Statements about single rows, made SQL once for each kind of database: what every turn runs.

To build a statement anew, to find it among the compiled ones and to bind its values takes ten times what SQLite needs
to run it. Here it is found by the names of its columns; values go through the same types as everywhere else.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql.compiler import SQLCompiler

NOTHING: Mapping[str, int] = MappingProxyType({})


def insert(connection: sa.Connection, table: sa.Table, **values: Any) -> int:
    """Add a row; returns its `id`."""

    def statement() -> sa.ClauseElement:
        bound = {name: _bind(table, name) for name in values}
        return sa.insert(table).values(bound).returning(table.c.id)

    made = _made(("insert", table.name, *values), connection.dialect, statement)
    return int(_first(made.run(connection, values)))


def update(
    connection: sa.Connection,
    table: sa.Table,
    where: Mapping[str, Any],
    *,
    add: Mapping[str, int] = NOTHING,
    beyond: Mapping[str, tuple[sa.ColumnElement[int], int]] = MappingProxyType({}),
    **values: Any,
) -> int:
    """Change the rows whose columns are as in `where`, None meaning NULL; returns how many they are.

    Args:
        add: what to add to numbers.
        beyond: numbers that the database finds itself, by its clock perhaps, and what to add to each. For one column it
            is always the same expression.
    """

    def statement() -> sa.ClauseElement:
        found = [
            table.c[name].is_(None) if value is None else table.c[name] == _bind(table, name, "where_")
            for name, value in where.items()
        ]
        changes = {name: table.c[name] + _bind(table, name, "add_") for name in add}
        changes |= {name: start + _bind(table, name, "beyond_") for name, (start, _) in beyond.items()}
        return sa.update(table).where(*found).values(changes | {name: _bind(table, name) for name in values})

    bound = {f"where_{name}": value for name, value in where.items() if value is not None}
    bound |= {f"add_{name}": value for name, value in add.items()}
    bound |= {f"beyond_{name}": value for name, (_, value) in beyond.items()}
    bound |= values
    return (
        _made(("update", table.name, *where, *bound), connection.dialect, statement)
        .run(connection, bound)
        .rowcount
    )


def look_up(connection: sa.Connection, column: sa.Column[Any], row: int) -> Any:
    """A text or a whole number of the row with this id; None if there is no such row."""

    def statement() -> sa.ClauseElement:
        return sa.select(column).where(column.table.c.id == _bind(column.table, "id"))

    made = _made(("select", column.table.name, column.name), connection.dialect, statement)
    return _first(made.run(connection, {"id": row}))


def rows(
    connection: sa.Connection, name: str, statement: Callable[[], sa.Select[Any]], **values: Any
) -> list[tuple[Any, ...]]:
    """What a query finds, as the driver gives it: times and JSON of a file are text.

    Args:
        name: of the query, by which its SQL is found again.
        values: what it leaves open.
    """
    found = _made(("rows", name), connection.dialect, statement).run(connection, values)
    return [tuple(row) for row in found.fetchall()]


def _first(found: sqlite3.Cursor | sa.CursorResult[Any]) -> Any:
    """The one value of the one row, None if there is none."""
    row = found.fetchone()
    found.close()
    return None if row is None else row[0]


def _bind(table: sa.FromClause, name: str, prefix: str = "") -> sa.BindParameter[Any]:
    return sa.bindparam(f"{prefix}{name}", type_=table.c[name].type)


@dataclass(frozen=True, slots=True)
class _Made:
    """A statement as SQL.

    Attributes:
        names: of its values in order, where the driver takes them so; None where it takes them by name.
        convert: how a value becomes what the driver takes, where it does not go as it is.
        fixed: values that stand in its expressions.
    """

    sql: str
    names: tuple[str, ...] | None
    convert: Mapping[str, Callable[[Any], Any]]
    fixed: Mapping[str, Any]

    def run(self, connection: sa.Connection, values: dict[str, Any]) -> sqlite3.Cursor | sa.CursorResult[Any]:
        values |= self.fixed
        for name, convert in self.convert.items():
            values[name] = convert(values[name])
        given = values if self.names is None else tuple([values[name] for name in self.names])
        driver = connection.connection.dbapi_connection
        if isinstance(driver, sqlite3.Connection):  # What SQLAlchemy would add costs more than the statement.
            return driver.execute(self.sql, given)
        return connection.exec_driver_sql(self.sql, given)


_ALL: dict[tuple[str, ...], _Made] = {}
"""As many as there are kinds of statements in the code: their columns are named there."""


def _made(what: tuple[str, ...], dialect: sa.Dialect, statement: Callable[[], sa.ClauseElement]) -> _Made:
    key = (dialect.name, *what)
    found = _ALL.get(key)
    if found is None:
        compiled = statement().compile(dialect=dialect)
        assert isinstance(compiled, SQLCompiler)
        names = None if compiled.positiontup is None else tuple(compiled.positiontup)
        processors = {
            name: bind.type.dialect_impl(dialect).bind_processor(dialect)
            for name, bind in compiled.binds.items()
        }
        convert = {name: processor for name, processor in processors.items() if processor is not None}
        fixed = {name: value for name, value in compiled.params.items() if value is not None}
        found = _ALL[key] = _Made(compiled.string, names, convert, fixed)
    return found
