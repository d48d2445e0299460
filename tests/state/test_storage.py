"""A store that is locked, full or read-only: bounded waits, clear lines, and nothing half-written."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from goalmode.errors import StoreBusy, StoreError
from goalmode.state import goals, wakeups
from goalmode.state.store import Store
from tests.state.builders import claim, new_goal, rows, take_turn
from tests.state.processes import another

pytestmark = pytest.mark.sqlite


def blocker(pipe: Connection, path: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        pipe.send("locked")
        pipe.recv()
        connection.execute("COMMIT")
        pipe.send("free")


def test_a_store_that_stays_locked_is_an_error_that_names_it(store: Store) -> None:
    """B53: after the bounded wait the line says that it is locked and where it is, and nothing was written."""
    goal = new_goal(store)
    with (
        another(blocker, str(store.path)) as other,
        Store(str(store.path), clock=store.clock, busy_seconds=0.2) as impatient,
    ):
        assert other.hear() == "locked"
        started = time.monotonic()
        with pytest.raises(StoreBusy, match="locked by another process") as caught:
            claim(impatient, goal)

        assert 0.1 < time.monotonic() - started < 10
        assert str(store.path) in str(caught.value)
        assert goals.get(impatient, goal.id).fence == 0  # Reading goes on.


def test_a_store_that_is_locked_for_a_while_is_waited_out(store: Store) -> None:
    """B53: a writer that finds it busy waits, and loses nothing."""
    goal, done = new_goal(store), []
    with another(blocker, str(store.path)) as other:
        assert other.hear() == "locked"
        thread = threading.Thread(target=lambda: done.append(claim(store, goal)))
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
        other.tell()
        thread.join()

    assert [c.seq for c in done] == [1]


@pytest.mark.long
def test_signs_of_life_do_not_wait_until_the_lease_is_over(store: Store) -> None:
    """A heartbeat on a locked store fails within seconds: it must act before the lease runs out, not after."""
    claimed = claim(store, new_goal(store))
    with another(blocker, str(store.path)) as other:
        assert other.hear() == "locked"
        started = time.monotonic()
        with pytest.raises(StoreBusy):
            wakeups.renew(store, [claimed])

    assert time.monotonic() - started < 15


@contextmanager
def no_room(path: Path, bytes_left: int) -> Iterator[None]:
    """Files cannot grow beyond what the store's have now plus `bytes_left`, as on a full disk."""
    largest = max(p.stat().st_size for p in path.parent.glob(f"{path.name}*") if p.is_file())
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest + bytes_left, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_disk_without_room_is_an_error_and_nothing_is_half_written(store: Store) -> None:
    """B55: the first commit that fails names the store; with room again the goal goes on where it was."""
    goal = new_goal(store)
    claimed = claim(store, goal)
    done, line = 0, ""
    with no_room(store.path, 20_000):
        try:
            for done in range(1_000):
                take_turn(store, claimed, done + 1)
        except StoreError as error:
            line = str(error)

    assert str(store.path) in line
    assert "disk" in line
    assert rows(store, "PRAGMA integrity_check") == ["ok"]
    assert goals.get(store, goal.id).spent.turns in (done, done + 1)
    seqs = rows(store, "SELECT seq FROM turns ORDER BY seq")
    assert seqs == list(range(1, len(seqs) + 1))
    if len(seqs) > done:
        rows(store, "DELETE FROM tool_calls WHERE outcome IS NULL")
        rows(store, "DELETE FROM turns WHERE state = 'open'")
    take_turn(store, claimed, done + 2)


def test_a_full_database_is_called_a_full_disk(store: Store) -> None:
    """SQLite's own word for it, as a full file system gives it."""
    with store.writing() as connection:
        count = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {count}")

    with pytest.raises(StoreError, match="the disk is full"), store.writing() as connection:
        connection.exec_driver_sql(
            "INSERT INTO bodies (codec, raw_len, data) VALUES ('raw', 1, zeroblob(99999))"
        )


