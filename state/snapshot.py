"""One consistent read of a goal -> `Snapshot`, from which its next context is rendered.

The work is the same after 10 or 100,000 turns: the goal's row, capped lists, the newest checkpoint, the last calls.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
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

_NEVER = 2**62
"""A wakeup's number that no wakeup has."""

# Every context is rendered from these: a statement that is built anew each time takes longer to build than to run.
_GOAL = sa.bindparam("wanted", type_=sa.BigInteger)
_MOST = sa.bindparam("most", type_=sa.Integer)
_LAST = (
    sa.select(
        *(t.wakeups.c[name] for name in ("id", "seq", "exit_reason", "exit_detail", "turns", "ended_at"))
    )
    .where(t.wakeups.c.goal == _GOAL, t.wakeups.c.seq < sa.bindparam("before", type_=sa.BigInteger))
    .order_by(t.wakeups.c.seq.desc())
    .limit(1)
)
_CHECKPOINT = (
    sa.select(t.checkpoints.c.wakeup, t.checkpoints.c.body)
    .where(t.checkpoints.c.goal == _GOAL)
    .order_by(t.checkpoints.c.id.desc())
    .limit(1)
)
_ITEMS = sa.select(t.work_items).where(t.work_items.c.goal == _GOAL).order_by(t.work_items.c.number)
_WAKEUPS = (
    sa.select(t.wakeups.c.id)
    .where(t.wakeups.c.goal == _GOAL)
    .order_by(t.wakeups.c.seq.desc())
    .limit(MAX_WAKEUPS)
)
_OF_WAKEUP = t.tool_calls.c.wakeup == sa.bindparam("wakeup", type_=sa.BigInteger)
_ACTIONS = (
    sa.select(
        *(t.tool_calls.c[name] for name in ("call_id", "tool", "brief", "outcome", "exit_code")),
        t.wakeups.c.seq.label("wakeup_seq"),
        t.turns.c.seq.label("turn_seq"),
    )
    .join_from(t.tool_calls, t.turns)
    .join(t.wakeups, t.wakeups.c.id == t.tool_calls.c.wakeup)
    .where(_OF_WAKEUP)
    .order_by(t.tool_calls.c.id.desc())
    .limit(_MOST)
)
_SUCCEEDED = (
    sa.select(t.tool_calls.c.tool, t.tool_calls.c.args_sha, t.tool_calls.c.result_sha)
    .where(_OF_WAKEUP, t.tool_calls.c.outcome == CallOutcome.SUCCESS, t.tool_calls.c.result_sha.is_not(None))
    .order_by(t.tool_calls.c.id.desc())
    .limit(_MOST)
)
_INBOX = (
    sa.select(t.inbox.c.id, t.inbox.c.kind, t.inbox.c.text, t.inbox.c.at)
    .where(
        t.inbox.c.goal == _GOAL,
        t.inbox.c.superseded_by.is_(None),
        t.inbox.c.kind.in_(SPOKEN),
        t.inbox.c.question.is_(None),
    )
    .order_by(t.inbox.c.id.desc())
    .limit(MAX_INBOX)
)


def snapshot(store: Store, goal: int, *, now: datetime, running: int | None = None) -> Snapshot:
    """The goal's state at one moment. Deliverables are not looked at: that is the orchestrator's, outside the store.

    Args:
        running: the number of the wakeup that is to be rendered again; None for the one that comes next.
    """
    with store.reading() as connection:
        return read(connection, goal, now=now, running=running)


def read(connection: sa.Connection, goal_id: int, *, now: datetime, running: int | None = None) -> Snapshot:
    goal = goals.read(connection, goal_id)
    last = connection.execute(
        _LAST, {"wanted": goal.id, "before": _NEVER if running is None else running}
    ).first()
    following = 1 if last is None else last.seq + 1
    head = memory.head(connection)
    return Snapshot(
        goal=goal,
        wakeup=following if running is None else running,
        now=now,
        work=work_state(connection, goal),
        actions=_actions(connection, goal),
        inbox=_inbox(connection, goal),
        questions=questions.shown(connection, goal),
        memories=_memories(connection, goal) if head else (),
        memory_head=head,
        last=None if last is None else _ending(last),
        earlier=_earlier(connection, last) if goal.settings.policy is ContextPolicy.REPLAY else (),
    )


