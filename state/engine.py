"""Engines and transactions: how the store's file is found, made, opened and protected, and what its errors mean."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError

from goalmode.errors import BadInput, StoreBusy, StoreError

PAGE_SIZE = 1024
"""Bytes. Half the bytes written per turn of SQLite's default of 4096."""

BUSY_SECONDS = 60.0
"""How long a busy store is waited out."""

PULSE_SECONDS = 2.0
"""The same for renewing leases: it must fail well before a lease runs out."""

_MAGIC = b"SQLite format 3\x00"


def store_path(url: str) -> Path:
    """The file that `url` names: `sqlite:///PATH`, or a plain path.

    Raises:
        BadInput: another scheme, or a store that would live in memory only.
    """
    if "://" in url and not url.startswith("sqlite:///"):
        scheme = url.split("://", 1)[0]
        raise BadInput("store", f"{scheme}://…", "sqlite:///PATH or a path")
    name = url.removeprefix("sqlite:///")
    if name in ("", ":memory:"):
        raise BadInput("store", url, "a file: a goal outlives the process")
    return Path(name).expanduser()


def make_file(path: Path) -> None:
    """Create the store's file for its user alone, in a directory for its user alone, if it is not there."""
    try:
        if not path.parent.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise StoreError(f"store {path}: cannot be created: {error.strerror}") from None


def check_file(path: Path, *, writable: bool) -> None:
    """Refuse what is no store, before SQLite touches it."""
    if path.is_dir():
        raise StoreError(f"store {path}: is a directory; a file is needed")
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
    except FileNotFoundError:
        raise StoreError(f"store {path}: does not exist") from None
    except OSError as error:
        raise StoreError(f"store {path}: cannot be read: {error.strerror}") from None
    if magic and magic != _MAGIC:
        raise StoreError(f"store {path}: is not a goalmode store (not an SQLite file)")
    if writable and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)):
        raise StoreError(
            f"store {path}: is read-only; make the file and its directory writable, or use --store"
        )


def writing_engine(path: Path, *, synchronous: str, busy_seconds: float) -> sa.Engine:
    """An engine whose every transaction is IMMEDIATE: a reader that becomes a writer cannot lose its turn."""
    engine = sa.create_engine(
        f"sqlite:///{path}",
        connect_args={"timeout": busy_seconds, "check_same_thread": False},
        json_deserializer=_from_json,
        hide_parameters=True,
    )

    @event.listens_for(engine, "connect")
    def connect(dbapi: Any, _record: object) -> None:
        dbapi.isolation_level = None  # The driver must not begin by itself: it would skip DDL and SELECT.
        for pragma in (
            f"page_size={PAGE_SIZE}",
            "journal_mode=WAL",
            f"synchronous={synchronous}",
            f"busy_timeout={int(busy_seconds * 1000)}",
            "foreign_keys=ON",
        ):
            dbapi.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def reading_engine(path: Path, *, busy_seconds: float) -> sa.Engine:
    """An engine that cannot write. Each transaction is one consistent view."""

    engine = sa.create_engine(
        "sqlite://",
        creator=lambda: open_reading(path, busy_seconds=busy_seconds),
        poolclass=sa.QueuePool,
        json_deserializer=_from_json,
        hide_parameters=True,
    )

    @event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql("BEGIN DEFERRED")

    return engine


def open_reading(path: Path, *, busy_seconds: float = BUSY_SECONDS) -> sqlite3.Connection:
    """A connection that cannot write, also where nothing can."""
    # Where the directory is read-only and no WAL is left, SQLite needs to be told that nothing can change.
    wal = Path(f"{path}-wal")
    settled = not os.access(path.parent, os.W_OK) and not (wal.exists() and wal.stat().st_size)
    uri = f"{path.absolute().as_uri()}?{'immutable=1' if settled else 'mode=ro'}"
    return sqlite3.connect(uri, uri=True, timeout=busy_seconds, check_same_thread=False, isolation_level=None)


def _from_json(text: str) -> Any:
    """A stored JSON value; text that is none stays text, so that only what reads the field refuses it, by its name."""
    try:
        return json.loads(text)
    except ValueError:
        return text


@contextmanager
def plain_errors(path: Path) -> Iterator[None]:
    """Turn the database's errors into one line that names the file and the cause."""
    try:
        yield
    except DBAPIError as error:
        raise _translate(path, str(error.orig)) from None
    except sqlite3.Error as error:
        raise _translate(path, str(error)) from None


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
