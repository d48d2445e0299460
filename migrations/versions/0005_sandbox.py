"""sandbox: what a wakeup's commands ran in

Revision: 0005
Revises: 0004
"""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # In one statement with its CHECK, which SQLite could not add afterwards without making the table anew.
    op.execute(
        "ALTER TABLE wakeups ADD COLUMN sandbox VARCHAR(24) DEFAULT 'none' NOT NULL"
        " CONSTRAINT ck_wakeups_sandbox CHECK (sandbox IN ('bwrap', 'landlock', 'none'))"
    )


def downgrade() -> None:
    op.execute("ALTER TABLE wakeups DROP COLUMN sandbox")
