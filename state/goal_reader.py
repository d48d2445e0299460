"""Reading one goal again at every turn: only what has changed since is made values of again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import sqlalchemy as sa

from goalmode.domain.goal import Goal
from goalmode.state import goals, mapping, statements
from goalmode.state import tables as t
from goalmode.state.columns import time_reader
from goalmode.state.revisions import of_contract

_SPENT = tuple(c for c in t.goals.c if c.name.startswith("spent_"))
_OFTEN = (*_SPENT, t.goals.c.updated_at)
"""What every turn changes."""


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
            updated_at=time_reader(connection.dialect)(at),
        )


_QUERIES: dict[str, Callable[[], sa.Select[Any]]] = {
    "rest": lambda: goals.GOAL.with_only_columns(*(c for c in t.goals.c if c not in set(_OFTEN))),
    **{
        table.name: partial(of_contract, table)
        for table in (t.requirements, t.deliverables, t.protected_files)
    },
    "inbox": lambda: goals.INBOX_HEAD,
    "running": lambda: goals.GOAL.with_only_columns(*_OFTEN),
}
"""All that a goal is made of; the last is what every turn changes."""
