"""wake sources

Revision: 0003
Revises: 0002
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")

_OPEN = sa.text("status = 'open'")
_WATCHED = sa.text("status = 'open' AND kind IN ('file', 'process', 'goal')")


def upgrade() -> None:
    op.create_table(
        "wake_sources",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("goal", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(length=24), nullable=False),
        sa.Column("spec", _JSON, nullable=False),
        sa.Column("target", sa.BigInteger(), nullable=True),
        sa.Column("status", sa.String(length=24), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ceiling_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("fired_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "kind IN ('at', 'every', 'cron', 'file', 'process', 'goal')", name=op.f("ck_wake_sources_kind")
        ),
        sa.CheckConstraint("status IN ('open', 'fired', 'removed')", name=op.f("ck_wake_sources_status")),
        sa.ForeignKeyConstraint(
            ["goal"], ["goals.id"], name=op.f("fk_wake_sources_goal_goals"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_wake_sources")),
        sa.UniqueConstraint("goal", "number", name=op.f("uq_wake_sources_goal_number")),
    )
    op.create_index(
        "ix_wake_sources_open", "wake_sources", ["goal", "id"], sqlite_where=_OPEN, postgresql_where=_OPEN
    )
    op.create_index(
        "ix_wake_sources_watched",
        "wake_sources",
        ["id"],
        sqlite_where=_WATCHED,
        postgresql_where=_WATCHED,
    )


def downgrade() -> None:
    op.drop_table("wake_sources")
