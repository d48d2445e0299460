"""deliveries: goals that are carried to workers on several machines

Revision: 0004
Revises: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "goals", sa.Column("delivery", sa.BigInteger(), nullable=False, server_default=sa.text("0"))
    )
    op.add_column("goals", sa.Column("issued_at", sa.DateTime(timezone=True), nullable=True))
    on_the_way = sa.text("issued_at IS NOT NULL")
    op.create_index(
        "ix_goals_issued", "goals", ["issued_at"], sqlite_where=on_the_way, postgresql_where=on_the_way
    )


def downgrade() -> None:
    op.drop_index("ix_goals_issued", "goals")
    op.drop_column("goals", "issued_at")
    op.drop_column("goals", "delivery")
