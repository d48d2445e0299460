"""Reading one goal again at every turn: only what has changed since is made values of again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa

from goalmode.domain.goal import Goal
from goalmode.state import goals, mapping, statements
from goalmode.state import tables as t

_AT = t.goals.c.updated_at
_SPENT = tuple(c for c in t.goals.c if c.name.startswith("spent_"))
_RUNNING = (*_SPENT, _AT)
"""What every turn changes."""

_WANTED: sa.BindParameter[int] = sa.bindparam("wanted", type_=sa.BigInteger())


class GoalReader:
    """Reads one goal, whoever changes it meanwhile."""

    def __init__(self, goal: int) -> None:
        self._goal = goal
        self._known: Goal | None = None
        self._stored: list[list[tuple[Any, ...]]] = []

    def read(self, connection: sa.Connection) -> Goal:
        """The goal at one moment, inside a transaction; see `goalmode.state.goals.read`."""
        stored = [
            statements.rows(connection, f"goal reader {name}", query, wanted=self._goal)
            for name, query in _QUERIES.items()
        ]
        running = stored.pop()
        if self._known is None or not running or stored != self._stored:
            self._known, self._stored = goals.read(connection, self._goal), stored
            return self._known
        *spent, at = running[0]
        totals = dict(zip((column.name for column in _SPENT), spent, strict=True))
        return replace(
            self._known,
            spent=mapping.spent_from_row(self._known.uid, totals),
            updated_at=_time(connection.dialect)(at),
        )


def _rest_of_goal() -> sa.Select[Any]:
    return sa.select(*(c for c in t.goals.c if c not in set(_RUNNING))).where(t.goals.c.id == _WANTED)


def _of_contract(table: sa.Table) -> Callable[[], sa.Select[Any]]:
    return lambda: sa.select(table).where(table.c.goal == _WANTED).order_by(table.c.position)


_QUERIES: dict[str, Callable[[], sa.Select[Any]]] = {
    "rest": _rest_of_goal,
    **{table.name: _of_contract(table) for table in (t.requirements, t.deliverables, t.protected_files)},
    "inbox": lambda: sa.select(sa.func.max(t.inbox.c.id)).where(t.inbox.c.goal == _WANTED),
    "running": lambda: sa.select(*_RUNNING).where(t.goals.c.id == _WANTED),
}
"""All that a goal is made of; the last is what every turn changes."""


@cache
def _time(dialect: sa.Dialect) -> Callable[[Any], datetime]:
    read: Callable[[Any], datetime] = _AT.type.dialect_impl(dialect).result_processor(dialect, None)  # type: ignore[assignment]
    return read
