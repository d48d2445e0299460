"""Which schema a store has, and bringing it up to date. Reading never migrates."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import goalmode.migrations
from goalmode.errors import StoreError, StoreNewer
from goalmode.state.engine import open_reading, plain_errors
from goalmode.state.owner import Lease, Owner

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0002"
"""The newest migration. Known without loading alembic, which costs most of a second."""

SCRIPTS = Path(goalmode.migrations.__file__).parent


def revision(path: Path) -> str | None:
    """The store's schema, None for a file without one.

    Raises:
        StoreError: the file cannot be read, or holds tables, but not ours.
    """
    with plain_errors(path), closing(open_reading(path)) as connection:
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")}
        if "alembic_version" in tables:
            row = connection.execute("SELECT version_num FROM alembic_version").fetchone()
            return None if row is None else str(row[0])
    if tables:
        raise StoreError(f"store {path}: is not a goalmode store (an SQLite file of something else)")
    return None


def check_revision(path: Path, found: str | None) -> None:
    """Refuse a store that newer code wrote.

    Raises:
        StoreNewer: with both versions named; the file is as it was.
    """
    if found is not None and found != HEAD and not _is_known(found):
        raise StoreNewer(
            f"store {path}: has schema {found}, this goalmode knows up to {HEAD}; upgrade goalmode to use it"
        )


def upgrade(path: Path, found: str | None, *, here: Owner, lease_ms: int) -> Path | None:
    """Bring the store to the newest schema; returns the backup made before, None for a new file.

    Raises:
        StoreError: a wakeup's lease lives; its process still writes the old schema.
    """
    from alembic import command

    backup = None
    if found is not None:
        _refuse_live_leases(path, here, lease_ms)
        backup = _backup(path, found)
    config = _config()
    config.attributes["path"] = path
    command.upgrade(config, "head")
    return backup


def _is_known(found: str) -> bool:
    from alembic.script import ScriptDirectory
    from alembic.util.exc import CommandError

    try:
        return ScriptDirectory.from_config(_config()).get_revision(found) is not None
    except CommandError:
        return False


def _config() -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
    return config


def _refuse_live_leases(path: Path, here: Owner, now_ms: int) -> None:
    with closing(open_reading(path)) as connection:
        rows = connection.execute(
            "SELECT owner, host_label, pid, pid_start, boot_id, lease_ms FROM wakeups WHERE exit_reason IS NULL"
        ).fetchall()
    live = [row[0] for row in rows if not Lease(Owner(*row[:5]), row[5]).is_void(now_ms, here)]
    if live:
        raise StoreError(
            f"store {path}: cannot be upgraded while {', '.join(live)} runs a wakeup; stop it first"
        )


def _backup(path: Path, found: str) -> Path:
    """A copy by SQLite's own backup (a plain copy of a live WAL store is not one), for its user alone."""
    target, number = path.with_name(f"{path.name}.{found}.backup"), 1
    while target.exists():
        number += 1
        target = path.with_name(f"{path.name}.{found}.backup-{number}")
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(target)) as copy:
        source.backup(copy)
    return target
