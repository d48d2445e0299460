"""One consistent read of a goal -> `Snapshot`, from which its next context is rendered.

The work is the same after 10 or 100,000 turns: the goal's row, capped lists, the newest checkpoint, the last calls.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from goalmode.domain.calls import CallOutcome
from goalmode.domain.contract import RequirementStatus
from goalmode.domain.exits import ExitReason
from goalmode.domain.goal import ContextPolicy, Goal
from goalmode.domain.memory import Memory
from goalmode.domain.messages import Assistant, Message, ToolResult, User
from goalmode.domain.snapshot import Action, InboxEntry, LastEnding, Snapshot
from goalmode.domain.work import WorkState
from goalmode.errors import StoreUnreadable
from goalmode.state import bodies, goals, mapping, memory, questions
from goalmode.state import tables as t
from goalmode.state.notes import SPOKEN
from goalmode.state.said import messages_from_json, reply_from_json
from goalmode.state.store import Store

MAX_ACTIONS = 40
MAX_WAKEUPS = 20
"""Wakeups back in which calls are looked for."""

MAX_INBOX = 50


def snapshot(store: Store, goal: int, *, now: datetime, running: int | None = None) -> Snapshot:
    """The goal's state at one moment. Deliverables are not looked at: that is the orchestrator's, outside the store.

    Args:
        running: the number of the wakeup that is to be rendered again; None for the one that comes next.
    """
    with store.reading() as connection:
        return read(connection, goal, now=now, running=running)


def read(connection: sa.Connection, goal_id: int, *, now: datetime, running: int | None = None) -> Snapshot:
    goal = goals.read(connection, goal_id)
    before = [t.wakeups.c.goal == goal.id]
    if running is not None:
        before.append(t.wakeups.c.seq < running)
    last = connection.execute(
        sa.select(t.wakeups).where(*before).order_by(t.wakeups.c.seq.desc()).limit(1)
    ).first()
    following = 1 if last is None else last.seq + 1
    return Snapshot(
        goal=goal,
        wakeup=following if running is None else running,
        now=now,
        work=work_state(connection, goal),
        actions=_actions(connection, goal),
        inbox=_inbox(connection, goal),
        questions=questions.shown(connection, goal),
        memories=_memories(connection, goal),
        memory_head=memory.head(connection),
        last=None if last is None else _ending(last),
        earlier=_earlier(connection, last) if goal.settings.policy is ContextPolicy.REPLAY else (),
    )


def recent_results(store: Store, goal: int, limit: int) -> list[tuple[str, str, str]]:
    """What the goal has seen: (tool, arguments' hash, result's hash) of its newest successful calls.

    And ("check", subject, hash) of each requirement and deliverable that held when it was last checked.
    """
    calls = t.tool_calls.c
    succeeded = sa.select(calls.tool, calls.args_sha, calls.result_sha).where(
        calls.outcome == CallOutcome.SUCCESS, calls.result_sha.is_not(None)
    )
    with store.reading() as connection:
        known = goals.read(connection, goal)
        seen = [(r.tool, r.args_sha, r.result_sha) for r in _newest_calls(connection, goal, succeeded, limit)]
    passed = [r.id for r in known.requirements if r.status is RequirementStatus.PASSED]
    seen += [("check", subject, str(None)) for subject in passed]
    return seen + [("check", d.path, d.sha_seen) for d in known.deliverables if d.sha_seen is not None]


def work_state(connection: sa.Connection, goal: Goal) -> WorkState:
    newest = connection.execute(
        sa.select(t.checkpoints)
        .where(t.checkpoints.c.goal == goal.id)
        .order_by(t.checkpoints.c.id.desc())
        .limit(1)
    ).first()
    saved = WorkState()
    if newest is not None:
        saved = mapping.checkpoint_from_json(goal.uid, newest.wakeup, newest.body)
    rows = connection.execute(
        sa.select(t.work_items).where(t.work_items.c.goal == goal.id).order_by(t.work_items.c.number)
    )
    return replace(saved, items=tuple(mapping.item_from_row(goal.uid, r) for r in rows))


def _actions(connection: sa.Connection, goal: Goal) -> tuple[Action, ...]:
    statement = (
        sa.select(t.tool_calls, t.wakeups.c.seq.label("wakeup_seq"), t.turns.c.seq.label("turn_seq"))
        .join_from(t.tool_calls, t.turns)
        .join(t.wakeups, t.wakeups.c.id == t.tool_calls.c.wakeup)
    )
    return tuple(
        Action(
            r.wakeup_seq,
            r.turn_seq,
            r.call_id,
            r.tool,
            r.brief,
            mapping.word(goal.uid, "tool_call.outcome", CallOutcome, r.outcome or "interrupted"),
            r.exit_code,
        )
        for r in reversed(_newest_calls(connection, goal.id, statement, MAX_ACTIONS))
    )


def _newest_calls(
    connection: sa.Connection, goal: int, statement: sa.Select[Any], limit: int
) -> list[sa.Row[Any]]:
    """Rows of the goal's newest calls, newest first, wakeup by wakeup: a sort over all of them would grow with them."""
    newest = sa.select(t.wakeups.c.id).where(t.wakeups.c.goal == goal).order_by(t.wakeups.c.seq.desc())
    rows: list[sa.Row[Any]] = []
    for wakeup in connection.execute(newest.limit(MAX_WAKEUPS)).scalars().all():
        of_wakeup = statement.where(t.tool_calls.c.wakeup == wakeup).order_by(t.tool_calls.c.id.desc())
        rows += connection.execute(of_wakeup.limit(limit - len(rows))).all()
        if len(rows) >= limit:
            break
    return rows


