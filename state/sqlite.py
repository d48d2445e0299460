"""A store in a file of SQLite's: how it is found, made, opened and protected, and what its errors mean."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError, TimeoutError
from sqlalchemy.util import LRUCache

from goalmode.errors import BadInput, StoreBusy, StoreError
from goalmode.state.kept import KeptEngine
from goalmode.state.locks import check_locking

PAGE_SIZE = 1024
"""Bytes. Half the bytes written per turn of SQLite's default of 4096."""

BUSY_SECONDS = 60.0
"""How long other writers are waited out where nothing else is said."""

READERS = 15
"""Threads that read at once; further ones wait."""

_MAGIC = b"SQLite format 3\x00"

_in_use: dict[tuple[int, int], list[weakref.ref[SqliteFile]]] = {}
"""By device and inode: who has the file open in this process, or is about to open it."""

_looking = threading.Lock()

_compiled = LRUCache[Any, Any](500)
"""Statements as SQL, for every engine of this process: to compile one takes longer than SQLite needs for it."""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class SqliteFile:
    """See `goalmode.state.engine.Database`."""

    path: Path

    @classmethod
    def at(cls, url: str) -> SqliteFile:
        """The file that `url` names: `sqlite:///PATH`, or a plain path.

        Raises:
            BadInput: the store would live in memory only.
        """
        name = url.removeprefix("sqlite:///")
        if name in ("", ":memory:"):
            raise BadInput("store", url, "a file: a goal outlives the process")
        return cls(Path(name).expanduser())

    @property
    def name(self) -> str:
        return str(self.path)

    @property
    def lease_now(self) -> None:
        return None

    def is_there(self) -> bool:
        return self.path.exists()

    def prepare(self, *, writable: bool) -> None:
        if writable:
            _make(self.path)
        _check(self, writable=writable)
        if writable:
            check_locking(self.path.parent)

    def writing(self, *, durable: bool, busy_seconds: float) -> sa.Engine:
        """Every transaction is IMMEDIATE: a reader that becomes a writer cannot lose its turn.

        A transaction cannot change `synchronous`, so each class of commits has its own engine.
        """
        # One at a time in this process: of several, SQLite would let all but one poll for the lock.
        engine = self._engine(
            lambda: _connect(self.path, "mode=rw", busy_seconds), "BEGIN IMMEDIATE", most=1, wait=busy_seconds
        )

        @event.listens_for(engine, "connect")
        def connect(dbapi: Any, _record: object) -> None:
            for pragma in (
                f"page_size={PAGE_SIZE}",
                "journal_mode=WAL",
                f"synchronous={'FULL' if durable else 'NORMAL'}",
                f"busy_timeout={int(busy_seconds * 1000)}",
                "foreign_keys=ON",
            ):
                dbapi.execute(f"PRAGMA {pragma}")

        return engine

    def reading(self, *, busy_seconds: float) -> sa.Engine:
        return self._engine(
            lambda: _open_reading(self.path, busy_seconds=busy_seconds),
            "BEGIN DEFERRED",
            most=READERS,
            wait=busy_seconds,
        )

    def _engine(self, connect: Callable[[], Connection], begin: str, *, most: int, wait: float) -> sa.Engine:
        """Its transactions begin with `begin`, in the file that is at the path now, and in no other."""
        dialect = _dialect()

        def opened() -> Any:
            connection = connect()
            connection.is_of(self.path, begin)
            return connection

        return KeptEngine(
            sa.NullPool(opened, dialect=dialect),
            dialect,
            sa.make_url("sqlite://"),
            most=most,
            wait_seconds=wait,
            execution_options={"compiled_cache": _compiled},
            hide_parameters=True,
        )

    @contextmanager
    def plain_errors(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise _translate(self.path, str(error.orig)) from None
        except sqlite3.Error as error:
            raise _translate(self.path, str(error)) from None
        except TimeoutError:
            raise StoreBusy(f"store {self.path}: too many threads wait for it") from None

    def locks(self) -> Path:
        return self.path.with_name(f"{self.path.name}-locks")

    def copy_to(self, target: Path) -> None:
        """By SQLite's own backup: a plain copy of a live WAL store is not one."""
        try:
            os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            raise StoreError(f"backup {target}: is there already; nothing was written") from None
        except OSError as error:
            raise StoreError(f"backup {target}: cannot be created: {error.strerror}") from None
        try:
            with (
                self.plain_errors(),
                closing(_open_reading(self.path)) as source,
                closing(sqlite3.connect(target)) as copy,
            ):
                source.backup(copy)
        except BaseException:
            target.unlink(missing_ok=True)
            raise

    def faults(self) -> list[str]:
        with self.plain_errors(), closing(_open_reading(self.path)) as connection:
            found = [str(row[0]) for row in connection.execute("PRAGMA integrity_check")]
            broken = connection.execute("PRAGMA foreign_key_check").fetchall()
        dangling = [
            f"{table}: row {row} refers to a row of {parent} that is gone" for table, row, parent, _ in broken
        ]
        return [line for line in found if line != "ok"] + dangling

    def vacuum(self) -> None:
        with (
            self.plain_errors(),
            closing(sqlite3.connect(self.path, BUSY_SECONDS, isolation_level=None)) as connection,
        ):
            for statement in ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
                connection.execute(statement).fetchall()

    def kind(self) -> str:
        return f"SQLite {sqlite3.sqlite_version}"

    def size(self) -> int:
        beside = [self.path, self.path.with_name(f"{self.path.name}-wal")]
        return sum(path.stat().st_size for path in beside if path.exists())


class Connection(sqlite3.Connection):
    """A connection that knows how its transactions begin, and in which file.

    It would go on with a file that was deleted, or that another one has replaced: what it wrote there would be seen by
    nobody, and gone with the process.
    """

    def is_of(self, path: Path, begin: str) -> None:
        self.path, self._begin, self._file = str(path), begin, _identity(path)

    def begin(self) -> bool:
        """Begin a transaction; False, with nothing begun, if this is not the file at the path any more."""
        if self._file != _identity(self.path):
            return False
        self.execute(self._begin)
        return True


class _Dialect(SQLiteDialect_pysqlite):
    """Begins transactions itself: for an event of the engine, SQLAlchemy does more than SQLite for all of them."""

    supports_statement_cache = True

    def do_begin(self, dbapi_connection: DBAPIConnection) -> None:
        connection = getattr(dbapi_connection, "dbapi_connection", None)
        if isinstance(connection, Connection) and not connection.begin():
            path = connection.path
            dbapi_connection.invalidate()
            raise StoreError(f"store {path}: was deleted or replaced while it was open")


@cache
def _dialect() -> sa.Dialect:
    """One for all engines, since what is compiled is kept by dialect. A first connection tells it SQLite's version."""
    dialect = _Dialect(dbapi=sqlite3, json_deserializer=_from_json)
    nowhere: Callable[[], Any] = partial(sqlite3.connect, ":memory:")
    engine = sa.Engine(sa.StaticPool(nowhere), dialect, sa.make_url("sqlite://"))
    with engine.connect() as connection:
        dialect.initialize(connection)
    engine.dispose()
    return dialect


def _make(path: Path) -> None:
    """Create the store's file for its user alone, in a directory for its user alone, if it is not there."""
    try:
        if not path.parent.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise StoreError(f"store {path}: cannot be created: {error.strerror}") from None


def _check(store: SqliteFile, *, writable: bool) -> None:
    """Refuse what is no store, before SQLite touches it."""
    path = store.path
    if path.is_dir():
        raise StoreError(f"store {path}: is a directory; a file is needed")
    _look_at(store)
    if writable and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        raise StoreError(
            f"store {path}: is read-only; make the file and its directory writable, or use --store"
        )


def _look_at(store: SqliteFile) -> None:
    """Refuse a file whose first bytes are not those of a store, unless this process has it open already.

    Closing a descriptor of a file drops all locks that the process has on it (POSIX), also those of SQLite's open
    connections. Another process would then take the store for unused, and delete the WAL that they write to.
    """
    path = store.path
    with _looking:
        for file, users in list(_in_use.items()):
            users[:] = [user for user in users if user() is not None]
            if not users:
                del _in_use[file]
        found = _identity(path)
        if found not in _in_use:
            try:
                with path.open("rb") as opened:
                    magic, found = opened.read(len(_MAGIC)), _of(os.fstat(opened.fileno()))
            except FileNotFoundError:
                raise StoreError(f"store {path}: does not exist") from None
            except OSError as error:
                raise StoreError(f"store {path}: cannot be read: {error.strerror}") from None
            if magic and magic != _MAGIC:
                raise StoreError(f"store {path}: is not a goalmode store (not an SQLite file)")
        if found is not None:
            _in_use.setdefault(found, []).append(weakref.ref(store))


def _open_reading(path: Path, *, busy_seconds: float = BUSY_SECONDS) -> Connection:
    """A connection that cannot write, also where nothing can."""
    # Where the directory is read-only and no WAL is left, SQLite needs to be told that nothing can change.
    wal = Path(f"{path}-wal")
    settled = not os.access(path.parent, os.W_OK) and not (wal.exists() and wal.stat().st_size)
    return _connect(path, "immutable=1" if settled else "mode=ro", busy_seconds)


def _connect(path: Path, how: str, busy_seconds: float) -> Connection:
    """To a file that is there. The driver must not begin by itself: it would skip DDL and SELECT."""
    uri = f"{path.absolute().as_uri()}?{how}"
    return sqlite3.connect(
        uri, uri=True, timeout=busy_seconds, check_same_thread=False, isolation_level=None, factory=Connection
    )


def _identity(path: Path | str) -> tuple[int, int] | None:
    """Which file is at the path; None if there is none."""
    try:
        return _of(os.stat(path))  # noqa: PTH116 - asked at every transaction, and a Path takes longer than the system
    except OSError:
        return None


def _of(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _from_json(text: str) -> Any:
    """A stored JSON value; text that is none stays text, so that only what reads the field refuses it, by its name."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _translate(path: Path, text: str) -> StoreError:
    lowered = text.lower()
    if "locked" in lowered or "busy" in lowered:
        return StoreBusy(f"store {path}: is locked by another process ({text})")
    if "readonly" in lowered:
        return StoreError(f"store {path}: is read-only ({text})")
    if "full" in lowered:
        return StoreError(f"store {path}: the disk is full ({text})")
    if "malformed" in lowered or "not a database" in lowered or "corrupt" in lowered:
        return StoreError(f"store {path}: is corrupt ({text}); restore a backup")
    if "no such table" in lowered or "no such column" in lowered:
        return StoreError(f"store {path}: is not a goalmode store of this version ({text})")
    if "unable to open" in lowered or "disk i/o" in lowered:
        return StoreError(f"store {path}: cannot be read or written ({text})")
    return StoreError(f"store {path}: {text}")
