"""Long-term memory: what outlives the goals that it comes from. It is kept, found again and corrected here alone.

A memory stands until another takes its place or a user forgets it. None is deleted or written over, so that each
change can be taken back: of two that replaced each other, `superseded_by` of the one that does not stand names the
other, also where the older one was put back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from goalmode.domain.memory import MAX_RECALLED, Memory, MemoryKind, Remembered
from goalmode.domain.text import one_line
from goalmode.errors import BadInput, NotAllowed, StoreUnreadable
from goalmode.state import fulltext
from goalmode.state import tables as t
from goalmode.state.exclusion import lock_memories
from goalmode.state.store import Store
from goalmode.state.wakeups import Claimed, guard

MAX_TOLD = 20
"""Memories that a goal is told of at once, preferences and what fits its objective before the newest."""

_LABEL = re.compile(r"[Mm]?([0-9]{1,15})")
_PROMOTED = "memory_promoted"


def remember(
    store: Store,
    claimed: Claimed,
    kind: MemoryKind,
    text: str,
    *,
    goal: str,
    workspace: str,
    turn: int,
    replaces: str = "",
    shown: int,
    now: datetime,
) -> Remembered:
    """Keep `text` for the goals of `workspace`, unless a memory says the same.

    Args:
        goal: public id of the goal that says so, in the turn number `turn` of its wakeup.
        replaces: label of the memory whose place it takes; empty for none.
        shown: id of the newest memory that the wakeup has been told of.

    Raises:
        Fenced: somebody else has the goal; nothing is stored.
        NotAllowed: `replaces` may not be replaced; one line says why, for the model.
    """
    text = store.clean(text).strip()
    with store.writing() as connection:
        guard(store, connection, claimed)
        lock_memories(connection)
        same = connection.execute(
            sa.select(t.memories).where(*_standing(workspace), t.memories.c.text == text)
        ).first()
        if same is not None:
            return Remembered(_memory(same), known=True)
        old = _replaceable(connection, replaces, goal, workspace, shown) if replaces else None
        new = connection.execute(
            sa.insert(t.memories)
            .values(
                kind=kind,
                text=text,
                workspace=workspace,
                goal=goal,
                wakeup=claimed.seq,
                turn=turn,
                created_at=now,
            )
            .returning(t.memories)
        ).one()
        fulltext.index(connection, new.id, text)
        if old is not None:
            _change(connection, old.id, superseded_by=new.id)
        return Remembered(_memory(new))


def recall(
    connection: sa.Connection, workspace: str, query: str, *, limit: int = MAX_RECALLED
) -> tuple[Memory, ...]:
    """What stands in a workspace and has any of the query's words, the best match first."""
    found = fulltext.matching(connection, workspace, query, limit)
    if not found:
        return ()
    rows = connection.execute(sa.select(t.memories).where(t.memories.c.id.in_(found))).all()
    return tuple(sorted(map(_memory, rows), key=lambda memory: found.index(memory.id)))


def relevant(connection: sa.Connection, workspace: str, objective: str) -> tuple[Memory, ...]:
    """What a goal with this objective begins with: the newest preferences, then what fits the objective."""
    preferred = tuple(map(_memory, connection.execute(_PREFERRED, {"here": workspace})))
    return _distinct(preferred, recall(connection, workspace, objective))


def current(connection: sa.Connection, workspace: str, objective: str) -> tuple[Memory, ...]:
    """What a goal is shown before it may add to it: what is relevant, then the newest of the rest."""
    newest = _rows(connection, *_standing(workspace), limit=MAX_TOLD)
    return _distinct(relevant(connection, workspace, objective), newest)[:MAX_TOLD]


def head(connection: sa.Connection) -> int:
    """Id of the newest memory, 0 for none. Ids only grow."""
    return int(connection.execute(_HEAD).scalar() or 0)


