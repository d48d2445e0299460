"""A store in a database of a PostgreSQL server: how it is reached, and what its errors mean."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import ArgumentError, DBAPIError, TimeoutError
from sqlalchemy.util import LRUCache

from goalmode.errors import BadInput, NotAllowed, StoreBusy, StoreError

CONNECT_SECONDS = 10
"""How long one attempt to reach the server may take."""

IDLE_SECONDS = 30
"""After which the server ends a transaction in which nothing happens: a process that was stopped in the middle of one
must not keep a goal's row from whoever takes the goal over."""

MAX_CONNECTIONS = 40
"""Of one engine: as many as threads may call a store at once."""

_SCHEME = "postgresql+psycopg"
_SECRETS = ("password", "sslpassword")
_BUSY = {"55P03", "40P01", "40001", "53300"}
"""Lock timeout, deadlock, serialization failure, too many connections."""


_NOT_TOLD = {"42501", "42883"}
"""Insufficient privilege, undefined function: a server that does not tell what it is. Then the URL has to do."""

_IDENTITY = """
    SELECT system_identifier, d.oid, current_schema() FROM pg_control_system(), pg_database d
    WHERE d.datname = current_database()
"""


@dataclass(frozen=True, slots=True)
class _Known:
    """What the first connection to a database has told, and the statements that were made into SQL for it since.

    Attributes:
        identity: the same for every way of naming the database.
    """

    dialect: sa.Dialect
    identity: tuple[Any, ...]
    compiled: LRUCache[Any, Any] = field(default_factory=lambda: LRUCache(500))


_known: dict[sa.URL, _Known] = {}
"""For every engine of this process: to find it out, and to compile statements, takes longer than most of them do."""


