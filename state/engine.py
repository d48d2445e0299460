"""Where a store is: in a file of SQLite's, or in a database of a PostgreSQL server. One set of names for both."""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import sqlalchemy as sa

from goalmode.errors import BadInput
from goalmode.state import sqlite
from goalmode.state.postgres import PostgresDatabase
from goalmode.state.sqlite import SqliteFile

BUSY_SECONDS = sqlite.BUSY_SECONDS
"""How long a busy store, or a server that starts again, is waited out."""

PULSE_SECONDS = 2.0
"""The same for renewing leases: it must fail well before a lease runs out."""

SUPPORTED = "sqlite:///PATH, a path, or postgresql+psycopg://USER@HOST/DATABASE"


class Database(Protocol):
    """One place where a store is, or could be.

    Attributes:
        name: how it is shown: never with a password.
        path: its file; None if it is on a server.
        lease_now: the server's clock in milliseconds, to be used in statements; None where leases are counted on the
            clock of the machine's boot.
    """

    @property
    def name(self) -> str: ...
    @property
    def path(self) -> Path | None: ...
    @property
    def lease_now(self) -> sa.ColumnElement[int] | None: ...
    def is_there(self) -> bool:
        """Whether anything is where the store would be."""
        ...

    def prepare(self, *, writable: bool) -> None:
        """Refuse what is no store, before anything touches it; make its place if it is to be written.

        Raises:
            StoreError: one line that names the place and the cause.
        """
        ...

    def reading(self, *, busy_seconds: float) -> sa.Engine:
        """An engine that cannot write. Each transaction is one consistent view."""
        ...

    def writing(self, *, durable: bool, busy_seconds: float) -> sa.Engine:
        """An engine whose transactions may write, each of them whole or not at all."""
        ...

    def plain_errors(self) -> AbstractContextManager[None]:
        """Turns the database's errors into a StoreError: one line that names the place and the cause."""
        ...

    def locks(self) -> Path:
        """The directory of this machine in which the tools' lock files are."""
        ...

    def copy_to(self, target: Path) -> None:
        """Write the whole store, as it is at one moment, to a new file for its user alone.

        Raises:
            NotAllowed: this kind of store has a way of its own; it is named.
            StoreError: the file is there already, or cannot be written.
        """
        ...

    def faults(self) -> list[str]:
        """What the database itself finds wrong with it; one that a server keeps is the server's to check."""
        ...

    def vacuum(self) -> None:
        """Give back the space that nothing uses any more."""
        ...

    def kind(self) -> str:
        """What keeps it, and that one's version."""
        ...

    def size(self) -> int:
        """Bytes that the store takes."""
        ...


def database_at(url: str) -> Database:
    """The place that `url` names.

    Raises:
        BadInput: it names none; a password in it is not repeated.
    """
    scheme, found, _ = url.partition("://")
    if not found or url.startswith("sqlite:///"):
        return SqliteFile.at(url)
    if scheme in ("postgresql", "postgresql+psycopg"):
        return PostgresDatabase.at(url)
    raise BadInput("store", f"{scheme}://…", SUPPORTED)
