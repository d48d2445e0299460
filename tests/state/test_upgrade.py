"""Bringing an older store up to date: only for writing, with a backup, and never under a living wakeup."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest

from goalmode.errors import StoreError
from goalmode.state import goals, migrate
from goalmode.state.owner import LEASE_MS
from goalmode.state.store import Store
from goalmode.testing import ManualClock
from tests.state.builders import claim, close, dump, new_goal, rows

OLD = migrate.HEAD
NEXT = f"{int(OLD) + 1:04}"

_SECOND = """
revision, down_revision, branch_labels, depends_on = "{next}", "{head}", None, None
from alembic import op

def upgrade():
    op.execute("CREATE TABLE newer (id INTEGER PRIMARY KEY)")
    op.execute("UPDATE goals SET status_detail = 'upgraded'")
    {more}

def downgrade():
    op.drop_table("newer")
"""


@pytest.fixture
def newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """From here on this goalmode has one more migration; returns its file."""
    scripts = tmp_path / "scripts"
    shutil.copytree(migrate.SCRIPTS, scripts, ignore=shutil.ignore_patterns("__pycache__"))
    second = scripts / "versions" / f"{NEXT}_newer.py"
    second.write_text(_migration("pass"))
    monkeypatch.setattr(migrate, "SCRIPTS", scripts)
    monkeypatch.setattr(migrate, "HEAD", NEXT)
    return second


def backups(store: Store) -> list[Path]:
    return [] if store.path is None else list(store.path.parent.glob("*.backup*"))


def _migration(more: str) -> str:
    return _SECOND.format(head=OLD, next=NEXT, more=more)


@pytest.mark.sqlite
def test_opening_for_writing_upgrades_after_a_backup(store: Store, newer: Path) -> None:
    """The goals stay, the user is told, and the backup beside it is the store as it was, for its user alone."""
    goal = new_goal(store)
    close(store, claim(store, goal))
    before = dump(store)

    with Store(store.url) as upgraded:
        assert goals.get(upgraded, goal.id).status_detail == "upgraded"
        [notice] = upgraded.notices

    backup = store.path.with_name(f"goals.sqlite.{OLD}.backup")
    assert notice == f"store upgraded from schema {OLD} to {NEXT}; backup: {backup}"
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert dump(backup) == before
    with Store(store.url) as again:
        assert again.notices == []


@pytest.mark.sqlite
def test_a_second_backup_overwrites_none(store: Store, newer: Path) -> None:
    """Each upgrade keeps its own."""
    first = store.path.with_name(f"goals.sqlite.{OLD}.backup")
    first.write_text("an earlier one")

    Store(store.url).close()

    assert first.read_text() == "an earlier one"
    assert store.path.with_name(f"goals.sqlite.{OLD}.backup-2").exists()


@pytest.mark.sqlite
def test_a_backup_holds_what_is_only_in_the_log(store: Store, newer: Path) -> None:
    """Commits that are still in the write-ahead log are in the backup: a plain copy would have lost them."""
    goal = new_goal(store)
    assert store.path.with_name("goals.sqlite-wal").stat().st_size > 0

    Store(store.url).close()

    assert rows(store.path.with_name(f"goals.sqlite.{OLD}.backup"), "SELECT uid FROM goals") == [goal.uid]


def test_reading_never_migrates(store: Store, newer: Path) -> None:
    """It says what is needed, and leaves schema and directory as they were."""
    store.close()

    with pytest.raises(StoreError, match=f"has schema {OLD}, {NEXT} is needed"):
        Store(store.url, readonly=True)

    assert rows(store, "SELECT version_num FROM alembic_version") == [OLD]
    assert backups(store) == []


def test_a_store_is_not_upgraded_under_a_living_wakeup(store: Store, newer: Path, clock: ManualClock) -> None:
    """Its process still writes the old schema; it is named, and no backup is made. Once the lease is over it works."""
    claim(store, new_goal(store))

    with pytest.raises(StoreError, match="cannot be upgraded while") as caught:
        Store(store.url, clock=clock)
    assert store.owner.name in str(caught.value)
    assert backups(store) == []

    clock.advance(LEASE_MS / 1000 + 1)
    Store(store.url, clock=clock).close()


def test_a_migration_that_fails_leaves_the_store_as_it_was(store: Store, newer: Path) -> None:
    """Schema changes roll back with everything else."""
    new_goal(store)
    newer.write_text(_migration('op.execute("NONSENSE")'))
    before = dump(store)

    with pytest.raises(StoreError, match="NONSENSE"):
        Store(store.url)

    assert dump(store) == before


@pytest.mark.sqlite
def test_a_migration_that_breaks_a_reference_is_rolled_back(store: Store, newer: Path) -> None:
    """Foreign keys are off while tables are rebuilt, so they are checked before the commit."""
    goal = new_goal(store)
    close(store, claim(store, goal))
    newer.write_text(_migration('op.execute("DELETE FROM goals")'))
    before = dump(store)

    with pytest.raises(Exception, match="foreign key"):
        Store(store.url)

    assert dump(store) == before
