"""The store: opening it, its transactions, and what it can do, gathered from the files beside this one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from goalmode.domain.clock import Clock, SystemClock
from goalmode.domain.redact import Redactor
from goalmode.domain.text import sendable
from goalmode.errors import StoreError
from goalmode.state import engine, migrate
from goalmode.state.owner import Owner


def default_url() -> str:
    """`GOALMODE_STORE`, else a file in the user's data directory."""
    url = os.environ.get("GOALMODE_STORE")
    if url:
        return url
    import platformdirs

    return str(Path(platformdirs.user_data_dir("goalmode", appauthor=False)) / "goals.sqlite")


class Store:
    """One store, opened for reading or for writing. Threads may share it.

    Attributes:
        path: the SQLite file.
        notices: lines worth telling the user about opening it (an upgrade and its backup).
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        readonly: bool = False,
        clock: Clock | None = None,
        redact: Redactor | None = None,
        owner: Owner | None = None,
        busy_seconds: float = engine.BUSY_SECONDS,
    ) -> None:
        """Open the store, making or upgrading it if it is opened for writing.

        Raises:
            BadInput: `url` names no file.
            StoreError: it cannot be opened; one line names the file and the cause. The file is as it was.
            StoreNewer: newer code wrote it.
        """
        self.path = engine.store_path(url or default_url())
        self.clock: Clock = clock or SystemClock()
        self.redact = redact or Redactor()
        self.owner = owner or Owner.current()
        self.readonly = readonly
        self.notices: list[str] = []
        if not readonly:
            engine.make_file(self.path)
        engine.check_file(self.path, writable=not readonly)
        self._prepare()
        self._read = engine.reading_engine(self.path, busy_seconds=busy_seconds)
        if not readonly:
            # A transaction cannot change `synchronous`, so each commit class has its own connections.
            self._full = engine.writing_engine(self.path, synchronous="FULL", busy_seconds=busy_seconds)
            self._normal = engine.writing_engine(self.path, synchronous="NORMAL", busy_seconds=busy_seconds)
            pulse_seconds = min(busy_seconds, engine.PULSE_SECONDS)
            self._pulse = engine.writing_engine(self.path, synchronous="NORMAL", busy_seconds=pulse_seconds)

    def _prepare(self) -> None:
        found = migrate.revision(self.path)
        migrate.check_revision(self.path, found)
        if found == migrate.HEAD:
            return
        if self.readonly:
            have = "no schema yet" if found is None else f"schema {found}"
            raise StoreError(
                f"store {self.path}: has {have}, {migrate.HEAD} is needed; a command that writes prepares it"
            )
        with engine.plain_errors(self.path):
            backup = migrate.upgrade(self.path, found, here=self.owner, lease_ms=self.clock.lease_ms())
        if backup is not None:
            self.notices.append(f"store upgraded from schema {found} to {migrate.HEAD}; backup: {backup}")

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """One consistent view."""
        with engine.plain_errors(self.path), self._read.begin() as connection:
            yield connection

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[sa.Connection]:
        """One transaction. `durable` survives a loss of power at once; else with the next durable commit."""
        with engine.plain_errors(self.path), (self._full if durable else self._normal).begin() as connection:
            yield connection

    @contextmanager
    def pulsing(self) -> Iterator[sa.Connection]:
        """One transaction that waits out a busy store only briefly: for signs of life, on a connection of their own."""
        with engine.plain_errors(self.path), self._pulse.begin() as connection:
            yield connection

    def clean(self, text: str) -> str:
        """The one choke point of every text that is stored: secrets struck out, then made storable."""
        return sendable(self.redact(text))

    def clean_json(self, value: Any) -> Any:
        """`clean` for every string in a JSON value, before it is written as JSON: a cut in the text could break it."""
        match value:
            case str():
                return self.clean(value)
            case Mapping():
                return {self.clean(str(k)): self.clean_json(v) for k, v in value.items()}
            case list() | tuple():
                return [self.clean_json(v) for v in value]
            case _:
                return value

    def lock_file(self, goal: int, fence: int) -> Path:
        return self.path.with_name(f"{self.path.name}-locks") / f"{goal}.{fence}"

    def close(self) -> None:
        self._read.dispose()
        if not self.readonly:
            self._full.dispose()
            self._normal.dispose()
            self._pulse.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
