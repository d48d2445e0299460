"""What inspection reads: rows as values, words as they are stored. Nothing here writes, and nothing is judged.

Everything takes a connection of `Store.reading`, so that one inspection is one consistent view.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from goalmode.domain.sandbox import SandboxMode
from goalmode.errors import StoreUnreadable
from goalmode.state import bodies, engine, migrate
from goalmode.state import tables as t
from goalmode.state.owner import Lease, Owner
from goalmode.state.shape import an_object, held, objects
from goalmode.state.store import default_url

SQLITE_VERSION: tuple[int, int, int] = sqlite3.sqlite_version_info
HEAD = migrate.HEAD
PRUNED = bodies.PRUNED


@dataclass(frozen=True, slots=True)
class WakeupSeen:
    """One wakeup. `exit_reason` is None for one that has not been closed; whether it runs is its lease's question.

    Attributes:
        context_tokens, context_sha256, completion_phrases: of the context it began with; None where it ended before it
            had one.
        pending_exit: the ending that it stored before it settled, as long as the contract is the same.
    """

    id: int
    seq: int
    fence: int
    lease: Lease
    exit_reason: str | None
    exit_detail: str
    exit_facts: Mapping[str, Any]
    turns: int
    tokens: int
    recoveries: int
    rejections: int
    progress: int
    progress_by: Mapping[str, int]
    sandbox: str
    started_at: datetime
    ended_at: datetime | None
    context_tokens: int | None
    context_sha256: str | None
    completion_phrases: int | None
    pending_exit: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ContextSeen:
    """A wakeup's context, exactly as the model saw it."""

    text: str
    sha256: str
    tokens: int
    encoding: str
    completion_phrases: int
    sections: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class CheckSeen:
    """One run of one check, or one look at one deliverable. `tail` is the end of its output, or what was wrong."""

    wakeup: int | None
    subject: str
    passed: bool
    exit_code: int | None
    sha256: str | None
    tail: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Said:
    """What a user said: `kind` is note, answer, edit or stop.

    Attributes:
        question: number of the question that an answer answers.
        stands: a note that nothing has taken the place of; one that takes another back has no text.
    """

    kind: str
    text: str
    at: datetime
    question: int | None = None
    stands: bool = True


def exists(url: str | None) -> bool:
    """Whether there is anything where the store would be.

    Raises:
        BadInput: `url` names no store. StoreError: its server cannot be reached.
    """
    return engine.database_at(url or default_url()).is_there()


def on_server(url: str | None) -> bool:
    """Whether the store is in a database of a server, and not in a file of this machine.

    Raises:
        BadInput: `url` names no store.
    """
    return engine.database_at(url or default_url()).path is None


def name_of(url: str | None) -> str:
    """How the store is shown.

    Raises:
        BadInput: `url` names no store.
    """
    return engine.database_at(url or default_url()).name


def file_of(url: str | None) -> Path | None:
    """The store's file; None where it is on a server.

    Raises:
        BadInput: `url` names no store.
    """
    return engine.database_at(url or default_url()).path


def wakeups(
    connection: sa.Connection,
    goal: int,
    *,
    newest: int | None = None,
    skip: int = 0,
    numbers: Collection[int] | None = None,
) -> list[WakeupSeen]:
    """The goal's wakeups, oldest first.

    Args:
        newest: only so many of the newest. skip: how many of the newest to leave out before.
        numbers: only those with these numbers.
    """
    context = (
        sa.select(
            t.contexts.c.wakeup, t.contexts.c.tokens, t.contexts.c.sha256, t.contexts.c.completion_phrases
        )
        .where(t.contexts.c.n == 0)
        .subquery()
    )
    statement = (
        sa.select(
            t.wakeups,
            context.c.tokens.label("context_tokens"),
            context.c.sha256.label("context_sha256"),
            context.c.completion_phrases,
            t.goals.c.revision.label("goal_revision"),
        )
        .join_from(t.wakeups, t.goals)
        .outerjoin(context, context.c.wakeup == t.wakeups.c.id)
        .where(t.wakeups.c.goal == goal)
        .order_by(t.wakeups.c.seq.desc())
    )
    if numbers is not None:
        statement = statement.where(t.wakeups.c.seq.in_(numbers))
    if newest is not None:
        statement = statement.limit(newest)
    rows = held(connection, statement.offset(skip) if skip else statement, lambda row: f"wakeup {row.seq}")
    return [_wakeup(row) for row in reversed(rows)]


def last_wakeup(connection: sa.Connection, goal: int) -> WakeupSeen | None:
    """The goal's newest wakeup."""
    newest = wakeups(connection, goal, newest=1)
    return newest[0] if newest else None


