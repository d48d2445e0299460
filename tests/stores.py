"""New stores for tests: a file each, or a database each on the server that GOALMODE_TEST_STORE names.

And what a store holds, read past the package, in the same words on both.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, ClassVar

import sqlalchemy as sa

from goalmode.state.store import Store

SERVER = os.environ.get("GOALMODE_TEST_STORE", "")
"""A superuser's way to the server; empty where stores are files."""

_NUMBERS = itertools.count()


class Stores:
    """Makes stores, and takes them away again. A copy of a migrated store costs a tenth of a migration."""

    def __init__(self, directory: Path) -> None:
        self._blank = _Databases.template() if SERVER else str(directory / "blank.sqlite")
        self._made: list[str] = []
        Store(self._blank).close()

    def new(self, path: Path) -> str:
        """The URL of an empty store of the newest schema; a file is at `path`."""
        return self._make(path, self._blank)

    def nothing(self, path: Path) -> str:
        """The URL at which there is no store yet: no file at `path`, or a database without tables."""
        return self._make(path, "") if SERVER else str(path)

    def clear(self) -> None:
        """Remove the databases made so far. Files go with their directories."""
        while self._made:
            _Databases.drop(self._made.pop())

    def end(self) -> None:
        self.clear()
        if SERVER:
            _Databases.drop(self._blank)

    def _make(self, path: Path, source: str) -> str:
        if SERVER:
            self._made.append(_Databases.create(source))
            return self._made[-1]
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copy(source, path)
        return str(path)


class _Databases:
    """The databases of the server. One connection makes them all; another one looks into each."""

    _open: ClassVar[dict[str, Any]] = {}

    @classmethod
    def template(cls) -> str:
        return cls.create("")

    @classmethod
    def create(cls, source: str) -> str:
        name = f"test_{os.getpid()}_{next(_NUMBERS)}"
        template = sa.make_url(source).database if source else "template0"
        cls.connection(SERVER).execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        return sa.make_url(SERVER).set(database=name).render_as_string(hide_password=False)

    @classmethod
    def drop(cls, url: str) -> None:
        if url in cls._open:
            cls._open.pop(url).close()
        cls.connection(SERVER).execute(f'DROP DATABASE "{sa.make_url(url).database}" WITH (FORCE)')

    @classmethod
    def connection(cls, url: str) -> Any:
        import psycopg

        if url not in cls._open or cls._open[url].closed:
            cls._open[url] = psycopg.connect(url.replace("+psycopg", ""), autocommit=True)
        return cls._open[url]


def rows(url: str, statement: str, *values: object) -> list[Any]:
    """What the store itself holds: one value a row, or a tuple; numbers, texts and times as SQLite gives them."""
    if "://" in url and not url.startswith("sqlite"):
        found = _server_rows(url, statement, values)
    else:
        with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection:
            found = connection.execute(statement, values).fetchall()
            connection.commit()
    return [row[0] if len(row) == 1 else row for row in found]


def dump(url: str) -> list[str]:
    """Everything that is committed, as text."""
    if "://" not in url:
        with contextlib.closing(sqlite3.connect(url)) as connection:
            return list(connection.iterdump())
    tables = _server_rows(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'", ())
    return sorted(
        f"{table}: {row!r}"
        for (table,) in tables
        for row in _server_rows(url, f'SELECT * FROM "{table}"', ())
    )


def content(url: str) -> str:
    """A hash of all that is there, of a file byte for byte."""
    whole = "\n".join(dump(url)).encode() if "://" in url else Path(url).read_bytes()
    return hashlib.sha256(whole).hexdigest()


def _server_rows(url: str, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
    connection = _Databases.connection(url)
    connection.execute(
        "SET session_replication_role = replica"
    )  # As in SQLite's shell: no foreign key is checked.
    done = connection.execute(statement.replace("%", "%%").replace("?", "%s"), values or None)
    return [] if done.description is None else [tuple(map(_as_in_sqlite, row)) for row in done.fetchall()]


def _as_in_sqlite(value: Any) -> Any:
    match value:
        case bool() | Decimal():
            return int(value)
        case dict() | list():
            return json.dumps(value)
        case datetime():
            return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
        case _:
            return value


def made(directory: Path) -> Iterator[Stores]:
    """For a fixture of the session."""
    stores = Stores(directory)
    yield stores
    stores.end()
