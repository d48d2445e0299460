"""How columns are made: types that are the same on every database, and the short forms that the tables use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import MAXYEAR, MINYEAR, UTC, datetime
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field

from goalmode.errors import StoreUnreadable


class UTCDateTime(sa.types.TypeDecorator[datetime]):
    """Aware in, aware UTC out; a naive time is refused. What is stored and is no time raises StoreUnreadable."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"naive time {value!r} refused")
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def result_processor(self, dialect: sa.Dialect, coltype: object) -> Callable[[Any], datetime | None]:
        read = super().result_processor(dialect, coltype)
        assert read is not None  # There is a process_result_value.

        def process(value: Any) -> datetime | None:
            try:
                return read(value)
            except (TypeError, ValueError):  # SQLite keeps a number or a blob too where a time belongs.
                raise StoreUnreadable(f"{value!r} is stored, a time was expected") from None

        return process

    def process_result_value(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


@cache
def time_reader(dialect: sa.Dialect) -> Callable[[Any], Any]:
    """Makes a time of what the driver gives for one. What is none raises StoreUnreadable."""
    read = UTCDateTime().dialect_impl(dialect).result_processor(dialect, None)
    assert read is not None
    return read


def time_of(text: object) -> datetime | None:
    """A time with its offset, as it is written in JSON; None for what is none.

    Nor is one of the first or the last year that there are: in another zone there may be no such time.
    """
    try:
        found = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    known = found is not None and found.tzinfo is not None and MINYEAR < found.year < MAXYEAR
    return found if known else None


JSON = sa.JSON().with_variant(JSONB(), "postgresql")
JSON_OR_NULL = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def whole(default: int | None = 0, *, zero: bool = False) -> Any:
    """A whole number. `zero`: the database fills it in where an older or a partial insert does not name it."""
    server = sa.text("0") if zero else None
    column = sa.Column(sa.BigInteger, nullable=default is None, server_default=server)
    return Field(default=default, sa_column=column)


def key() -> Any:
    # SQLite gives row ids to INTEGER keys only.
    column = sa.Column(sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True)
    return Field(default=None, sa_column=column)


def ref(target: str, *, nullable: bool = False, index: bool = False, primary_key: bool = False) -> Any:
    foreign = sa.ForeignKey(target, ondelete="CASCADE")
    column = sa.Column(sa.BigInteger, foreign, nullable=nullable, index=index, primary_key=primary_key)
    return Field(default=None, sa_column=column)


def body() -> Any:
    # No foreign key: bodies are pruned before the rows that name them, and a key would be looked up at each deletion.
    return Field(default=None, sa_column=sa.Column(sa.BigInteger, nullable=True, info={"body": True}))


def text(default: str | None = "") -> Any:
    return Field(default=default, sa_column=sa.Column(sa.Text, nullable=default is None))


def word(nullable: bool = False, *, first: str | None = None) -> Any:
    """A word of a closed list. `first`: what the database fills in."""
    server = None if first is None else sa.text(f"'{first}'")
    return Field(default=first, sa_column=sa.Column(sa.String(24), nullable=nullable, server_default=server))


def json(nullable: bool = False) -> Any:
    kind = JSON_OR_NULL if nullable else JSON
    return Field(default=None, sa_column=sa.Column(kind, nullable=nullable))


def flag() -> Any:
    return Field(sa_column=sa.Column(sa.Boolean(create_constraint=False), nullable=False))


def time(nullable: bool = True) -> Any:
    return Field(default=None, sa_column=sa.Column(UTCDateTime, nullable=nullable))


def words(column: str, closed: Iterable[str]) -> sa.CheckConstraint:
    return sa.CheckConstraint(written(column, *closed), name=column)


def written(column: str, *some: str) -> sa.ColumnElement[bool]:
    """That a column holds one of these words, as partial indexes and the queries that they are for say it.

    Written out, not bound: such an index is used only where the statement says the same words.
    """
    listed = ", ".join(f"'{word}'" for word in some)
    return sa.literal_column(f"{column} IN ({listed})" if len(some) > 1 else f"{column} = {listed}")
