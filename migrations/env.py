"""Alembic's entry: one connection of the engine in the configuration's attributes, one transaction."""

from __future__ import annotations

from typing import Any, Literal

import sqlalchemy as sa
from alembic import context
from alembic.autogenerate.api import AutogenContext
from sqlmodel import SQLModel
from sqlmodel.sql.sqltypes import AutoString

from goalmode.state import columns

UPGRADING = 0x676F616C6D6F6465
"""The lock under which a server's store is upgraded: `goalmode`, as a number."""


def render_item(kind: str, item: Any, autogen: AutogenContext) -> str | Literal[False]:
    if kind == "type" and isinstance(item, columns.UTCDateTime):
        return "sa.DateTime(timezone=True)"
    if kind == "type" and isinstance(item, sa.JSON):
        autogen.imports.add("from sqlalchemy.dialects import postgresql")
        return "sa.JSON().with_variant(postgresql.JSONB(), 'postgresql')"
    if kind == "type" and isinstance(item, AutoString):
        return f"sa.String(length={item.length})" if item.length else "sa.String()"
    return False


def include_name(name: str | None, kind: str, parents: Any) -> bool:
    """Everything but the full-text index, whose tables are SQLite's own."""
    return kind != "table" or name is None or not name.startswith("memories_fts")


def run() -> None:
    with context.config.attributes["engine"].connect() as connection:
        sqlite = connection.dialect.name == "sqlite"
        if sqlite:
            # Inside a transaction the pragma is a no-op, and rebuilding a table needs foreign keys off.
            connection.connection.dbapi_connection.execute("PRAGMA foreign_keys=OFF")
        context.configure(
            connection=connection,
            target_metadata=SQLModel.metadata,
            render_as_batch=True,
            compare_type=True,
            render_item=render_item,
            include_name=include_name,
            transactional_ddl=True,
        )
        with context.begin_transaction():
            if not sqlite:
                # One process upgrades, others wait for it and find nothing left to do. SQLite has one writer anyway.
                connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({UPGRADING})")
            context.run_migrations()
            broken = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall() if sqlite else None
            if broken:
                raise RuntimeError(f"foreign keys broken by the migration: {broken}")


run()
