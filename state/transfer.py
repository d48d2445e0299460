"""A goal with all that is stored of it, out of one store and into another. Its shape in a file: `transfer_shape`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Control
from goalmode.errors import NotAllowed
from goalmode.state import bodies, goals, questions, snapshot, wake_sources
from goalmode.state import tables as t
from goalmode.state.columns import UTCDateTime
from goalmode.state.shape import held
from goalmode.state.store import Store
from goalmode.state.transfer_shape import (
    CHECKS,
    FORMAT,
    GOAL,
    INBOX,
    OVER,
    VERSION,
    WAKE_SOURCES,
    WAKEUPS,
    Part,
)

_CHUNK = 500


@dataclass(frozen=True, slots=True)
class Left:
    """What a wakeup that nobody has closed is taken for, and its calls that have no outcome.

    Attributes:
        started: the ids of those that had begun.
    """

    reason: str
    detail: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    started: frozenset[str] = frozenset()


def read(connection: sa.Connection, goal: int, *, left: Left) -> dict[str, Any]:
    """The goal as JSON values, whole, with the texts of its bodies; one that was pruned is null."""
    row = connection.execute(sa.select(t.goals).where(t.goals.c.id == goal)).one()
    said = connection.execute(sa.select(t.inbox.c.id).where(t.inbox.c.goal == goal).order_by(t.inbox.c.id))
    places = {one: place for place, one in enumerate(said.scalars(), 1)}
    reader = _Reader(connection, goal, places, left)
    over = {"status": row.status, "detail": row.status_detail} if row.status in OVER else None
    return {
        "format": FORMAT,
        "version": VERSION,
        "id": row.uid,
        "over": over,
        **reader.own(GOAL, row),
        **{part.name: reader.rows(part) for part in GOAL.parts},
    }


class _Reader:
    """Reads the rows of one goal, part by part."""

    def __init__(self, connection: sa.Connection, goal: int, inbox: Mapping[int, int], left: Left) -> None:
        self._connection, self._goal, self._inbox, self._left = connection, goal, inbox, left
        wakeups = sa.select(t.wakeups.c.id, t.wakeups.c.seq).where(t.wakeups.c.goal == goal)
        self._numbers = {row.id: row.seq for row in connection.execute(wakeups)}

    def rows(self, part: Part) -> list[dict[str, Any]]:
        order = part.table.c[part.unique or "id"]
        statement = sa.select(part.table).where(part.table.c.goal == self._goal).order_by(order)
        return self._made(part, held(self._connection, statement, lambda row: part.name))

    def own(self, part: Part, row: sa.Row[Any]) -> dict[str, Any]:
        """The columns that are in the file as they are."""
        made = {name: _to_json(row._mapping[name]) for name in part.own}
        match part.name:
            case "wakeups" if made["exit_reason"] is None:
                left = self._left
                made |= {
                    "exit_reason": left.reason,
                    "exit_detail": left.detail,
                    "exit_facts": dict(left.facts),
                }
            case "model_calls" if made["state"] == t.TurnState.OPEN:
                made["state"] = t.TurnState.DONE.value
            case "tool_calls" if made["outcome"] is None:
                made["outcome"] = "interrupted" if made["call_id"] in self._left.started else "skipped"
            case "wake_sources":
                made["spec"] = {k: v for k, v in made["spec"].items() if k != "goal"}
        return made

    def _made(self, part: Part, rows: Sequence[sa.Row[Any]]) -> list[dict[str, Any]]:
        texts = bodies.get(self._connection, [row._mapping[name] for row in rows for name in part.bodies])
        inner = {one.name: self._inner(one, part, rows) for one in part.parts}
        return [
            {
                **self.own(part, row),
                **{name: self._place(part, name, row) for name in part.places},
                **{name: texts.get(row._mapping[name] or 0) for name in part.bodies},
                **{name: made.get(row.id, []) for name, made in inner.items()},
            }
            for row in rows
        ]

    def _inner(self, part: Part, outer: Part, rows: Sequence[sa.Row[Any]]) -> dict[int, list[dict[str, Any]]]:
        """The rows of `part`, by the ids of the rows that they belong to."""
        owner, order = part.table.c[_owner(outer)], part.table.c[part.unique or "id"]
        found: dict[int, list[dict[str, Any]]] = {}
        for ids in _chunks([row.id for row in rows]):
            statement = sa.select(part.table).where(owner.in_(ids)).order_by(owner, order)
            inner = held(self._connection, statement, lambda row: part.name)
            for row, made in zip(inner, self._made(part, inner), strict=True):
                found.setdefault(row._mapping[owner.name], []).append(made)
        return found

    def _place(self, part: Part, name: str, row: sa.Row[Any]) -> int | None:
        value = row._mapping[name]
        match part.name, name:
            case "wakeups", "inbox_seen":
                return bisect_right(list(self._inbox), value)
            case "checks", _:
                return self._numbers.get(value)
            case _:
                return self._inbox.get(value)


def write(store: Store, document: Mapping[str, Any], *, uid: str) -> int:
    """Store a goal out of a file, whose shape is right, in one transaction; returns its number.

    It is paused, unless it was over; nothing wakes it by itself.

    Raises:
        NotAllowed: a goal with this public id is there already; nothing is stored.
        StoreUnreadable: a value is of a shape that no goal has; nothing is stored.
    """
    document = store.clean_json(document)
    with store.writing() as connection:
        goal = _goal(store, connection, document, uid)
        _Writer(store, connection, goal, uid).write(document)
        stored = goals.read(connection, goal)
        snapshot.work_state(connection, stored)
        questions.of_goal(connection, stored)
        wake_sources.of_goal(connection, stored)
    return goal


def _goal(store: Store, connection: sa.Connection, document: Mapping[str, Any], uid: str) -> int:
    taken = NotAllowed(f"goal {uid}: is in this store already; --new-id stores another one beside it")
    if connection.execute(sa.select(t.goals.c.id).where(t.goals.c.uid == uid)).first() is not None:
        raise taken
    over = document["over"] or {"status": GoalStatus.PAUSED, "detail": "imported"}
    row = {
        **_from_json(GOAL, document),
        "uid": uid,
        "status": over["status"],
        "status_detail": over["detail"],
        "control": Control.NONE,
        "host_label": store.owner.host_label,
        "wake_reason": "",
    }
    try:
        return int(connection.execute(sa.insert(t.goals).values(**row).returning(t.goals.c.id)).scalar_one())
    except IntegrityError:  # On a server, somebody else stored it at the same moment.
        raise taken from None


class _Writer:
    """Writes the rows of one goal, part by part."""

    def __init__(self, store: Store, connection: sa.Connection, goal: int, uid: str) -> None:
        self._store, self._connection, self._goal, self._uid = store, connection, goal, uid
        self._inbox: list[int] = []
        self._wakeups: dict[int, int] = {}

    def write(self, document: Mapping[str, Any]) -> None:
        for part in GOAL.parts:
            for row in document[part.name]:
                values = {"goal": self._goal, **self._values(part, row)}
                if part is INBOX:
                    self._inbox.append(self._insert(part, values))
                elif part is WAKEUPS:
                    self._wakeup(row, values)
                else:
                    self._connection.execute(sa.insert(part.table).values(**values))
        for entry, row in zip(self._inbox, document["inbox"], strict=True):
            if row["superseded_by"] is not None:
                by = self._inbox[row["superseded_by"] - 1]
                self._connection.execute(
                    sa.update(t.inbox).where(t.inbox.c.id == entry).values(superseded_by=by)
                )

    def _wakeup(self, row: Mapping[str, Any], values: dict[str, Any]) -> None:
        # Whose it was is history; nothing of it holds here.
        lease = {"host_label": "", "pid": 0, "pid_start": "", "boot_id": "", "lease_ms": 0}
        lease |= {"reserved_input": 0, "reserved_output": 0}
        wakeup = self._wakeups[row["seq"]] = self._insert(WAKEUPS, values | lease)
        contexts, turns = WAKEUPS.parts
        for context in row["contexts"]:
            self._insert(contexts, {"wakeup": wakeup, **self._values(contexts, context)})
        [calls] = turns.parts
        for turn in row["model_calls"]:
            made = self._insert(turns, {"wakeup": wakeup, **self._values(turns, turn)})
            for call in turn["tool_calls"]:
                key = f"{self._uid}:{row['seq']}:{turn['seq']}:{call['call_id']}"
                belongs = {"wakeup": wakeup, "turn": made, "idem_key": key}
                self._connection.execute(
                    sa.insert(calls.table).values(**belongs, **self._values(calls, call))
                )

    def _insert(self, part: Part, values: Mapping[str, Any]) -> int:
        statement = sa.insert(part.table).values(**values).returning(part.table.c.id)
        return int(self._connection.execute(statement).scalar_one())

    def _values(self, part: Part, row: Mapping[str, Any]) -> dict[str, Any]:
        values = _from_json(part, row)
        for name in part.bodies:
            values[name] = None if row[name] is None else bodies.put(self._connection, row[name])
        if part is WAKEUPS:
            seen = row["inbox_seen"]
            values["inbox_seen"] = self._inbox[seen - 1] if seen else 0
        elif part is CHECKS:
            values["wakeup"] = None if row["wakeup"] is None else self._wakeups[row["wakeup"]]
        elif part is WAKE_SOURCES and row["kind"] == "goal":
            values |= self._target(row["spec"])
        return values

    def _target(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """The goal that is waited for, by the name that it has in every store; 0: it is not in this one."""
        named = sa.select(t.goals.c.id).where(t.goals.c.uid == str(spec.get("uid", "")))
        target = int(self._connection.execute(named).scalar() or 0)
        return {"spec": {**spec, "goal": target}, "target": target}


def _from_json(part: Part, row: Mapping[str, Any]) -> dict[str, Any]:
    """The columns that are in the file as they are, as the store takes them."""

    def value(name: str) -> Any:
        given = row[name]
        if given is not None and isinstance(part.table.c[name].type, UTCDateTime):
            return datetime.fromisoformat(given)
        return given

    return {name: value(name) for name in part.own}


def _to_json(value: Any) -> Any:
    """With the keys of objects in one order: a server does not keep the one in which they were stored."""
    match value:
        case datetime():
            return value.isoformat()
        case Mapping():
            return {key: _to_json(value[key]) for key in sorted(value)}
        case list():
            return list(map(_to_json, value))
        case _:
            return value


def _owner(part: Part) -> str:
    """The column by which rows name the one that they belong to."""
    return {"wakeups": "wakeup", "model_calls": "turn"}[part.name]


def _chunks(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(ids), _CHUNK):
        yield ids[start : start + _CHUNK]
