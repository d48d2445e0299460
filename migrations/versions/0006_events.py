"""events found: all of them name their wakeups alike, and those of two kinds have indexes of their own

Revision: 0006
Revises: 0005
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_SERVERS = "kind = 'servers'"
_SHOWN = "kind IN ('transition', 'limits', 'settings', 'scheduled', 'unscheduled', 'wake_source', 'accepted', 'fenced')"


def upgrade() -> None:
    _rename("seq", "id")
    for name, column, of in (("servers", "wakeup", _SERVERS), ("shown", "id", _SHOWN)):
        chosen = sa.text(of)
        op.create_index(
            f"ix_events_{name}",
            "events",
            ["goal", column],
            sqlite_where=chosen,
            postgresql_where=chosen,
        )


def downgrade() -> None:
    op.drop_index("ix_events_shown", "events")
    op.drop_index("ix_events_servers", "events")
    _rename("id", "seq")


def _rename(new: str, old: str) -> None:
    """These two kinds named wakeups by their ids, all others by their numbers."""
    op.execute(
        f"UPDATE events SET wakeup = (SELECT wakeups.{new} FROM wakeups"
        f" WHERE wakeups.goal = events.goal AND wakeups.{old} = events.wakeup)"
        " WHERE kind IN ('servers', 'fenced')"
    )
