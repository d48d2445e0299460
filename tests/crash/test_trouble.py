"""A server whose file is locked, full or gone for a while: it says so in one line, and goes on when it is back."""

from __future__ import annotations

import os
import resource
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.crash.served import BIG, SHORT_LEASE, serving

pytestmark = [pytest.mark.slow, pytest.mark.sqlite]

LOCKED_SECONDS = float(os.environ.get("GOALMODE_CRASH_LOCKED", "30"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "goals.sqlite"


def test_a_lock_for_a_while_is_waited_out(path: Path, tmp_path: Path) -> None:
    """B53: half a minute; nothing is lost and nothing is said, and the wakeup goes on where it was."""
    with serving(str(path), tmp_path, {}) as served:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            time.sleep(LOCKED_SECONDS)
            other.execute("ROLLBACK")

        assert served.finishes() == ["CURRENT_TASK_DONE"]
        assert "locked" not in served.log.read_text()


def test_a_full_disk_is_told_and_gone_on_from(path: Path, tmp_path: Path) -> None:
    """B55: the server lives on; with room again the goal goes on, and what could not be stored did not run."""
    with serving(str(path), tmp_path, SHORT_LEASE) as served:
        beside = path.parent.glob(f"{path.name}*")
        largest = max(file.stat().st_size for file in beside if file.is_file())
        _, hard = resource.prlimit(served.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(served.pid, resource.RLIMIT_FSIZE, (largest + BIG, hard))
        served.gives_up("disk")
        assert str(path) in served.log.read_text()

        resource.prlimit(served.pid, resource.RLIMIT_FSIZE, (hard, hard))
        *interrupted, last = served.finishes()

    assert set(interrupted) == {"INTERRUPTED"}
    assert last == "CURRENT_TASK_DONE"


def test_a_store_that_is_gone_is_told_and_gone_on_from(path: Path, tmp_path: Path) -> None:
    """B55: nothing is written where nobody would see it; with the file back in its place the goal goes on."""
    with serving(str(path), tmp_path, SHORT_LEASE) as served:
        away = path.with_name("away")
        path.rename(away)
        served.gives_up("was deleted or replaced while it was open")
        assert not path.exists()

        away.rename(path)
        *interrupted, last = served.finishes()

    assert set(interrupted) == {"INTERRUPTED"}
    assert last == "CURRENT_TASK_DONE"
