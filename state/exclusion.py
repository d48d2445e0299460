"""One writer of a goal at a time. SQLite has one writer in all; PostgreSQL is asked for it, row by row.

Every transaction that reads something of a goal and writes by it begins with `lock_goal`, or is one statement that
compares and sets. The guard of a wakeup's writes locks the goal itself. Whoever locks several goals does so in the
order of their ids, and locks none after the memories: so no two wait for each other.
"""

from __future__ import annotations

import sqlalchemy as sa

from goalmode.state import tables as t


def lock_goal(connection: sa.Connection, goal: int) -> None:
    """Until this transaction ends, nobody else writes to the goal; what is read from here on is what others left."""
    if connection.dialect.name == "postgresql":
        row = sa.select(t.goals.c.id).where(t.goals.c.id == goal)
        # Rows that refer to the goal can still be added: the heartbeat and the journal's events need no lock.
        connection.execute(row.with_for_update(key_share=True))


def lock_memories(connection: sa.Connection) -> None:
    """The same for all memories: each may take the place of any other."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("LOCK TABLE memories IN SHARE ROW EXCLUSIVE MODE")
