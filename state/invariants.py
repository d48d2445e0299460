"""What holds in every store after every commit, whoever wrote it and whatever died: looked at as a whole.

Each rule is one statement that finds what breaks it, so that a store of many goals is walked through a few times only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlmodel import SQLModel

from goalmode.domain.exits import ExitReason, GoalStatus
from goalmode.domain.goal import Control
from goalmode.domain.questions import QuestionStatus
from goalmode.domain.wake import SourceStatus
from goalmode.state import tables as t
from goalmode.state.store import Store
from goalmode.state.tables import Purpose, TurnState
from goalmode.state.upkeep import FINISHED, PRUNED

_COUNTED = (Purpose.WORK, Purpose.RECOVERY, Purpose.WRAP_UP)
_TURNS = (TurnState.OPEN, TurnState.DONE)

_G, _W, _T, _C = t.goals.c, t.wakeups.c, t.turns.c, t.tool_calls.c


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that must not be. `goal` is its public id, empty for what is of the store as a whole."""

    goal: str
    rule: str
    detail: str


@dataclass(frozen=True, slots=True)
class Checked:
    """How much was looked at, and what was found."""

    goals: int
    wakeups: int
    turns: int
    findings: tuple[Finding, ...]


def check(store: Store) -> Checked:
    """Look at the whole store at one moment; others may go on writing.

    Raises:
        StoreError: it cannot be read.
    """
    found = [Finding("", "integrity", line) for line in store.database.faults()]
    with store.reading() as connection:
        for rule, looks in _RULES.items():
            found += [Finding(goal, rule, detail) for goal, detail in looks(connection)]
        goals, wakeups, turns = (
            connection.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
            for table in (t.goals, t.wakeups, t.turns)
        )
    return Checked(goals, wakeups, turns, tuple(found))


def _orphans(connection: sa.Connection) -> Iterator[tuple[str, str]]:
    for table in SQLModel.metadata.sorted_tables:
        for key in table.foreign_keys:
            parent = key.column.table
            gone = ~sa.exists(
                sa.select(1).where(key.column == key.parent).correlate(table).select_from(parent)
            )
            count = sa.select(sa.func.count()).select_from(table).where(key.parent.is_not(None), gone)
            if number := connection.execute(count).scalar_one():
                yield "", f"{table.name}: {number} rows of {parent.name} that are gone"


def _bodies(connection: sa.Connection) -> Iterator[tuple[str, str]]:
    named = sa.union_all(*(sa.select(c.label("body")).where(c.is_not(None)) for c in t.BODIES)).subquery()
    unnamed = sa.except_(sa.select(t.bodies.c.id), sa.select(named.c.body)).subquery()
    if number := connection.execute(sa.select(sa.func.count()).select_from(unnamed)).scalar_one():
        yield "", f"{number} bodies that no row names"
    pruned = sa.exists().where(t.events.c.goal == _G.id, t.events.c.kind == PRUNED)
    for column in t.BODIES:
        table = column.table
        gone = ~sa.exists().where(t.bodies.c.id == column)
        joined = table if "goal" in table.c else table.join(t.wakeups, _W.id == table.c.wakeup)
        goal = table.c.goal if "goal" in table.c else _W.goal
        missing = (
            sa.select(_G.uid, sa.func.count())
            .select_from(joined.join(t.goals, _G.id == goal))
            .where(column.is_not(None), gone, ~pruned)
            .group_by(_G.uid)
        )
        for uid, number in connection.execute(missing):
            yield uid, f"{number} bodies of {table.name}.{column.name} are missing, and were not pruned"


def _open_wakeups(connection: sa.Connection) -> Iterator[tuple[str, str]]:
    several = _of_goals(_W.exit_reason.is_(None)).add_columns(sa.func.count()).group_by(_G.uid)
    for uid, number in connection.execute(several.having(sa.func.count() > 1)):
        yield uid, f"{number} wakeups are open at once"
    ended = (_W.exit_reason.is_(None)) != (_W.ended_at.is_(None))
    for uid, seq in connection.execute(_of_goals(ended).add_columns(_W.seq)):
        yield uid, f"wakeup {seq} has an exit reason or an end, but not both"


