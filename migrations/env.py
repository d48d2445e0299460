"""Alembic's entry: one connection to the store named in the configuration's attributes."""

from __future__ import annotations

from typing import Any, Literal

import sqlalchemy as sa
from alembic import context
from alembic.autogenerate.api import AutogenContext
from sqlmodel import SQLModel
from sqlmodel.sql.sqltypes import AutoString

from goalmode.state import columns
from goalmode.state.engine import BUSY_SECONDS, writing_engine


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
    path = context.config.attributes["path"]
    engine = writing_engine(path, synchronous="FULL", busy_seconds=BUSY_SECONDS)
    try:
        with engine.connect() as connection:
            raw = connection.connection.dbapi_connection
            assert raw is not None
            # Inside a transaction the pragma is a no-op, and rebuilding a table needs foreign keys off.
            raw.execute("PRAGMA foreign_keys=OFF")
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
                context.run_migrations()
                broken = connection.exec_driver_sql("PRAGMA foreign_key_check").fetchall()
                if broken:
                    raise RuntimeError(f"foreign keys broken by the migration: {broken}")
    finally:
        engine.dispose()


run()