def recent_results(store: Store, goal: int, limit: int) -> list[tuple[str, str, str]]:
    """What the goal has seen: (tool, arguments' hash, result's hash) of its newest successful calls.

    And ("check", subject, hash) of each requirement and deliverable that held when it was last checked.
    """
    with store.reading() as connection:
        known = goals.read(connection, goal)
        seen = [
            (r.tool, r.args_sha, r.result_sha) for r in _newest_calls(connection, goal, _SUCCEEDED, limit)
        ]
    passed = [r.id for r in known.requirements if r.status is RequirementStatus.PASSED]
    seen += [("check", subject, str(None)) for subject in passed]
    return seen + [("check", d.path, d.sha_seen) for d in known.deliverables if d.sha_seen is not None]


def work_state(connection: sa.Connection, goal: Goal) -> WorkState:
    newest = connection.execute(_CHECKPOINT, {"wanted": goal.id}).first()
    saved = WorkState()
    if newest is not None:
        saved = mapping.checkpoint_from_json(goal.uid, newest.wakeup, newest.body)
    rows = connection.execute(_ITEMS, {"wanted": goal.id})
    return replace(saved, items=tuple(mapping.item_from_row(goal.uid, r) for r in rows))


def _actions(connection: sa.Connection, goal: Goal) -> tuple[Action, ...]:
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
        for r in reversed(_newest_calls(connection, goal.id, _ACTIONS, MAX_ACTIONS))
    )


def _newest_calls(
    connection: sa.Connection, goal: int, statement: sa.Select[Any], limit: int
) -> list[sa.Row[Any]]:
    """Rows of the goal's newest calls, newest first, wakeup by wakeup: a sort over all of them would grow with them."""
    rows: list[sa.Row[Any]] = []
    for wakeup in connection.execute(_WAKEUPS, {"wanted": goal}).scalars().all():
        rows += connection.execute(statement, {"wakeup": wakeup, "most": limit - len(rows)}).all()
        if len(rows) >= limit:
            break
    return rows


def _inbox(connection: sa.Connection, goal: Goal) -> tuple[InboxEntry, ...]:
    """What stands by itself: an answer stands beside its question."""
    rows = connection.execute(_INBOX, {"wanted": goal.id}).all()
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
        sa.select(t.turns.c.id, t.turns.c.reply, t.turns.c.results)
        .where(t.turns.c.wakeup == last.id, t.turns.c.reply.is_not(None))
        .order_by(t.turns.c.seq)
    ).all()
    calls = connection.execute(
        sa.select(t.tool_calls.c.turn, t.tool_calls.c.call_id, t.tool_calls.c.result).where(
            t.tool_calls.c.wakeup == last.id, t.tool_calls.c.result.is_not(None)
        )
    ).all()
    texts = bodies.get(connection, [context, *(r.reply for r in rows), *(r.results for r in rows)])
    results = bodies.shown(connection, [call.result for call in calls])
    own: dict[int, dict[str, str]] = defaultdict(dict)
    for call in calls:
        own[call.turn][call.call_id] = results[call.result]
    messages = list(context_messages(texts.get(context or 0, "")))
    for row in rows:
        reply = reply_from_json(texts.get(row.reply, ""))
        stored = messages_from_json(texts.get(row.results or 0, ""))
        messages += [reply, *_answers(reply, stored, own[row.id])]
    return tuple(messages)


def _answers(reply: Assistant, stored: Sequence[Message], own: Mapping[str, str]) -> list[Message]:
    """A result for each call, also for one that a crash left without, and what the host said then.

    Args:
        stored: what the turn keeps by itself: results that are not their calls' own, and prompts.
        own: the calls' own results.
    """
    told = {m.call_id: m for m in stored if isinstance(m, ToolResult)}
    lost = "interrupted: no result was recorded"
    results = [told.get(c.id, ToolResult(c.id, c.name, own.get(c.id, lost))) for c in reply.calls]
    return [*results, *(m for m in stored if isinstance(m, User))]


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
