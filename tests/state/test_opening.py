"""Opening a store: for its user alone, or one clear line that names the file, and the file as it was."""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest

from goalmode.domain.exits import GoalStatus
from goalmode.errors import BadInput, StoreError, StoreNewer
from goalmode.state import goals, migrate, wakeups
from goalmode.state.engine import database_at
from goalmode.state.locks import LockGate
from goalmode.state.store import Store, default_url
from tests.state.builders import claim, close, new_goal, rows


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def refusal(path: Path, *, readonly: bool = False, kind: type[StoreError] = StoreError) -> str:
    """The one line with which the store is refused; the file is as it was."""
    before = digest(path) if path.is_file() else None
    with pytest.raises(kind) as caught:
        Store(str(path), readonly=readonly, busy_seconds=0.1)
    if before is not None:
        assert digest(path) == before
    line = str(caught.value)
    assert "\n" not in line
    assert str(path) in line
    return line


def test_everything_the_store_makes_is_for_its_user_alone(tmp_path: Path) -> None:
    """0600 for the database, its side files and its lock files, 0700 for the directories, whatever the umask."""
    path = tmp_path / "data" / "goals.sqlite"
    old = os.umask(0)
    try:
        with Store(str(path)) as store:
            goal = new_goal(store)
            claimed = claim(store, goal)
            lock = store.lock_file(goal.id, claimed.fence)
            with LockGate(lock, 1, lambda: wakeups.current_fence(store, goal.id)).enter("c0"):
                made = {p.relative_to(tmp_path).as_posix(): mode(p) for p in tmp_path.rglob("*")}
    finally:
        os.umask(old)

    assert made == {
        "data": 0o700,
        "data/goals.sqlite": 0o600,
        "data/goals.sqlite-wal": 0o600,
        "data/goals.sqlite-shm": 0o600,
        "data/goals.sqlite-locks": 0o700,
        "data/goals.sqlite-locks/1.1": 0o600,
    }


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("sqlite:////var/lib/g.sqlite", "/var/lib/g.sqlite"),
        ("sqlite:///relative.sqlite", "relative.sqlite"),
        ("plain/path.sqlite", "plain/path.sqlite"),
    ],
)
def test_a_store_is_a_url_or_a_path(url: str, expected: str) -> None:
    """`sqlite:///PATH`, or the path alone."""
    assert database_at(url).path == Path(expected)


@pytest.mark.parametrize(
    "url",
    [
        "mysql://u:secret@h/db",
        "postgresql://u:secret@h",
        "postgresql://u:secret@h:x/db",
        ":memory:",
        "sqlite:///",
        "",
    ],
)
def test_what_is_no_store_is_refused(url: str) -> None:
    """Another scheme, no database, or one that would not outlive the process; a password is not repeated."""
    with pytest.raises(BadInput) as caught:
        database_at(url)

    assert "secret" not in str(caught.value)


def test_the_environment_names_the_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """GOALMODE_STORE, else a file in the user's data directory."""
    monkeypatch.setenv("GOALMODE_STORE", "/elsewhere/g.sqlite")
    assert default_url() == "/elsewhere/g.sqlite"

    monkeypatch.delenv("GOALMODE_STORE")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_url() == str(tmp_path / "goalmode" / "goals.sqlite")


def test_a_directory_is_no_store(tmp_path: Path) -> None:
    """Reading or writing."""
    assert "is a directory" in refusal(tmp_path)
    assert "is a directory" in refusal(tmp_path, readonly=True)


def test_a_path_below_a_file_is_no_store(tmp_path: Path) -> None:
    """The directory cannot be made."""
    (tmp_path / "file").touch()

    assert "cannot be created" in refusal(tmp_path / "file" / "goals.sqlite")


def test_a_text_file_is_no_store(tmp_path: Path) -> None:
    """It is not touched."""
    path = tmp_path / "notes.txt"
    path.write_text("dear diary")

    assert "not an SQLite file" in refusal(path)


def test_a_store_that_is_not_there_is_not_made_by_reading(tmp_path: Path) -> None:
    """Reading says so and makes nothing."""
    assert "does not exist" in refusal(tmp_path / "none.sqlite", readonly=True)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_is_prepared_only_by_writing(tmp_path: Path) -> None:
    """Reading names what is missing."""
    path = tmp_path / "empty.sqlite"
    path.touch()

    assert "no schema yet" in refusal(path, readonly=True)
    Store(str(path)).close()
    Store(str(path), readonly=True).close()


def test_an_sqlite_file_of_something_else_is_no_store(tmp_path: Path) -> None:
    """Nothing is added to it."""
    path = tmp_path / "other.sqlite"
    rows(path, "CREATE TABLE songs (id INTEGER)")

    assert "an SQLite file of something else" in refusal(path)
    assert rows(path, "SELECT name FROM sqlite_master") == ["songs"]


@pytest.mark.sqlite
def test_a_corrupt_header_is_named(store: Store) -> None:
    """What follows the magic is no database."""
    store.close()
    content = store.path.read_bytes()
    store.path.write_bytes(content[:16] + b"\xff" * 500 + content[516:])

    assert "is corrupt" in refusal(store.path)


@pytest.mark.sqlite
def test_corruption_inside_is_named_when_it_is_met(store: Store) -> None:
    """One line with the file and what to do."""
    new_goal(store)
    store.close()
    pages = store.path.stat().st_size // 1024
    rows(store, "PRAGMA wal_checkpoint(TRUNCATE)")
    with store.path.open("r+b") as file:
        for page in range(2, pages):
            file.seek(page * 1024)
            file.write(b"\xff" * 1024)

    assert "restore a backup" in refusal(store.path)
    assert "restore a backup" in refusal(store.path, readonly=True)


@pytest.mark.parametrize("found", ["9999", "nonsense"])
@pytest.mark.sqlite
def test_a_newer_store_is_refused_with_both_versions(store: Store, found: str) -> None:
    """B142: reading and writing, one line says that it is newer and what to do; the file is as it was."""
    store.close()
    rows(store, "UPDATE alembic_version SET version_num = ?", found)
    rows(store, "PRAGMA wal_checkpoint(TRUNCATE)")

    for readonly in (False, True):
        line = refusal(store.path, readonly=readonly, kind=StoreNewer)
        assert found in line
        assert migrate.HEAD in line
        assert "upgrade goalmode" in line


@pytest.mark.sqlite
def test_reading_changes_no_row_and_not_the_file(store: Store) -> None:
    """B16: a store that is only read is byte for byte what it was."""
    goal = new_goal(store)
    close(store, claim(store, goal))
    store.close()
    before = digest(store.path)

    with Store(str(store.path), readonly=True) as reader:
        assert goals.get(reader, goal.id).status is GoalStatus.ACTIVE
        goals.every(reader)

    assert digest(store.path) == before
