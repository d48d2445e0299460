"""A goal that has lived long, of copies of its first wakeup, written past the package; and what reading it takes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import event

from goalmode.domain.goal import Goal
from goalmode.state.store import Store
from tests.orchestrator.builders import GO_ON, begin, turn

Row = dict[str, Any]


def live(store: Store, goal: Goal, *, wakeups: int, turns: int) -> None:
    """Give a new goal, the only one in its file, so many wakeups of so many turns of one call each.

    Beside each wakeup are two events: the servers it began with, and one that no page shows.
    """
    wake = begin(store, goal)
    turn(wake)
    wake.close(GO_ON)
    assert store.path is not None
    with closing(sqlite3.connect(store.path)) as file, file:
        file.row_factory = sqlite3.Row
        first = {
            table: dict(file.execute(f"SELECT * FROM {table}").fetchone())
            for table in ("wakeups", "contexts", "turns", "tool_calls")
        }
        for table, row in first.items():
            file.execute(f"DELETE FROM {table}")
            names = ", ".join(f'"{name}"' for name in row)
            values = ", ".join(f":{name}" for name in row)
            rows = _copies(table, row, wakeups, turns)
            file.executemany(f"INSERT INTO {table} ({names}) VALUES ({values})", rows)
        for kind in ("servers", "cached"):
            file.execute(
                "INSERT INTO events (goal, wakeup, kind, data, at)"
                f" SELECT goal, seq, '{kind}', '{{\"servers\": []}}', started_at FROM wakeups ORDER BY seq"
            )
        file.execute(
            "UPDATE goals SET fence = :w, spent_wakeups = :w, spent_turns = :w * :t,"
            " spent_input = :w * :t * 1000, spent_output = :w * :t * 60",
            {"w": wakeups, "t": turns},
        )


def _copies(table: str, row: Row, wakeups: int, turns: int) -> Iterator[Row]:
    for wakeup in range(1, wakeups + 1):
        numbers = {"seq": wakeup, "fence": wakeup, "turns": turns}
        match table:
            case "wakeups":
                yield {**row, **_times(row, wakeup), **numbers, "id": wakeup}
            case "contexts":
                yield {**row, "id": wakeup, "wakeup": wakeup}
            case _:
                for seq in range(1, turns + 1):
                    id = (wakeup - 1) * turns + seq
                    own = {"seq": seq} if table == "turns" else {"turn": id, "call_id": f"c{id}"}
                    yield {**row, **own, "id": id, "wakeup": wakeup}


def _times(row: Row, wakeup: int) -> Row:
    """An hour after the wakeup before it."""
    later = timedelta(hours=wakeup - 1)
    return {
        name: f"{datetime.fromisoformat(row[name]) + later:%Y-%m-%d %H:%M:%S.%f}"
        for name in ("started_at", "ended_at")
    }


@dataclass
class Read:
    """What statements read: the rows that each gave, and the steps that SQLite took for all of them, in tens."""

    rows: list[int] = field(default_factory=list)
    steps: int = 0


@contextmanager
def reads(store: Store) -> Iterator[Read]:
    """What is read of the store meanwhile. Each statement is made twice: once to count what it gives."""
    read = Read()

    def step() -> int:
        read.steps += 1
        return 0

    def count(connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if statement.lstrip().startswith(("SELECT", "WITH")):
            raw = connection.connection.dbapi_connection
            raw.set_progress_handler(None, 0)
            [(rows,)] = raw.execute(f"SELECT count(*) FROM ({statement})", parameters).fetchall()
            read.rows.append(rows)
            raw.set_progress_handler(step, 10)

    event.listen(store._read, "before_cursor_execute", count)
    try:
        yield read
    finally:
        event.remove(store._read, "before_cursor_execute", count)
        with store.reading() as connection:
            connection.connection.dbapi_connection.set_progress_handler(None, 0)  # type: ignore[union-attr]