def _numbers(connection: sa.Connection) -> Iterator[tuple[str, str]]:
    wakeups = _of_goals().add_columns(sa.func.count(), sa.func.max(_W.seq)).group_by(_G.uid)
    for uid, count, last in connection.execute(wakeups.having(sa.func.count() != sa.func.max(_W.seq))):
        yield uid, f"{count} wakeups are numbered up to {last}"
    turns = (
        sa.select(_G.uid, _W.seq, sa.func.count(), sa.func.max(_T.seq))
        .join_from(t.turns, t.wakeups, _W.id == _T.wakeup)
        .join(t.goals, _G.id == _W.goal)
        .group_by(_G.uid, _W.seq)
    )
    for uid, seq, count, last in connection.execute(turns.having(sa.func.count() != sa.func.max(_T.seq))):
        yield uid, f"{count} turns of wakeup {seq} are numbered up to {last}"
    revisions = t.goal_revisions.c
    contracts = sa.select(sa.func.count()).where(revisions.goal == _G.id).scalar_subquery()
    for uid, revision, count in connection.execute(
        sa.select(_G.uid, _G.revision, contracts).where(_G.revision != contracts)
    ):
        yield uid, f"it is at revision {revision}, and {count} are stored"


def _fences(connection: sa.Connection) -> Iterator[tuple[str, str]]:
    later = t.wakeups.alias("later")
    shrunk = _of_goals().join(later, sa.and_(later.c.goal == _W.goal, later.c.seq == _W.seq + 1))
    shrunk = shrunk.where(later.c.fence <= _W.fence).add_columns(later.c.seq, later.c.fence, _W.fence)
    for uid, seq, fence, before in connection.execute(shrunk):
        yield uid, f"wakeup {seq} has fence {fence}, the one before it {before}"
    for uid, seq, fence in connection.execute(_of_goals(_W.fence > _G.fence).add_columns(_W.seq, _W.fence)):
        yield uid, f"wakeup {seq} has fence {fence}, which its goal never had"


def _outcomes(connection: sa.Connection) -> Iterator[tuple[str, str]]:
    closed = _W.exit_reason.is_not(None)
    calls = _of_goals(closed, _C.outcome.is_(None)).join(t.tool_calls, _C.wakeup == _W.id)
    for uid, seq, call in connection.execute(calls.add_columns(_W.seq, _C.call_id)):
        yield uid, f"call {call} of wakeup {seq} has no outcome, and the wakeup has ended"
    turns = _of_goals(closed, _T.state == TurnState.OPEN).join(t.turns, _T.wakeup == _W.id)
    for uid, wakeup, seq in connection.execute(turns.add_columns(_W.seq, _T.seq)):
        yield uid, f"turn {seq} of wakeup {wakeup} is open, and the wakeup has ended"
    strays = _of_goals(_T.wakeup != _C.wakeup).join(t.tool_calls, _C.wakeup == _W.id)
    for uid, call in connection.execute(strays.join(t.turns, _T.id == _C.turn).add_columns(_C.call_id)):
        yield uid, f"call {call} is of one wakeup, and its turn of another"


