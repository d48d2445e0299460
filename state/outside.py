"""Which MCP servers a wakeup began with: an event beside the context that was rendered for their tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from goalmode.domain.messages import Usage
from goalmode.state import events
from goalmode.state import tables as t
from goalmode.state.columns import written
from goalmode.state.store import Store
from goalmode.state.wakeups import Claimed, StoredContext, guard, replace_first, reserved

_OF_SERVERS = written("events.kind", t.SERVERS)


def render_again(
    store: Store,
    claimed: Claimed,
    context: StoredContext,
    *,
    reserve: Usage,
    inbox_seen: int,
    servers: Sequence[Mapping[str, Any]],
    now: datetime,
) -> None:
    """Store the context that the model will see in the place of the one that the wakeup was claimed with.

    Args:
        reserve: what the first call may cost, now that its input is another.
        inbox_seen: what users said up to here is in the context.
        servers: what became of each.

    Raises:
        Fenced: somebody else has the goal; nothing is stored.
    """
    with store.writing(durable=False) as connection:
        guard(store, connection, claimed, **reserved(claimed.price, reserve), inbox_seen=inbox_seen)
        replace_first(store, connection, claimed, context)
        data = {"servers": [dict(server) for server in servers]}
        events.note(store, connection, claimed.goal, t.SERVERS, data, wakeup=claimed.seq, now=now)


def servers_of(connection: sa.Connection, wakeup: int) -> list[dict[str, Any]]:
    """What became of each server as a wakeup, named by its id, began; empty where the goal has none."""
    row = connection.execute(
        sa.select(t.events.c.data)
        .join(t.wakeups, sa.and_(t.wakeups.c.goal == t.events.c.goal, t.wakeups.c.seq == t.events.c.wakeup))
        .where(t.wakeups.c.id == wakeup, _OF_SERVERS)
        .order_by(t.events.c.id.desc())
        .limit(1)
    ).first()
    found = row.data.get("servers", []) if row is not None and isinstance(row.data, Mapping) else []
    return [dict(server) for server in found if isinstance(server, Mapping)]
