"""What inspection reads: rows as values, words as they are stored. Nothing here writes, and nothing is judged.

Everything takes a connection of `Store.reading`, so that one inspection is one consistent view.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from goalmode.errors import StoreUnreadable
from goalmode.state import bodies, engine, migrate
from goalmode.state import tables as t
from goalmode.state.owner import Lease, Owner
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
    started_at: datetime
    ended_at: datetime | None
    context_tokens: int | None
    context_sha256: str | None
    completion_phrases: int | None
    pending_exit: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class CallSeen:
    """One tool call. `outcome` is None as long as none is stored. The bodies are ids.

    Attributes:
        known_by: the same for equal calls with equal results.
    """

    call_id: str
    tool: str
    effect: str | None
    outcome: str | None
    exit_code: int | None
    milliseconds: int
    brief: str
    result_bytes: int
    result: int | None
    known_by: str


@dataclass(frozen=True, slots=True)
class TurnSeen:
    """One model call. Tokens are input (cached and cache_write being parts of it) and output.

    Its cost is in micro-dollars; its price, that of its model when it was made, in micro-dollars for a million tokens.
    """

    wakeup: int
    seq: int
    purpose: str
    state: str
    stop_reason: str
    stop_raw: str | None
    stop_native: str | None
    stop_detail: str
    provider: str
    model: str
    request_id: str | None
    movement: str
    started_at: datetime
    ended_at: datetime | None
    input: int
    cached: int
    cache_write: int
    output: int
    estimated: bool
    cost_micro: int
    price: Mapping[str, int] | None
    repairs: Sequence[Mapping[str, Any]]
    reply: int | None
    calls: tuple[CallSeen, ...]


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
    rows = connection.execute(statement.offset(skip) if skip else statement).all()
    return [_wakeup(row) for row in reversed(rows)]


def last_wakeup(connection: sa.Connection, goal: int) -> WakeupSeen | None:
    """The goal's newest wakeup."""
    newest = wakeups(connection, goal, newest=1)
    return newest[0] if newest else None


def turns(
    connection: sa.Connection,
    goal: int,
    *,
    wakeup: int | None = None,
    after: tuple[int, int] | None = None,
    limit: int | None = None,
    offset: int = 0,
    newest: bool = False,
) -> list[TurnSeen]:
    """The goal's model calls with their tool calls, oldest first.

    Args:
        wakeup: only those of the wakeup with this number.
        after: only those behind this one: the wakeup's number and its own.
        limit, offset: only so many, the first so many left out; counted from the newest if `newest` is set.
    """
    place = (t.wakeups.c.seq, t.turns.c.seq)
    statement = (
        sa.select(t.turns, t.wakeups.c.seq.label("wakeup_seq"))
        .join(t.wakeups, t.wakeups.c.id == t.turns.c.wakeup)
        .where(t.wakeups.c.goal == goal)
        .order_by(*(column.desc() if newest else column for column in place))
    )
    if wakeup is not None:
        statement = statement.where(t.wakeups.c.seq == wakeup)
    if after is not None:
        statement = statement.where(
            t.wakeups.c.seq >= after[0], sa.or_(t.wakeups.c.seq > after[0], t.turns.c.seq > after[1])
        )
    if limit is not None:
        statement = statement.limit(limit)
    rows = list(connection.execute(statement.offset(offset) if offset else statement))
    calls = _calls(connection, [row.id for row in rows])
    return [_turn(row, calls.get(row.id, ())) for row in (reversed(rows) if newest else rows)]


def _calls(connection: sa.Connection, turns: Sequence[int]) -> Mapping[int, Sequence[CallSeen]]:
    """By the ids of turns: their tool calls, in the order in which they were asked for."""
    found: dict[int, list[CallSeen]] = {}
    for start in range(0, len(turns), 500):
        chunk = t.tool_calls.c.turn.in_(turns[start : start + 500])
        rows = connection.execute(
            sa.select(t.tool_calls).where(chunk).order_by(t.tool_calls.c.turn, t.tool_calls.c.position)
        )
        for row in rows:
            found.setdefault(row.turn, []).append(_call(row))
    return found


def texts(connection: sa.Connection, seen: Sequence[TurnSeen]) -> Mapping[int, str]:
    """The bodies of replies and results, by the ids that turns and calls name."""
    wanted = [turn.reply for turn in seen] + [call.result for turn in seen for call in turn.calls]
    return bodies.shown(connection, wanted)


