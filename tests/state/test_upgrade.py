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

_SECOND = """
revision, down_revision, branch_labels, depends_on = "0002", "0001", None, None
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
    """From here on this goalmode has a second migration; returns its file."""
    scripts = tmp_path / "scripts"
    shutil.copytree(migrate.SCRIPTS, scripts, ignore=shutil.ignore_patterns("__pycache__"))
    second = scripts / "versions" / "0002_newer.py"
    second.write_text(_SECOND.format(more="pass"))
    monkeypatch.setattr(migrate, "SCRIPTS", scripts)
    monkeypatch.setattr(migrate, "HEAD", "0002")
    return second


def test_opening_for_writing_upgrades_after_a_backup(store: Store, newer: Path) -> None:
    """The goals stay, the user is told, and the backup beside it is the store as it was, for its user alone."""
    goal = new_goal(store)
    close(store, claim(store, goal))
    before = dump(store)

    with Store(str(store.path)) as upgraded:
        assert goals.get(upgraded, goal.id).status_detail == "upgraded"
        [notice] = upgraded.notices

    backup = store.path.with_name("goals.sqlite.0001.backup")
    assert notice == f"store upgraded from schema 0001 to 0002; backup: {backup}"
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert dump(backup) == before
    with Store(str(store.path)) as again:
        assert again.notices == []


def test_a_second_backup_overwrites_none(store: Store, newer: Path) -> None:
    """Each upgrade keeps its own."""
    first = store.path.with_name("goals.sqlite.0001.backup")
    first.write_text("an earlier one")

    Store(str(store.path)).close()

    assert first.read_text() == "an earlier one"
    assert store.path.with_name("goals.sqlite.0001.backup-2").exists()


def test_a_backup_holds_what_is_only_in_the_log(store: Store, newer: Path) -> None:
    """Commits that are still in the write-ahead log are in the backup: a plain copy would have lost them."""
    goal = new_goal(store)
    assert store.path.with_name("goals.sqlite-wal").stat().st_size > 0

    Store(str(store.path)).close()

    assert rows(store.path.with_name("goals.sqlite.0001.backup"), "SELECT uid FROM goals") == [goal.uid]


def test_reading_never_migrates(store: Store, newer: Path) -> None:
    """It says what is needed, and leaves schema and directory as they were."""
    store.close()

    with pytest.raises(StoreError, match="has schema 0001, 0002 is needed"):
        Store(str(store.path), readonly=True)

    assert rows(store, "SELECT version_num FROM alembic_version") == ["0001"]
    assert list(store.path.parent.glob("*.backup*")) == []


def test_a_store_is_not_upgraded_under_a_living_wakeup(store: Store, newer: Path, clock: ManualClock) -> None:
    """Its process still writes the old schema; it is named, and no backup is made. Once the lease is over it works."""
    claim(store, new_goal(store))

    with pytest.raises(StoreError, match="cannot be upgraded while") as caught:
        Store(str(store.path), clock=clock)
    assert store.owner.name in str(caught.value)
    assert list(store.path.parent.glob("*.backup*")) == []

    clock.advance(LEASE_MS / 1000 + 1)
    Store(str(store.path), clock=clock).close()


def test_a_migration_that_fails_leaves_the_store_as_it_was(store: Store, newer: Path) -> None:
    """Schema changes roll back with everything else."""
    new_goal(store)
    newer.write_text(_SECOND.format(more='op.execute("NONSENSE")'))
    before = dump(store)

    with pytest.raises(StoreError, match="NONSENSE"):
        Store(str(store.path))

    assert dump(store) == before


def test_a_migration_that_breaks_a_reference_is_rolled_back(store: Store, newer: Path) -> None:
    """Foreign keys are off while tables are rebuilt, so they are checked before the commit."""
    goal = new_goal(store)
    close(store, claim(store, goal))
    newer.write_text(_SECOND.format(more='op.execute("DELETE FROM goals")'))
    before = dump(store)

    with pytest.raises(Exception, match="foreign key"):
        Store(str(store.path))

    assert dump(store) == before
