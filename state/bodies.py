"""Long texts, kept apart from the rows that lists read."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from goalmode.errors import StoreUnreadable
from goalmode.state import statements
from goalmode.state import tables as t

PRUNED = "(pruned)"
"""What is shown in the place of a body that is gone."""

_WORTH_PACKING = 200
"""Bytes below which compressing makes a body no smaller."""


def put(connection: sa.Connection, text: str) -> int:
    """Store one text and return its id. The caller has cleaned it (`Store.clean`)."""
    raw = text.encode("utf-8")
    packed = zlib.compress(raw, 6) if len(raw) >= _WORTH_PACKING else raw
    codec, data = ("zlib", packed) if len(packed) < len(raw) else ("raw", raw)
    return statements.insert(connection, t.bodies, codec=codec, raw_len=len(raw), data=data)


def put_json(connection: sa.Connection, value: object) -> int:
    return put(connection, json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def get(connection: sa.Connection, ids: Iterable[int | None]) -> Mapping[int, str]:
    """The texts of these bodies; one that was pruned is missing."""
    wanted = [i for i in ids if i is not None]
    found: dict[int, str] = {}
    for start in range(0, len(wanted), 500):
        chunk = wanted[start : start + 500]
        rows = connection.execute(
            sa.select(t.bodies.c.id, t.bodies.c.codec, t.bodies.c.data).where(t.bodies.c.id.in_(chunk))
        )
        for row in rows:
            found[int(row.id)] = _unpacked(row)
    return found


def _unpacked(row: sa.Row[Any, Any, Any]) -> str:
    try:
        raw = zlib.decompress(row.data) if row.codec == "zlib" else row.data
        return str(raw, "utf-8")
    except (TypeError, UnicodeDecodeError, zlib.error) as error:
        raise StoreUnreadable(f"text number {row.id} cannot be unpacked: {error}") from None


def shown(connection: sa.Connection, ids: Iterable[int | None]) -> Mapping[int, str]:
    """The texts of these bodies for somebody who looks: one that was pruned says so."""
    wanted = [i for i in ids if i is not None]
    return {**dict.fromkeys(wanted, PRUNED), **get(connection, wanted)}


def of_goal(goal: int) -> sa.CompoundSelect[int]:
    """The ids of all bodies that rows of a goal name, to be used in a statement."""
    wakeups = sa.select(t.wakeups.c.id).where(t.wakeups.c.goal == goal)
    return sa.union_all(
        *(
            sa.select(column).where(
                column.is_not(None),
                column.table.c.goal == goal
                if "goal" in column.table.c
                else column.table.c.wakeup.in_(wakeups),
            )
            for column in t.BODIES
        )
    )


def get_one(connection: sa.Connection, body: int | None) -> str:
    return "" if body is None else get(connection, [body]).get(body, "")