_AS_NOBODY = textwrap.dedent(
    """
    import os, sys
    from goalmode.errors import StoreError
    from goalmode.state import goals
    from goalmode.state.store import Store
    with Store(sys.argv[3], readonly=True) as store:
        goals.every(store)  # Loads what nobody may not be allowed to read.
    if os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    try:
        with Store(sys.argv[1], readonly=sys.argv[2] == "read") as store:
            print([goal.objective for goal in goals.every(store)])
    except StoreError as error:
        print(error)
    """
)


@pytest.fixture
def unwritable(empty_store: Path) -> Iterator[Path]:
    """A store in a directory that nobody may write to, where every user may come."""
    base = Path("/tmp") / f"goalmode-unwritable-{os.getpid()}"
    base.mkdir()
    path = base / "goals.sqlite"
    shutil.copy(empty_store, path)
    with Store(str(path)) as made:
        new_goal(made, "Committed work.")
    path.chmod(0o444)
    base.chmod(0o555)
    yield path
    base.chmod(0o755)
    shutil.rmtree(base)


def as_nobody(path: Path, how: str, readable: Store) -> str:
    command = [sys.executable, "-c", _AS_NOBODY, str(path), how, str(readable.path)]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd="/").stdout.strip()


@pytest.mark.long
def test_a_read_only_store_is_read_and_not_run(unwritable: Path, store: Store) -> None:
    """B57: writing is refused with the file and the fix; reading shows what is committed and leaves nothing behind."""
    assert as_nobody(unwritable, "write", store) == (
        f"store {unwritable}: is read-only; make the file and its directory writable, or use --store"
    )
    assert as_nobody(unwritable, "read", store) == "['Committed work.']"
    assert [p.name for p in unwritable.parent.iterdir()] == ["goals.sqlite"]


@pytest.mark.long
def test_a_read_only_store_with_its_side_files_is_read(unwritable: Path, store: Store) -> None:
    """B57: with a write-ahead log beside it that holds the newest commits, those are shown too."""
    unwritable.chmod(0o644)
    unwritable.parent.chmod(0o755)
    with Store(str(unwritable)) as other:
        new_goal(other, "Newer work.")
        beside = [unwritable.with_name(f"{unwritable.name}{end}") for end in ("-wal", "-shm")]
        for path in (unwritable, *beside):
            path.chmod(0o444)
        unwritable.parent.chmod(0o555)

        assert as_nobody(unwritable, "read", store) == "['Newer work.', 'Committed work.']"


def test_a_store_that_is_deleted_under_us_is_an_error_that_names_it(store: Store) -> None:
    """B55: nothing is written to a file that nobody can see any more; back in its place, it is gone on with."""
    goal = new_goal(store)
    claimed, away = claim(store, goal), store.path.with_name("away")
    take_turn(store, claimed, 1)
    store.path.rename(away)

    for use in (lambda: take_turn(store, claimed, 2), lambda: goals.get(store, goal.id)):
        with pytest.raises(
            StoreError, match=f"store {store.path}: was deleted or replaced while it was open"
        ):
            use()
    with pytest.raises(StoreError, match="unable to open database file"):
        take_turn(store, claimed, 2)
    assert not store.path.exists()

    away.rename(store.path)
    take_turn(store, claimed, 2)
    assert goals.get(store, goal.id).spent.turns == 2
    assert rows(store, "PRAGMA integrity_check") == ["ok"]


def test_a_store_that_is_replaced_under_us_is_not_written_to_beside_the_new_one(
    store: Store, tmp_path: Path
) -> None:
    """A backup that was put back: what was begun in the other store ends, what is begun now is in this one."""
    goal = new_goal(store)
    copy = tmp_path / "copy.sqlite"
    store.database.copy_to(copy)
    claimed = claim(store, goal)
    store.path.unlink()
    for beside in ("-wal", "-shm"):
        store.path.with_name(store.path.name + beside).unlink()
    copy.rename(store.path)

    with pytest.raises(StoreError, match="was deleted or replaced"):
        take_turn(store, claimed, 1)

    assert rows(store, "SELECT COUNT(*) FROM turns") == [0]
    with Store(str(store.path), clock=store.clock) as again:
        take_turn(again, claim(again, goals.get(again, goal.id)), 1)
    assert rows(store, "SELECT COUNT(*) FROM turns") == [1]
    assert rows(store, "PRAGMA integrity_check") == ["ok"]
