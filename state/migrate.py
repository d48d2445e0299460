"""Which schema a store has, and bringing it up to date. Reading never migrates."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

import goalmode.migrations
from goalmode.errors import StoreError, StoreNewer
from goalmode.state.engine import BUSY_SECONDS, Database
from goalmode.state.owner import Lease, Owner

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0006"
"""The newest migration. Known without loading alembic, which costs most of a second."""

SCRIPTS = Path(goalmode.migrations.__file__).parent


def revision(connection: sa.Connection, name: str) -> str | None:
    """The store's schema, None for an empty one. `name` is the store's, for errors.

    Raises:
        StoreError: it holds tables, but not ours.
    """
    tables = sa.inspect(connection).get_table_names()
    if "alembic_version" in tables:
        return connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    if tables:
        kind = "an SQLite file" if connection.dialect.name == "sqlite" else "a database"
        raise StoreError(f"store {name}: is not a goalmode store ({kind} of something else)")
    return None


def check_revision(name: str, found: str | None) -> None:
    """Refuse a store that newer code wrote.

    Raises:
        StoreNewer: with both versions named; the store is as it was.
    """
    if found is not None and found != HEAD and not _is_known(found):
        raise StoreNewer(
            f"store {name}: has schema {found}, this goalmode knows up to {HEAD}; upgrade goalmode to use it"
        )


def open_leases(connection: sa.Connection) -> Sequence[Lease]:
    """The holds of wakeups that are open, in a store of any schema: their processes may still write the old one."""
    rows = connection.exec_driver_sql(
        "SELECT owner, host_label, pid, pid_start, boot_id, lease_ms FROM wakeups WHERE exit_reason IS NULL"
    )
    return [Lease(Owner(*row[:5]), row[5]) for row in rows]


def upgrade(database: Database, found: str | None) -> Path | None:
    """Bring the store from schema `found` to the newest; returns the backup made before.

    None for a new store, and for one on a server, whose tools make the backups.
    """
    from alembic import command

    backup = None if found is None or database.path is None else _beside(database.path, found)
    if backup is not None:
        database.copy_to(backup)
    config = _config()
    engine = database.writing(durable=True, busy_seconds=BUSY_SECONDS)
    try:
        config.attributes["engine"] = engine
        command.upgrade(config, "head")
    finally:
        engine.dispose()
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


def _beside(path: Path, found: str) -> Path:
    """A file for a backup, which is not there yet."""
    target, number = path.with_name(f"{path.name}.{found}.backup"), 1
    while target.exists():
        number += 1
        target = path.with_name(f"{path.name}.{found}.backup-{number}")
    return target
