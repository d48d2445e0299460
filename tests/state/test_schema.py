"""The migrations make exactly the tables that the code knows, forwards and backwards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlmodel import SQLModel

from goalmode.domain.exits import ExitReason, GoalStatus
from goalmode.domain.sandbox import SandboxMode
from goalmode.domain.signals import StopReason
from goalmode.errors import StoreError
from goalmode.state import goals, migrate
from goalmode.state.store import Store
from tests.state.builders import claim, close, new_goal, rows


@pytest.fixture
def config(store: Store) -> Config:
    made = Config()
    made.set_main_option("script_location", str(migrate.SCRIPTS))
    made.attributes["engine"] = store.database.writing(durable=True, busy_seconds=5)
    return made


@pytest.fixture
def connection(store: Store) -> Iterator[sa.Connection]:
    opened = store.database.writing(durable=True, busy_seconds=5)
    with opened.connect() as made:
        yield made
    opened.dispose()


def test_the_migrated_store_is_what_the_tables_say(connection: sa.Connection) -> None:
    """No drift: tables, columns, types, indexes and constraints."""
    opts = {
        "compare_type": True,
        "include_name": lambda name, kind, _: kind != "table" or not str(name).startswith("memories_fts"),
    }
    context = MigrationContext.configure(connection, opts=opts)

    assert compare_metadata(context, SQLModel.metadata) == []


@pytest.mark.sqlite
def test_every_check_on_a_stored_word_is_migrated(store: Store) -> None:
    """Alembic compares no CHECKs, so they are compared here: each one of the tables is in the file, word for word."""
    stored = dict(rows(store, "SELECT name, sql FROM sqlite_master WHERE type = 'table'"))

    for table in SQLModel.metadata.tables.values():
        for constraint in table.constraints:
            if isinstance(constraint, sa.CheckConstraint):
                assert str(constraint.sqltext) in stored[table.name], (table.name, constraint.name)


def test_head_is_the_newest_migration(config: Config) -> None:
    """The constant that saves loading alembic is right, and there is one line of history."""
    assert ScriptDirectory.from_config(config).get_heads() == [migrate.HEAD]


@pytest.mark.sqlite
def test_down_and_up_again(store: Store, config: Config) -> None:
    """Every migration can be undone to an empty file, and done again to the same schema."""
    statement = "SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY name"
    before = rows(store, statement)
    store.close()

    command.downgrade(config, "base")
    assert rows(store, "SELECT name FROM sqlite_master WHERE type = 'table'") == ["alembic_version"]

    command.upgrade(config, "head")
    assert rows(store, statement) == before


@pytest.mark.sqlite
def test_wakeups_from_before_there_was_a_sandbox_had_none(store: Store, config: Config) -> None:
    """Their rows say so, and stay as they were."""
    claim(store, new_goal(store))
    statement = "SELECT seq, fence, owner, lease_ms FROM wakeups"
    before = rows(store, statement)
    store.close()

    command.downgrade(config, "0004")
    assert rows(store, statement) == before
    command.upgrade(config, "head")

    assert rows(store, "SELECT sandbox FROM wakeups") == ["none"]
    assert rows(store, statement) == before


@pytest.mark.sqlite
def test_events_from_before_name_their_wakeups_by_number(store: Store, config: Config) -> None:
    """Those of two kinds held ids, which are other numbers from the second goal on; all others stay as they are."""
    for goal in (new_goal(store), new_goal(store)):
        close(store, claim(store, goal))
        claim(store, goals.get(store, goal.id))
    statement = "SELECT goal, wakeup, kind FROM events ORDER BY id"
    store.close()
    command.downgrade(config, "0005")
    for wakeup, kind in ((4, "servers"), (3, "fenced"), (2, "transition"), (1, "servers"), (None, "limits")):
        rows(
            store,
            "INSERT INTO events (goal, wakeup, kind, data, at) VALUES (2, ?, ?, '{}', '')",
            wakeup,
            kind,
        )
    before = rows(store, statement)

    command.upgrade(config, "head")

    named = [
        (2, 2, "servers"),
        (2, 1, "fenced"),
        (2, 2, "transition"),
        (2, None, "servers"),
        (2, None, "limits"),
    ]
    assert rows(store, statement) == named
    command.downgrade(config, "0005")
    assert rows(store, statement) == [*before[:3], (2, None, "servers"), before[-1]]


def test_nothing_in_the_tables_is_for_sqlite_alone() -> None:
    """Every table and index compiles for PostgreSQL, with JSONB and partial indexes."""
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]

    text = "\n".join(
        str(statement.compile(dialect=dialect))
        for table in SQLModel.metadata.sorted_tables
        for statement in (CreateTable(table), *map(CreateIndex, sorted(table.indexes, key=str)))
    )

    assert "JSONB" in text
    assert text.count("WHERE exit_reason IS NULL") == 1
    assert "BIGSERIAL" in text


@pytest.mark.parametrize(
    ("table", "column", "words"),
    [
        ("goals", "status", GoalStatus),
        ("wakeups", "exit_reason", ExitReason),
        ("wakeups", "sandbox", SandboxMode),
        ("turns", "stop_reason", StopReason),
    ],
)
def test_unknown_words_are_refused_by_the_database(store: Store, table: str, column: str, words: Any) -> None:
    """Every word of the closed list fits, and no other does."""
    goal = new_goal(store)
    claim(store, goal)
    rows(
        store,
        "INSERT INTO turns SELECT 1, 1, 1, 'work', 'open', 'END_TURN', NULL, NULL, '', '', '', NULL, '',"
        " started_at, NULL, 0, 0, 0, 0, false, NULL, NULL, NULL, 0, NULL FROM wakeups",
    )

    for word in words:
        rows(store, f"UPDATE {table} SET {column} = ?", word.value)
    with pytest.raises(StoreError, match=r"(?i)check"), store.writing() as connection:
        connection.exec_driver_sql(f"UPDATE {table} SET {column} = 'NONSENSE'")


@pytest.mark.sqlite
def test_the_file_is_laid_out_for_small_commits(store: Store) -> None:
    """WAL, pages of 1 KiB, and one connection for each commit class."""
    found = {}
    for durable in (True, False):
        with store.writing(durable=durable) as connection:
            pragmas = ("journal_mode", "page_size", "foreign_keys", "synchronous")
            found[durable] = [connection.exec_driver_sql(f"PRAGMA {p}").scalar() for p in pragmas]

    assert found == {True: ["wal", 1024, 1, 2], False: ["wal", 1024, 1, 1]}


def test_a_reading_connection_cannot_write(store: Store) -> None:
    """Whatever is tried on it, the database refuses."""
    with pytest.raises(StoreError, match="read-only"), store.reading() as connection:
        connection.exec_driver_sql("DELETE FROM goals")


def test_a_connection_in_use_at_the_end_is_closed_when_it_comes_back(store: Store) -> None:
    """A sign of life may be on its way: its connection must not outlive the store, nor its locks."""
    with store.reading() as connection:
        used = connection.connection.driver_connection
        store.close()
        assert connection.execute(sa.text("SELECT 1")).scalar() == 1

    assert used is not None
    with pytest.raises(Exception, match="closed"):
        used.execute("SELECT 1")


def test_a_transaction_that_fails_leaves_nothing(store: Store) -> None:
    """Tables that it made included."""
    with suppress(ZeroDivisionError), store.writing() as connection:
        connection.exec_driver_sql("CREATE TABLE half (id INTEGER)")
        raise ZeroDivisionError

    with store.reading() as connection:
        assert not sa.inspect(connection).has_table("half")


def test_parameters_are_never_shown(store: Store) -> None:
    """B115: an error of the database names the statement, not the values."""
    with pytest.raises(StoreError) as caught, store.writing() as connection:
        connection.execute(sa.text("INSERT INTO nowhere VALUES (:v)"), {"v": "canary"})

    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_the_store_is_where_the_migrations_are_installed() -> None:
    """They are found beside the package, wherever it is installed."""
    assert (migrate.SCRIPTS / "env.py").is_file()
    assert isinstance(migrate.SCRIPTS, Path)