def _totals(connection: sa.Connection) -> Iterator[tuple[str, str]]:
    counted = sa.case((sa.and_(_T.purpose.in_(_COUNTED), _T.state.in_(_TURNS)), 1), else_=0)
    used = _T.input - _T.cached + _T.output
    sums = {
        "turns": (_G.spent_turns, counted),
        "input": (_G.spent_input, _T.input),
        "cached": (_G.spent_cached, _T.cached),
        "cache_write": (_G.spent_cache_write, _T.cache_write),
        "output": (_G.spent_output, _T.output),
        "cost_micro": (_G.spent_cost_micro, _T.cost_micro),
    }
    of_goals = (
        sa.select(_W.goal, *(_sum(one).label(name) for name, (_, one) in sums.items()))
        .join_from(t.turns, t.wakeups, _W.id == _T.wakeup)
        .group_by(_W.goal)
        .subquery()
    )
    joined = t.goals.outerjoin(of_goals, of_goals.c.goal == _G.id)
    for name, (spent, _) in sums.items():
        real = sa.func.coalesce(of_goals.c[name], 0)
        for uid, total, is_ in connection.execute(
            sa.select(_G.uid, spent, real).select_from(joined).where(spent != real)
        ):
            yield uid, f"spent_{name} is {total}, its turns make {int(is_)}"
    wakeups = _of_goals().outerjoin(t.turns, _T.wakeup == _W.id).group_by(_G.uid, _W.seq, _W.turns, _W.tokens)
    wakeups = wakeups.add_columns(_W.seq, _W.turns, _sum(counted), _W.tokens, _sum(used))
    for uid, seq, turns, real_turns, tokens, real_tokens in connection.execute(
        wakeups.having(sa.or_(_W.turns != _sum(counted), _W.tokens != _sum(used)))
    ):
        told = f"{turns} turns and {tokens} tokens"
        yield uid, f"wakeup {seq} counts {told}, its turns make {int(real_turns)} and {int(real_tokens)}"


def _statuses(connection: sa.Connection) -> Iterator[tuple[str, str]]:
    running = sa.exists().where(_W.goal == _G.id, _W.exit_reason.is_(None))
    source = t.wake_sources.c
    waits = sa.exists().where(source.goal == _G.id, source.status == SourceStatus.OPEN)
    question = t.questions.c
    asked = sa.exists().where(question.goal == _G.id, question.status == QuestionStatus.OPEN)
    last = (
        sa.select(_W.exit_reason).where(_W.goal == _G.id).order_by(_W.seq.desc()).limit(1).scalar_subquery()
    )
    active = _G.status == GoalStatus.ACTIVE
    rules = {
        "is active, and nothing will ever wake it": sa.and_(
            active, _G.next_wakeup_at.is_(None), ~running, ~waits
        ),
        "is not active, and is to be woken": sa.and_(~active, _G.next_wakeup_at.is_not(None)),
        "was asked to stop, and nobody runs it": sa.and_(_G.control != Control.NONE, ~running),
        "waits for the user, and asks nothing": sa.and_(_G.status == GoalStatus.WAITING_USER, ~asked),
        "is over, and asks something": sa.and_(_G.status.in_(FINISHED), asked),
        "is done, and its last wakeup ended otherwise": sa.and_(
            _G.status == GoalStatus.DONE, last != ExitReason.CURRENT_TASK_DONE
        ),
        "has made a wrap-up for limits that it does not have yet": _G.wrapped_limits_rev > _G.limits_rev,
    }
    for told, broken in rules.items():
        for uid in connection.execute(sa.select(_G.uid).where(broken)).scalars():
            yield uid, told


def _memories(connection: sa.Connection) -> Iterator[tuple[str, str]]:
    memory = t.memories
    words = sa.table("memories_fts", sa.column("rowid", sa.BigInteger))
    unfound = sa.except_(sa.select(memory.c.id), sa.select(words.c.rowid)).subquery()
    if number := connection.execute(sa.select(sa.func.count()).select_from(unfound)).scalar_one():
        yield "", f"{number} memories that no search finds"


def _of_goals(*chosen: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """Public ids of goals, beside their wakeups."""
    return sa.select(_G.uid).join_from(t.wakeups, t.goals, _G.id == _W.goal).where(*chosen)


def _sum(column: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    return sa.func.coalesce(sa.func.sum(column), 0)


_RULES: dict[str, Callable[[sa.Connection], Iterator[tuple[str, str]]]] = {
    "orphans": _orphans,
    "bodies": _bodies,
    "open_wakeups": _open_wakeups,
    "numbers": _numbers,
    "fences": _fences,
    "outcomes": _outcomes,
    "totals": _totals,
    "statuses": _statuses,
    "memories": _memories,
}