def every(store: Store, *, workspace: str | None = None, hidden: bool = False) -> list[Memory]:
    """The memories, newest first.

    Args:
        workspace: only those that its goals see.
        hidden: also those that do not stand.
    """
    chosen = [] if hidden else list(_standing(None))
    if workspace is not None:
        chosen.append(t.memories.c.workspace.in_((workspace, "")))
    with store.reading() as connection:
        return list(_rows(connection, *chosen, limit=None))


def get(store: Store, label: str) -> Memory:
    """The memory called `label`: `M7`, or `7`.

    Raises:
        BadInput: there is none.
    """
    with store.reading() as connection:
        return _find(connection, label)


def forget(store: Store, label: str, *, now: datetime) -> Memory:
    """Hide a memory from all goals.

    Raises:
        BadInput: there is none of that label. NotAllowed: it is forgotten already.
    """
    with store.writing() as connection:
        lock_memories(connection)
        memory = _find(connection, label)
        if memory.forgotten_at is not None:
            raise NotAllowed(f"memory {memory.label}: is forgotten already")
        _change(connection, memory.id, forgotten_at=now)
        return _find(connection, memory.label)


def promote(store: Store, label: str, *, now: datetime) -> Memory:
    """Show a memory to the goals of every workspace.

    Raises:
        BadInput: there is none of that label. NotAllowed: it does not stand, or is promoted already.
    """
    with store.writing() as connection:
        lock_memories(connection)
        memory = _find(connection, label)
        if not memory.stands:
            raise NotAllowed(f"memory {memory.label}: does not stand: {_fate(memory)}")
        if not memory.workspace:
            raise NotAllowed(f"memory {memory.label}: every workspace's goals see it already")
        data = {"memory": memory.id, "workspace": memory.workspace}
        connection.execute(sa.insert(t.events).values(kind=_PROMOTED, data=data, at=now))
        _change(connection, memory.id, workspace="")
        return _find(connection, memory.label)


def undo(store: Store, label: str, *, now: datetime) -> tuple[Memory, ...]:
    """Take back the last change of a memory: that it was forgotten, promoted, withdrawn or, at last, remembered.

    One that is withdrawn gives its place back to what it replaced. Returns the memories that changed, itself first.

    Raises:
        BadInput: there is none of that label. NotAllowed: another memory would have to be taken back first.
    """
    with store.writing() as connection:
        lock_memories(connection)
        memory = _find(connection, label)
        other = memory.superseded_by
        if memory.forgotten_at is not None:
            _change(connection, memory.id, forgotten_at=None)
        elif other is not None and other > memory.id:
            raise NotAllowed(f"memory {memory.label}: {_fate(memory)}; `goalmode memory undo M{other}`")
        elif other is not None:
            _swap(connection, memory.id, _find(connection, f"M{other}"))
        elif not memory.workspace:
            _change(connection, memory.id, workspace=_promoted_from(connection, memory.id))
        else:
            replaced = _rows(connection, t.memories.c.superseded_by == memory.id, t.memories.c.id < memory.id)
            other = replaced[0].id if replaced else None
            if other is None:
                _change(connection, memory.id, forgotten_at=now)
            else:
                _swap(connection, other, memory)
        changed = [memory.label] if other is None else [memory.label, f"M{other}"]
        return tuple(_find(connection, name) for name in changed)


def _swap(connection: sa.Connection, stands: int, hidden: Memory) -> None:
    """Let `stands` take the place of `hidden` again."""
    if hidden.superseded_by is not None:
        raise NotAllowed(f"memory M{stands}: {hidden.label} would make way for it, but {_fate(hidden)}")
    _change(connection, stands, superseded_by=None)
    _change(connection, hidden.id, superseded_by=stands)