def reply_of(text: str) -> tuple[str, Mapping[str, str]]:
    """What a stored reply said, and the raw arguments of its calls by their ids; none of one that was pruned."""
    if text == bodies.PRUNED:
        return text, {}
    value = json.loads(text) if text else {}
    return value.get("text", ""), {call["id"]: call["arguments"] for call in value.get("calls", ())}


def contexts(connection: sa.Connection, wakeup: int, *, later: bool = False) -> list[ContextSeen]:
    """The context that the wakeup with this id began with; empty if it ended before it had one.

    Args:
        later: also those that took the place of its conversation.
    """
    chosen = [t.contexts.c.wakeup == wakeup]
    if not later:
        chosen.append(t.contexts.c.n == 0)
    rows = connection.execute(sa.select(t.contexts).where(*chosen).order_by(t.contexts.c.n)).all()
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
    known = isinstance(value, list) and all(
        isinstance(one, Mapping) and isinstance(one.get("tokens"), int) and "name" in one for one in value
    )
    if not known:
        raise StoreUnreadable(
            f"a context's sections are {value!r}, a list with names and tokens was expected"
        )
    return list(value)


def checks(connection: sa.Connection, goal: int, *, newest: int = 50) -> list[CheckSeen]:
    """The goal's newest checks, oldest first."""
    ids = sa.select(t.checks.c.id).where(t.checks.c.goal == goal).order_by(t.checks.c.id.desc()).limit(newest)
    return _checks(connection, sa.select(ids.subquery()))


def checks_of(connection: sa.Connection, goal: int, wakeup: int) -> list[CheckSeen]:
    """All checks that the goal's wakeup with this id made, oldest first."""
    made = (t.checks.c.goal == goal, t.checks.c.wakeup == wakeup)
    return _checks(connection, sa.select(t.checks.c.id).where(*made))


def _checks(connection: sa.Connection, ids: sa.Select[tuple[int]]) -> list[CheckSeen]:
    rows = connection.execute(
        sa.select(t.checks, t.wakeups.c.seq.label("wakeup_seq"))
        .outerjoin(t.wakeups, t.wakeups.c.id == t.checks.c.wakeup)
        .where(t.checks.c.id.in_(ids))
        .order_by(t.checks.c.id)
    ).all()
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
    rows = connection.execute(
        sa.select(t.inbox).where(t.inbox.c.goal == goal).order_by(t.inbox.c.id.desc()).limit(newest)
    ).all()
    return [
        Said(row.kind, row.text, row.at, row.question, row.superseded_by is None) for row in reversed(rows)
    ]


def _wakeup(row: sa.Row[Any]) -> WakeupSeen:
    pending = row.pending_exit
    holds = isinstance(pending, Mapping) and pending.get("revision") == row.goal_revision
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
        started_at=row.started_at,
        ended_at=row.ended_at,
        context_tokens=row.context_tokens,
        context_sha256=row.context_sha256,
        completion_phrases=row.completion_phrases,
        pending_exit=pending if holds else None,
    )


def _facts(row: sa.Row[Any], column: str) -> Mapping[str, Any]:
    value = getattr(row, column) or {}
    if not isinstance(value, Mapping):
        raise StoreUnreadable(f"wakeup {row.seq}: {column} is {value!r}, an object was expected")
    return {k: v for k, v in value.items() if k != "v"}


def _call(row: sa.Row[Any]) -> CallSeen:
    return CallSeen(
        row.call_id,
        row.tool,
        row.effect,
        row.outcome,
        row.exit_code,
        row.ms,
        row.brief,
        row.result_bytes,
        row.result,
        f"{row.tool}:{row.args_sha}:{row.outcome}:{row.result_sha}",
    )


def _turn(row: sa.Row[Any], calls: Sequence[CallSeen]) -> TurnSeen:
    return TurnSeen(
        wakeup=row.wakeup_seq,
        seq=row.seq,
        purpose=row.purpose,
        state=row.state,
        stop_reason=row.stop_reason,
        stop_raw=row.stop_raw,
        stop_native=row.stop_native,
        stop_detail=row.stop_detail,
        provider=row.provider,
        model=row.model,
        request_id=row.request_id,
        movement=row.movement,
        started_at=row.started_at,
        ended_at=row.ended_at,
        input=row.input,
        cached=row.cached,
        cache_write=row.cache_write,
        output=row.output,
        estimated=row.estimated,
        cost_micro=row.cost_micro,
        price=None if row.price is None else {k: v for k, v in row.price.items() if k != "v"},
        repairs=row.repairs or (),
        reply=row.reply,
        calls=tuple(calls),
    )
