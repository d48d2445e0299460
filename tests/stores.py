"""New stores for tests: a file each, or a database each on the server that GOALMODE_TEST_STORE names.

And what a store holds, read past the package, in the same words on both.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from goalmode.state.engine import Database
from goalmode.state.migrate import upgrade
from goalmode.state.store import Store
from tests import databases

SERVER = databases.SERVER


class Stores:
    """Makes stores, and takes them away again. One that is migrated already costs a tenth of a migration."""

    def __init__(self, directory: Path) -> None:
        self._blank = databases.create() if SERVER else str(directory / "blank.sqlite")
        Store(self._blank).close()
        self._pool = databases.Pool(self._blank) if SERVER else None
        self._empty: list[str] = []

    def new(self, path: Path) -> str:
        """The URL of an empty store of the newest schema; a file is at `path`."""
        if self._pool is not None:
            return self._pool.lend()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        shutil.copy(self._blank, path)
        return str(path)

    def nothing(self, path: Path) -> str:
        """The URL at which there is no store yet: no file at `path`, or a database without tables."""
        if self._pool is None:
            return str(path)
        self._empty.append(databases.create())
        return self._empty[-1]

    def unused(self, path: Path) -> str:
        """No file yet at `path`, or a database that has its tables already: to make them in each test takes long."""
        return str(path) if self._pool is None else self._pool.lend()

    def upgrade(self, database: Database, found: str | None) -> Path | None:
        """What `goalmode.state.migrate.upgrade` does, for a file without tables by a copy of one that has them."""
        if found is not None or database.path is None or self._pool is not None:
            return upgrade(database, found)
        with (
            contextlib.closing(sqlite3.connect(self._blank)) as blank,
            contextlib.closing(sqlite3.connect(database.path)) as file,
        ):
            blank.backup(file)
        return None

    def clear(self) -> None:
        """Take back the databases. Files go with their directories."""
        while self._empty:
            databases.drop(self._empty.pop())
        if self._pool is not None:
            self._pool.take_back()

    def end(self) -> None:
        self.clear()
        if self._pool is not None:
            self._pool.end()


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
    """Everything that is committed, as text; long texts once more unpacked, so that what is in them is found."""
    if "://" not in url:
        with contextlib.closing(sqlite3.connect(url)) as connection:
            tables = connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'bodies'").fetchall()
            bodies = connection.execute("SELECT codec, data FROM bodies ORDER BY id") if tables else ()
            return [*connection.iterdump(), *_unpacked(bodies)]
    tables = _server_rows(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'", ())
    rows = (
        f"{table}: {row!r}"
        for (table,) in tables
        for row in _server_rows(url, f'SELECT * FROM "{table}"', ())
    )
    bodies = "SELECT codec, data FROM bodies ORDER BY id" if ("bodies",) in tables else ""
    return [*sorted(rows), *(_unpacked(_server_rows(url, bodies, ())) if bodies else ())]


def _unpacked(bodies: Iterable[Sequence[Any]]) -> Iterator[str]:
    for codec, data in bodies:
        with contextlib.suppress(zlib.error, TypeError):  # Some tests break one.
            raw = zlib.decompress(data) if codec == "zlib" else bytes(data)
            yield f"text: {raw.decode('utf-8', 'replace')}"


def content(url: str) -> str:
    """A hash of all that is there, of a file byte for byte."""
    whole = "\n".join(dump(url)).encode() if "://" in url else Path(url).read_bytes()
    return hashlib.sha256(whole).hexdigest()


def _server_rows(url: str, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
    connection = databases.connection(url)
    connection.execute(
        "SET session_replication_role = replica"
    )  # As in SQLite's shell: no foreign key is checked.
    if values:
        statement = statement.replace("%", "%%").replace("?", "%s")
    done = connection.execute(statement, values or None)
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