def contexts(connection: sa.Connection, wakeup: int, *, later: bool = False) -> list[ContextSeen]:
    """The context that the wakeup with this id began with; empty if it ended before it had one.

    Args:
        later: also those that took the place of its conversation.
    """
    chosen = [t.contexts.c.wakeup == wakeup]
    if not later:
        chosen.append(t.contexts.c.n == 0)
    statement = sa.select(t.contexts).where(*chosen).order_by(t.contexts.c.n)
    rows = held(connection, statement, lambda row: f"context {row.n}")
    texts = bodies.shown(connection, [row.body for row in rows])
    return [
        ContextSeen(
            texts.get(row.body or 0, ""),
            row.sha256,
            row.tokens,
            row.encoding,
            row.completion_phrases,
            _sections(row.sections),
        )
        for row in rows
    ]


def _sections(value: Any) -> Sequence[Mapping[str, Any]]:
    found = objects("a context's sections", value, "name", "tokens")
    for one in found:
        if not isinstance(one["tokens"], int):
            raise StoreUnreadable(
                f"section {one['name']}: tokens is {one['tokens']!r}, a number was expected"
            )
    return found


def checks(connection: sa.Connection, goal: int, *, newest: int = 50) -> list[CheckSeen]:
    """The goal's newest checks, oldest first."""
    ids = sa.select(t.checks.c.id).where(t.checks.c.goal == goal).order_by(t.checks.c.id.desc()).limit(newest)
    return _checks(connection, sa.select(ids.subquery()))


def checks_of(connection: sa.Connection, goal: int, wakeup: int) -> list[CheckSeen]:
    """All checks that the goal's wakeup with this id made, oldest first."""
    made = (t.checks.c.goal == goal, t.checks.c.wakeup == wakeup)
    return _checks(connection, sa.select(t.checks.c.id).where(*made))


def _checks(connection: sa.Connection, ids: sa.Select[tuple[int]]) -> list[CheckSeen]:
    statement = (
        sa.select(t.checks, t.wakeups.c.seq.label("wakeup_seq"))
        .outerjoin(t.wakeups, t.wakeups.c.id == t.checks.c.wakeup)
        .where(t.checks.c.id.in_(ids))
        .order_by(t.checks.c.id)
    )
    rows = held(connection, statement, lambda row: f"check of {row.subject}")
    tails = bodies.shown(connection, [row.tail for row in rows])
    return [
        CheckSeen(
            row.wakeup_seq,
            row.subject,
            row.passed,
            row.exit_code,
            row.sha256,
            tails.get(row.tail or 0, ""),
            row.at,
        )
        for row in rows
    ]


def last_checks(connection: sa.Connection, goal: int, revision: int) -> dict[str, CheckSeen]:
    """The newest check of each requirement and deliverable at one revision of the contract, by its subject."""
    newest = (
        sa.select(sa.func.max(t.checks.c.id))
        .where(t.checks.c.goal == goal, t.checks.c.revision == revision)
        .group_by(t.checks.c.subject)
    )
    return {check.subject: check for check in _checks(connection, sa.select(newest.subquery()))}


def inbox(connection: sa.Connection, goal: int, *, newest: int = 50) -> list[Said]:
    """What users said to the goal, oldest first."""
    statement = sa.select(t.inbox).where(t.inbox.c.goal == goal).order_by(t.inbox.c.id.desc()).limit(newest)
    rows = held(connection, statement, lambda row: row.kind)
    return [
        Said(row.kind, row.text, row.at, row.question, row.superseded_by is None) for row in reversed(rows)
    ]


def _wakeup(row: sa.Row[Any]) -> WakeupSeen:
    pending = row.pending_exit
    holds = isinstance(pending, Mapping) and pending.get("revision") == row.goal_revision
    if row.sandbox not in list(SandboxMode):
        raise StoreUnreadable(
            f"wakeup {row.seq}: sandbox is {row.sandbox!r}, which this goalmode does not know"
        )
    owner = Owner(row.owner, row.host_label, row.pid, row.pid_start, row.boot_id)
    return WakeupSeen(
        id=row.id,
        seq=row.seq,
        fence=row.fence,
        lease=Lease(owner, row.lease_ms),
        exit_reason=row.exit_reason,
        exit_detail=row.exit_detail,
        exit_facts=_facts(row, "exit_facts"),
        turns=row.turns,
        tokens=row.tokens,
        recoveries=row.recoveries,
        rejections=row.rejections,
        progress=row.progress,
        progress_by=_facts(row, "progress_by"),
        sandbox=row.sandbox,
        started_at=row.started_at,
        ended_at=row.ended_at,
        context_tokens=row.context_tokens,
        context_sha256=row.context_sha256,
        completion_phrases=row.completion_phrases,
        pending_exit=pending if holds else None,
    )


def _facts(row: sa.Row[Any], column: str) -> Mapping[str, Any]:
    value = an_object(f"wakeup {row.seq}: {column}", getattr(row, column) or {})
    return {k: v for k, v in value.items() if k != "v"}