class PostgresDatabase:
    """See `goalmode.state.engine.Database`."""

    path = None

    def __init__(self, url: sa.URL) -> None:
        self.url = url
        self._reached = False
        self._writers: dict[float, sa.Engine] = {}

    @classmethod
    def at(cls, text: str) -> PostgresDatabase:
        """The database that the URL `text` names.

        Raises:
            BadInput: it is no such URL, or names no database; nothing of it is repeated, since it may hold a password.
        """
        expected = f"{_SCHEME}://USER@HOST/DATABASE"
        try:
            url = sa.make_url(text)
        except (ArgumentError, ValueError):
            raise BadInput("store", f"{_SCHEME}://…", expected) from None
        if not url.database:
            raise BadInput("store", f"{_SCHEME}://…", f"{expected}; it names no database")
        return cls(url.set(drivername=_SCHEME))

    @property
    def name(self) -> str:
        """The URL without any password: as good as the whole one where PGPASSWORD or ~/.pgpass holds it."""
        open_query = {name: value for name, value in self.url.query.items() if name not in _SECRETS}
        return self.url._replace(password=None, query=sa.util.immutabledict(open_query)).render_as_string()

    @property
    def lease_now(self) -> sa.ColumnElement[int]:
        # Not now(): that is when the transaction began.
        return sa.cast(sa.extract("epoch", sa.func.clock_timestamp()) * 1000, sa.BigInteger)

    def is_there(self) -> bool:
        """Whether the database holds a schema of any kind; one that cannot be reached is an error."""
        with self._alone() as connection:
            return bool(sa.inspect(connection).get_table_names())

    def prepare(self, *, writable: bool) -> None:
        """Nothing to do: the first connection tells what is wrong, and a standby refuses the first write."""

    def reading(self, *, busy_seconds: float) -> sa.Engine:
        # With connections of its own: one that may write again would be told so, whatever the server's default is.
        return self._pooled(busy_seconds, "REPEATABLE READ", readonly=True)

    def writing(self, *, durable: bool, busy_seconds: float) -> sa.Engine:
        """READ COMMITTED: whoever reads before writing locks the goal first (`goalmode.state.exclusion`).

        Every commit is durable, also those that need not be in a file: owners outlive the server here, and a claim that
        a crash of the server has undone would be made again, with the same fence, while its first owner goes on.
        """
        if busy_seconds not in self._writers:
            self._writers[busy_seconds] = self._pooled(busy_seconds, "READ COMMITTED")
        return self._writers[busy_seconds]

    @contextmanager
    def plain_errors(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            raise self._translate(error) from None
        except TimeoutError:
            raise StoreBusy(f"store {self.name}: all {MAX_CONNECTIONS} connections are in use") from None
        except ModuleNotFoundError as error:
            if error.name != "psycopg":
                raise
            raise StoreError(
                f"store {self.name}: needs the driver psycopg: pip install 'goalmode[postgres]'"
            ) from None

    def locks(self) -> Path:
        return self._locks

    def copy_to(self, target: Path) -> None:
        raise NotAllowed(
            f"store {self.name}: a server's database is backed up by its own tools: "
            f"pg_dump --format=custom --file={target} {self.url.database}"
        )

    def faults(self) -> list[str]:
        return []

    def vacuum(self) -> None:
        with self._alone() as connection:
            connection.exec_driver_sql("VACUUM (ANALYZE)")

    def kind(self) -> str:
        with self._alone() as connection:
            return f"PostgreSQL {connection.exec_driver_sql('SHOW server_version').scalar_one()}"

    def size(self) -> int:
        with self._alone() as connection:
            found = connection.exec_driver_sql("SELECT pg_database_size(current_database())").scalar_one()
            return int(found)

    @cached_property
    def _locks(self) -> Path:
        """The same for every way of naming the database: they are told apart by what the server says it is."""
        import platformdirs

        with self.plain_errors():
            identity = "|".join(map(str, self._found_out(CONNECT_SECONDS).identity))
        digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
        return Path(platformdirs.user_state_dir("goalmode", appauthor=False)) / "locks" / digest

    @contextmanager
    def _alone(self) -> Iterator[sa.Connection]:
        """One connection, closed afterwards."""
        with self.plain_errors():
            engine = self._engine(CONNECT_SECONDS, "AUTOCOMMIT", sa.NullPool)
            with engine.connect() as connection:
                yield connection

    def _pooled(self, busy_seconds: float, isolation: str, *, readonly: bool = False) -> sa.Engine:
        return self._engine(
            busy_seconds,
            isolation,
            sa.QueuePool,
            readonly=readonly,
            pre_ping=True,
            timeout=busy_seconds,
            max_overflow=MAX_CONNECTIONS - 5,
        )

    def _engine(
        self,
        busy_seconds: float,
        isolation: str,
        pool: type[sa.Pool],
        *,
        readonly: bool = False,
        **options: Any,
    ) -> sa.Engine:
        with self.plain_errors():
            known = self._found_out(busy_seconds)
        dialect = known.dialect
        engine = sa.Engine(
            pool(lambda: self._connect(dialect, busy_seconds), dialect=dialect, **options),
            dialect,
            self.url,
            execution_options={"compiled_cache": known.compiled},
            hide_parameters=True,
        )

        @event.listens_for(engine, "connect")
        def set_up(dbapi: Any, _record: object) -> None:
            dialect.set_isolation_level(dbapi, isolation)  # type: ignore[arg-type]
            with closing(dbapi.cursor()) as cursor:
                cursor.execute(
                    f"SET lock_timeout = {max(1, int(busy_seconds * 1000))};"
                    f"SET idle_in_transaction_session_timeout = {IDLE_SECONDS * 1000}"
                )
            if not dbapi.autocommit:
                dbapi.commit()
            dbapi.read_only = readonly or None  # Else as the server has it.

        return engine

    def _found_out(self, busy_seconds: float) -> _Known:
        if self.url not in _known:
            engine: sa.Engine = sa.create_engine(
                self.url,
                creator=lambda: self._connect(engine.dialect, busy_seconds),
                poolclass=sa.NullPool,
                use_native_hstore=False,  # Saves a question.
            )
            with engine.connect() as connection:
                try:
                    identity = tuple(connection.exec_driver_sql(_IDENTITY).one())
                except DBAPIError as error:
                    if getattr(error.orig, "sqlstate", None) not in _NOT_TOLD:
                        raise
                    identity = (self.url.host, self.url.port, self.url.database)
            _known[self.url] = _Known(engine.dialect, identity)
        return _known[self.url]

    def _connect(self, dialect: sa.Dialect, busy_seconds: float) -> Any:
        """Reach the server. One that was there before may be starting again: it is waited for."""
        arguments, named = dialect.create_connect_args(self.url)
        timeout = max(2, min(CONNECT_SECONDS, int(busy_seconds)))
        named.update(
            connect_timeout=timeout,
            application_name="goalmode",
            keepalives_idle=IDLE_SECONDS,
            tcp_user_timeout=IDLE_SECONDS * 1000,
        )
        deadline = time.monotonic() + busy_seconds - timeout
        while True:
            try:
                connection = dialect.connect(*arguments, **named)
            except dialect.loaded_dbapi.OperationalError:
                if not self._reached or time.monotonic() >= deadline:
                    raise
                time.sleep(0.2)
            else:
                self._reached = True
                return connection

    def _translate(self, error: DBAPIError) -> StoreError:
        state = getattr(error.orig, "sqlstate", None)
        # Not the details of what the server says: they hold the values of rows.
        said = getattr(getattr(error.orig, "diag", None), "message_primary", None) or str(error.orig)
        text = self._without_secrets(" ".join(said.split()))
        if state in _BUSY:
            return StoreBusy(f"store {self.name}: is busy ({text})")
        if state == "25006":
            return StoreError(f"store {self.name}: is read-only ({text})")
        if state == "53100":
            return StoreError(f"store {self.name}: the server's disk is full ({text})")
        if state in ("42P01", "42703"):
            return StoreError(f"store {self.name}: is not a goalmode store of this version ({text})")
        if error.connection_invalidated:
            return StoreError(f"store {self.name}: the connection was lost ({text})")
        return StoreError(f"store {self.name}: {text}")

    def _without_secrets(self, text: str) -> str:
        hidden = [self.url.password, *(self.url.query.get(name) for name in _SECRETS)]
        for secret in filter(None, hidden):
            for form in (str(secret), quote(str(secret), safe=""), quote_plus(str(secret))):
                text = text.replace(form, "***")
        return text
