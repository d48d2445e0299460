"""Two stores on one file in one process: neither takes from the other the locks by which other processes know of it."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from goalmode.errors import StoreError
from goalmode.state import sqlite
from goalmode.state.store import Store

pytestmark = pytest.mark.sqlite

_OTHER = """
import sys
import sqlalchemy as sa
from goalmode.state import tables as t
from goalmode.state.store import Store
with Store(sys.argv[1]) as store, store.writing() as connection:
    connection.execute(sa.insert(t.events).values(kind="other", data={}, at=store.clock.now()))
with Store(sys.argv[1], readonly=True) as store, store.reading() as connection:
    print(connection.execute(sa.text("SELECT count(*) FROM events")).scalar())
"""


def elsewhere(url: str) -> int:
    """Another process writes one event and closes the store; returns how many events it sees."""
    done = subprocess.run([sys.executable, "-c", _OTHER, url], capture_output=True, text=True, check=True)
    return int(done.stdout)


def write(store: Store) -> None:
    import sqlalchemy as sa

    from goalmode.state import tables as t

    with store.writing() as connection:
        connection.execute(sa.insert(t.events).values(kind="own", data={}, at=store.clock.now()))


@pytest.mark.long
def test_a_store_that_is_closed_leaves_the_others_locks(tmp_path: Path) -> None:
    """What is committed after that is seen by everybody: the other process has not deleted the WAL beneath it."""
    url = str(tmp_path / "goals.sqlite")
    with Store(url) as first:
        write(first)
        Store(url, readonly=True).close()
        assert elsewhere(url) == 2
        write(first)
        Store(url).close()

        assert elsewhere(url) == 4


def test_what_is_no_store_is_refused_though_it_has_a_stores_place(tmp_path: Path) -> None:
    """A file is looked at again once nobody has it open any more."""
    path = tmp_path / "goals.sqlite"
    Store(str(path)).close()
    gc.collect()
    for file in tmp_path.glob("goals.sqlite*"):
        if file.is_file():
            file.unlink()
    path.write_bytes(b"something else" * 100)

    with pytest.raises(StoreError, match="not an SQLite file"):
        Store(str(path))
    gc.collect()
    assert sqlite._identity(path) not in sqlite._in_use