def _replaceable(connection: sa.Connection, label: str, goal: str, workspace: str, shown: int) -> Memory:
    """The memory that a goal may put another in the place of.

    What another goal has written since is never lost, and what a user made everybody's is the user's.
    """
    try:
        memory = _find(connection, label)
    except BadInput:
        memory = None
    if memory is None or memory.workspace not in (workspace, ""):
        raise NotAllowed(f"there is no memory {one_line(label, 40)!r}")
    beside = "leave out replaces to store yours beside it"
    if memory.forgotten_at is not None:
        raise NotAllowed(f"{memory.label} was forgotten by the user; {beside}")
    if memory.superseded_by is not None:
        standing = memory
        while standing.superseded_by is not None:
            standing = _find(connection, f"M{standing.superseded_by}")
        told = f"{standing.label} ({one_line(standing.text)})" if standing.stands else standing.label
        raise NotAllowed(f"the place of {memory.label} was taken by {told}; {beside}")
    if not memory.workspace:
        raise NotAllowed(f"{memory.label} was promoted by the user; {beside}")
    if memory.goal != goal and memory.id > shown:
        said = one_line(memory.text)
        raise NotAllowed(f"another goal wrote {memory.label} since this wakeup began ({said}); {beside}")
    return memory


def _standing(workspace: str | sa.BindParameter[str] | None) -> Iterable[sa.ColumnElement[bool]]:
    """What goals are told of; of one workspace, or None: of all."""
    yield t.memories.c.superseded_by.is_(None)
    yield t.memories.c.forgotten_at.is_(None)
    if workspace is not None:
        yield t.memories.c.workspace.in_((workspace, ""))


def _newest(*chosen: sa.ColumnElement[bool], limit: int | None = MAX_RECALLED) -> sa.Select[Any]:
    """The newest so many, newest first."""
    return sa.select(t.memories).where(*chosen).order_by(t.memories.c.id.desc()).limit(limit)


def _rows(
    connection: sa.Connection, *chosen: sa.ColumnElement[bool], limit: int | None = MAX_RECALLED
) -> tuple[Memory, ...]:
    return tuple(map(_memory, connection.execute(_newest(*chosen, limit=limit))))


# Read for every context: a statement that is built anew each time takes longer to build than to run.
_HEAD = sa.select(sa.func.max(t.memories.c.id))
_PREFERRED = _newest(
    *_standing(sa.bindparam("here", type_=sa.String)), t.memories.c.kind == MemoryKind.PREFERENCE
)


def _find(connection: sa.Connection, label: str) -> Memory:
    number = _LABEL.fullmatch(label.strip())
    row = (
        number
        and connection.execute(sa.select(t.memories).where(t.memories.c.id == int(number.group(1)))).first()
    )
    if not row:
        raise BadInput("memory", label, "the label of one, such as M7; `goalmode memory list` shows them")
    return _memory(row)


def _change(connection: sa.Connection, memory: int, **values: Any) -> None:
    connection.execute(sa.update(t.memories).where(t.memories.c.id == memory).values(**values))


def _promoted_from(connection: sa.Connection, memory: int) -> str:
    promotions = connection.execute(
        sa.select(t.events.c.data)
        .where(t.events.c.goal.is_(None), t.events.c.kind == _PROMOTED)
        .order_by(t.events.c.id.desc())
    ).scalars()
    return next(str(data["workspace"]) for data in promotions if data["memory"] == memory)


def _fate(memory: Memory) -> str:
    """Why it does not stand."""
    if memory.forgotten_at is not None:
        return "it is forgotten"
    return f"M{memory.superseded_by} has taken its place"


def _memory(row: sa.Row[Any]) -> Memory:
    try:
        return Memory(
            row.id,
            MemoryKind(row.kind),
            row.text,
            row.workspace,
            row.goal,
            row.wakeup,
            row.turn,
            row.created_at,
            row.superseded_by,
            row.forgotten_at,
        )
    except ValueError:
        raise StoreUnreadable(f"memory M{row.id}: kind is {row.kind!r}, which is not known") from None


def _distinct(*found: Sequence[Memory]) -> tuple[Memory, ...]:
    return tuple({memory.id: memory for memories in found for memory in memories}.values())
