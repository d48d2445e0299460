"""The store: opening it, its transactions, and what it can do, gathered from the files beside this one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event

from goalmode.domain.clock import Clock, SystemClock
from goalmode.domain.redact import Redactor
from goalmode.domain.text import sendable
from goalmode.errors import StoreError
from goalmode.state import engine, migrate
from goalmode.state.owner import Lease, Owner, chosen_lease


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
        name: how it is shown: never with a password.
        url: how it is opened again; it may hold a password.
        path: its file; None if it is on a server.
        lease_length: milliseconds for which a wakeup of this process is held without a sign of life.
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
        lease_length: int | None = None,
    ) -> None:
        """Open the store, making or upgrading it if it is opened for writing.

        Args:
            lease_length: milliseconds for which a wakeup of this process is held without a sign of life; None for
                what `GOALMODE_LEASE` says, else a minute.

        Raises:
            BadInput: `url` names no store, or `GOALMODE_LEASE` no length.
            StoreError: it cannot be opened; one line names the place and the cause. The store is as it was.
            StoreNewer: newer code wrote it.
        """
        self.url = url or default_url()
        self.database = engine.database_at(self.url)
        self.name, self.path = self.database.name, self.database.path
        self.clock: Clock = clock or SystemClock()
        self.redact = redact or Redactor()
        self.owner = owner or Owner.current()
        self.lease_length = chosen_lease() if lease_length is None else lease_length
        self.readonly = readonly
        self.notices: list[str] = []
        self.database.prepare(writable=not readonly)
        self._read = self.database.reading(busy_seconds=busy_seconds)
        self._writers: list[sa.Engine] = []
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise
        if not readonly:
            # Two classes of commits, and signs of life beside them: each has connections of its own.
            self._full = self._writer(durable=True, busy_seconds=busy_seconds)
            self._normal = self._writer(durable=False, busy_seconds=busy_seconds)
            pulse_seconds = min(busy_seconds, engine.PULSE_SECONDS, self.lease_length / 4000)
            self._pulse = self._writer(durable=False, busy_seconds=pulse_seconds)

    def _writer(self, *, durable: bool, busy_seconds: float) -> sa.Engine:
        self._writers.append(self.database.writing(durable=durable, busy_seconds=busy_seconds))
        return self._writers[-1]

    def _prepare(self) -> None:
        with self.reading() as connection:
            found = migrate.revision(connection, self.name)
        migrate.check_revision(self.name, found)
        if found == migrate.HEAD:
            return
        if self.readonly:
            have = "no schema yet" if found is None else f"schema {found}"
            raise StoreError(
                f"store {self.name}: has {have}, {migrate.HEAD} is needed; a command that writes prepares it"
            )
        if found is not None:
            with self.reading() as connection:
                live = [
                    lease.owner.name for lease in migrate.open_leases(connection) if not self.is_void(lease)
                ]
            if live:
                raise StoreError(
                    f"store {self.name}: cannot be upgraded while {', '.join(live)} runs a wakeup; stop it first"
                )
        with self.database.plain_errors():
            backup = migrate.upgrade(self.database, found)
        if found is not None:
            kept = "" if backup is None else f"; backup: {backup}"
            self.notices.append(f"store upgraded from schema {found} to {migrate.HEAD}{kept}")

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """One consistent view."""
        with self.database.plain_errors(), self._read.begin() as connection:
            yield connection

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[sa.Connection]:
        """One transaction. `durable` survives a loss of power at once; else with the next durable commit.

        In a file, one transaction writes at a time. On a server several do: one that reads what it then writes takes
        the goal first (`goalmode.state.wakeups.lock_goal`; the guard does so itself).
        """
        with self.database.plain_errors(), (self._full if durable else self._normal).begin() as connection:
            yield connection

    @contextmanager
    def pulsing(self) -> Iterator[sa.Connection]:
        """One transaction that waits out a busy store only briefly: for signs of life, on a connection of their own."""
        with self.database.plain_errors(), self._pulse.begin() as connection:
            yield connection

    def lease_now(self) -> int | sa.ColumnElement[int]:
        """Now, in milliseconds, on the clock that leases are counted on, as a value for statements.

        That is the machine's own for a file, and the server's for a server; a clock that is moved by hand is both.
        """
        served = self.database.lease_now
        return served if served is not None and isinstance(self.clock, SystemClock) else self.clock.lease_ms()

    def lease_ms(self) -> int:
        """The same as a number."""
        now = self.lease_now()
        if isinstance(now, int):
            return now
        with self.reading() as connection:
            return int(connection.execute(sa.select(now)).scalar_one())

    def is_void(self, lease: Lease, *, now_ms: int | None = None) -> bool:
        """Whether somebody else may take over from the owner of an open wakeup; `now_ms` is of `lease_ms`."""
        now = self.lease_ms() if now_ms is None else now_ms
        return lease.is_void(now, self.owner, served=self.database.lease_now is not None)

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
            case float() if not isfinite(value):
                return None  # No JSON holds it, and not every database takes it for one.
            case _:
                return value

    def lock_file(self, goal: int, fence: int) -> Path:
        return self.database.locks() / f"{goal}.{fence}"

    def close(self) -> None:
        """What is in use just now, such as for a sign of life, is closed as soon as it comes back."""
        for one in (self._read, *self._writers):
            event.listen(one.pool, "checkin", lambda _dbapi, record: record.invalidate())
            one.dispose()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