def _inbox(connection: sa.Connection, goal: Goal) -> tuple[InboxEntry, ...]:
    """What stands by itself: an answer stands beside its question."""
    rows = connection.execute(
        sa.select(t.inbox)
        .where(
            t.inbox.c.goal == goal.id,
            t.inbox.c.superseded_by.is_(None),
            t.inbox.c.kind.in_(SPOKEN),
            t.inbox.c.question.is_(None),
        )
        .order_by(t.inbox.c.id.desc())
        .limit(MAX_INBOX)
    ).all()
    return tuple(InboxEntry(r.id, r.kind, r.text, r.at) for r in reversed(rows))


def _memories(connection: sa.Connection, goal: Goal) -> tuple[Memory, ...]:
    if not goal.settings.user_tools:
        return ()
    return memory.relevant(connection, goal.workspace, goal.objective)


def _ending(row: sa.Row[Any]) -> LastEnding:
    try:
        reason = ExitReason(row.exit_reason or ExitReason.INTERRUPTED)
    except ValueError:
        raise StoreUnreadable(
            f"wakeup {row.seq}: exit_reason is {row.exit_reason!r}, which is not known"
        ) from None
    return LastEnding(row.seq, reason, row.exit_detail, row.turns, row.ended_at)


def _earlier(connection: sa.Connection, last: sa.Row[Any] | None) -> tuple[Message, ...]:
    """The messages of the last wakeup's first context, which hold those of all before it, and its own turns."""
    if last is None:
        return ()
    context = connection.execute(
        sa.select(t.contexts.c.messages).where(t.contexts.c.wakeup == last.id, t.contexts.c.n == 0)
    ).scalar()
    rows = connection.execute(
        sa.select(t.turns.c.reply, t.turns.c.results)
        .where(t.turns.c.wakeup == last.id, t.turns.c.reply.is_not(None))
        .order_by(t.turns.c.seq)
    ).all()
    texts = bodies.get(connection, [context, *(r.reply for r in rows), *(r.results for r in rows)])
    messages = list(context_messages(texts.get(context or 0, "")))
    for row in rows:
        reply = reply_from_json(texts.get(row.reply, ""))
        messages += [reply, *_answers(reply, messages_from_json(texts.get(row.results or 0, "")))]
    return tuple(messages)


def _answers(reply: Assistant, stored: tuple[Message, ...]) -> list[Message]:
    """The stored results, and one for each call that a crash left without."""
    answered = {m.call_id for m in stored if isinstance(m, ToolResult)}
    missing = [
        ToolResult(c.id, c.name, "interrupted: no result was recorded")
        for c in reply.calls
        if c.id not in answered
    ]
    return [
        *(m for m in stored if isinstance(m, ToolResult)),
        *missing,
        *(m for m in stored if isinstance(m, User)),
    ]


def context_messages(text: str) -> tuple[Message, ...]:
    """A stored context's messages but its system prompt. Replayed turns are stored as `Rendered` gave them."""
    rows = json.loads(text) if text else []
    messages: list[Message] = []
    for row in rows:
        match row:
            case ["user", body]:
                messages.append(User(body))
            case ["assistant", body, calls]:
                messages.append(reply_from_json(json.dumps({"text": body, "calls": calls})))
            case ["tool", call_id, name, body]:
                messages.append(ToolResult(call_id, name, body))
            case _:
                pass
    return tuple(messages)


def context_to_rows(messages: tuple[Message, ...]) -> list[list[Any]]:
    """The form in which a context's messages are stored."""
    rows: list[list[Any]] = []
    for message in messages:
        match message:
            case User(text):
                rows.append(["user", text])
            case Assistant(text, calls):
                rows.append(
                    [
                        "assistant",
                        text,
                        [{"id": c.id, "name": c.name, "arguments": c.arguments} for c in calls],
                    ]
                )
            case ToolResult(call_id, name, text):
                rows.append(["tool", call_id, name, text])
            case _:
                pass
    return rows
