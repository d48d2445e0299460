"""Transactions of many threads on one file: each gets its turn, and a connection that failed is not used again."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from goalmode.errors import StoreBusy
from goalmode.state import tables as t
from goalmode.state.sqlite import READERS, Connection
from goalmode.state.store import Store

pytestmark = pytest.mark.sqlite

THREADS = 3 * READERS


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Store]:
    with Store(str(tmp_path / "goals.sqlite"), busy_seconds=60) as store:
        yield store


def write(store: Store, kind: str = "told", *, durable: bool = False) -> None:
    with store.writing(durable=durable) as connection:
        connection.execute(sa.insert(t.events).values(kind=kind, data={}, at=store.clock.now()))


def count(store: Store) -> int:
    with store.reading() as connection:
        return int(connection.execute(sa.select(sa.func.count()).select_from(t.events)).scalar_one())


def test_more_threads_than_connections_all_get_their_turn(file: Store) -> None:
    """Also while others go on with what they had: nobody waits for a connection that never comes back."""
    begin = threading.Barrier(THREADS)

    def work(number: int) -> int:
        begin.wait(60)
        for turn in range(5):
            write(file, durable=bool((number + turn) % 2))
            with file.reading() as connection:
                connection.execute(sa.select(t.events.c.id).limit(1)).all()
        return number

    with ThreadPoolExecutor(THREADS) as pool:
        assert sorted(pool.map(work, range(THREADS))) == list(range(THREADS))
    assert count(file) == THREADS * 5


def test_one_that_waits_too_long_is_told(tmp_path: Path) -> None:
    """In one line, with nothing written; the next goes on."""
    with Store(str(tmp_path / "goals.sqlite"), busy_seconds=0.05) as store, ThreadPoolExecutor(1) as other:
        with store.writing(), pytest.raises(StoreBusy, match="too many threads wait"):
            other.submit(write, store, durable=True).result(60)
        other.submit(write, store, durable=True).result(60)

        assert count(store) == 1


def test_what_failed_leaves_nothing_and_takes_its_connection_along(file: Store) -> None:
    """The next transaction begins on another connection."""
    seen: list[object] = []
    for fails in (False, True, False):
        try:
            with file.writing() as connection:
                seen.append(connection.connection.dbapi_connection)
                connection.execute(sa.insert(t.events).values(kind="x", data={}, at=file.clock.now()))
                if fails:
                    raise KeyError("in the middle")
        except KeyError:
            pass

    assert seen[0] is seen[1]
    assert seen[1] is not seen[2]
    assert isinstance(seen[1], Connection)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        seen[1].execute("SELECT 1")
    assert count(file) == 2


def test_reading_within_reading_and_writing(file: Store) -> None:
    """Each is a view of its own: what is not committed is not seen."""
    with file.writing() as connection:
        connection.execute(sa.insert(t.events).values(kind="x", data={}, at=file.clock.now()))
        with file.reading():
            assert count(file) == 0
    assert count(file) == 1


def test_no_view_outlives_its_transaction(file: Store) -> None:
    """A kept connection that still held one would keep the log from ever being checkpointed."""
    assert count(file) == 0
    for _ in range(3):
        write(file)
    with file.writing() as connection:
        driver = connection.connection.dbapi_connection
        assert isinstance(driver, Connection)
    busy, in_log, moved = driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    assert (busy, in_log, moved) == (0, 0, 0)


def test_a_store_that_is_closed_meanwhile_is_closed_when_its_user_is_done(tmp_path: Path) -> None:
    """And what was in the middle is committed."""
    store = Store(str(tmp_path / "goals.sqlite"))
    with store.writing() as connection:
        connection.execute(sa.insert(t.events).values(kind="x", data={}, at=store.clock.now()))
        store.close()
        driver = connection.connection.dbapi_connection

    with pytest.raises(Exception, match="closed"):
        driver.execute("SELECT 1")  # type: ignore[union-attr]
    with Store(str(tmp_path / "goals.sqlite")) as again:
        assert count(again) == 1
