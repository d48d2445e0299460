"""How a wakeup ends in the store: closed by its owner, or recovered by whoever finds the owner dead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from goalmode.domain.calls import CallOutcome
from goalmode.domain.exits import Exit, ExitReason, GoalStatus
from goalmode.domain.goal import Control, Goal
from goalmode.domain.messages import NO_USAGE, Usage
from goalmode.domain.signals import StopReason
from goalmode.state import mapping, questions, wake_sources
from goalmode.state import tables as t
from goalmode.state.checks import CheckResult, mark_verified
from goalmode.state.exclusion import lock_goal
from goalmode.state.movements import movement_of
from goalmode.state.settlement import Pending
from goalmode.state.store import Store
from goalmode.state.wakeups import Claimed, OpenWakeup, charge, guard, progressed, reserved


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What an ending does to its goal."""

    status: GoalStatus
    status_detail: str
    next_wakeup_at: datetime | None
    wake_reason: str
    streak: int
    failures: int


class ClaimSuperseded(Exception):
    """The goal was edited while its completion was being checked: the claim is judged again at the new revision."""


def recover(
    store: Store,
    goal: Goal,
    dead: OpenWakeup,
    *,
    started: frozenset[str] | None,
    after: Aftermath,
    now: datetime,
    pending: Pending | None = None,
) -> bool:
    """Close a wakeup whose owner is gone as INTERRUPTED; False if somebody else did so first, or edited the goal.

    Calls that had started and have no outcome become `interrupted`, those that had not `skipped`. What the call to
    the model that may have been out was reserved is charged, as an estimate. The fence grows, so that nothing the
    old owner still does can count. A stop that the user asked for, at any time until now, beats `after`.

    Args:
        started: ids of the calls that had; None where nobody can tell: then all may have.
        after: of the ending that the wakeup gets.
        pending: the ending that the owner had stored before it settled. An accepted claim beats the user's stop.
    """
    owner = dead.lease.owner.name
    exit = Exit(ExitReason.INTERRUPTED, f"the process {owner} ended", {"owner": owner})
    if pending is not None:
        exit = pending.exit
    with store.writing() as connection:
        lock_goal(connection, goal.id)
        if pending is not None and not _is_at(connection, goal.id, pending.revision):
            return False
        reserve = _ended(connection, dead, exit, now)
        if reserve is None:
            return False
        _interrupt(connection, dead.id, started)
        _leave_nothing_open(connection, dead.id)
        _charge_lost(connection, goal, dead, reserve, now)
        changes: dict[str, Any] = {"fence": t.goals.c.fence + 1}
        if pending is not None:
            changes["settlement"] = pending.settlement
        if pending is not None and pending.accepted:
            mark_verified(connection, goal.id, pending.checks, now)
        else:
            after = _honoured(connection, goal.id, after)
        settle_goal(connection, goal.id, after, now, **changes)
        return True


def _ended(connection: sa.Connection, dead: OpenWakeup, exit: Exit, now: datetime) -> sa.Row[Any] | None:
    """Give the wakeup its ending; returns what it had reserved, None if somebody else closed it first."""
    return connection.execute(
        sa.update(t.wakeups)
        .where(
            t.wakeups.c.id == dead.id,
            t.wakeups.c.fence == dead.fence,
            t.wakeups.c.exit_reason.is_(None),
        )
        .values(
            exit_reason=exit.reason,
            exit_detail=exit.detail,
            exit_facts={"v": mapping.VERSION, **exit.facts},
            ended_at=now,
        )
        .returning(
            t.wakeups.c.reserved_input,
            t.wakeups.c.reserved_output,
            t.wakeups.c.reserved_cost,
        )
    ).first()


def _interrupt(connection: sa.Connection, wakeup: int, started: frozenset[str] | None) -> None:
    unfinished = sa.and_(t.tool_calls.c.wakeup == wakeup, t.tool_calls.c.outcome.is_(None))
    connection.execute(
        sa.update(t.tool_calls)
        .where(unfinished, *([] if started is None else [t.tool_calls.c.call_id.in_(started)]))
        .values(outcome=CallOutcome.INTERRUPTED)
    )


def _charge_lost(
    connection: sa.Connection, goal: Goal, dead: OpenWakeup, reserve: sa.Row[Any], now: datetime
) -> None:
    """The call to the model that may have been out: what was reserved for it, if anything, is taken for spent."""
    if not (reserve.reserved_input or reserve.reserved_output):
        return
    lost = Usage(input=reserve.reserved_input, output=reserve.reserved_output, estimated=True)
    purpose = t.Purpose.WORK if dead.pending_exit is None else t.Purpose.SETTLEMENT
    _lost_turn(connection, goal.id, dead, purpose, lost, reserve.reserved_cost, now)
    claimed = Claimed(goal.id, dead.id, dead.seq, dead.fence, goal.uid)
    charge(connection, claimed, lost, cost_micro=reserve.reserved_cost, turns=0, active_ms=0, now=now)


def close(
    store: Store,
    claimed: Claimed,
    exit: Exit,
    after: Aftermath,
    *,
    active_ms: int,
    now: datetime,
    revision: int,
    checks: Sequence[CheckResult] = (),
    progress: Mapping[str, int] | None = None,
) -> tuple[Exit, Aftermath]:
    """End the wakeup, all in one commit. Returns the ending and its aftermath as stored.

    A user's stop that arrived meanwhile beats every ending but an accepted claim.

    Args:
        progress: the wakeup's marks of progress, by what they are of; None where nobody counts them.

    Raises:
        Fenced: somebody else has the goal.
        ClaimSuperseded: success was claimed at another revision of the contract than the goal now has.
    """
    exit = replace(exit, detail=store.clean(exit.detail), facts=store.clean_json(exit.facts))
    after = replace(after, status_detail=store.clean(after.status_detail))
    with store.writing() as connection:
        guard(store, connection, claimed, **reserved(claimed.price, NO_USAGE))
        row = connection.execute(
            sa.select(t.goals.c.control, t.goals.c.revision).where(t.goals.c.id == claimed.goal)
        ).one()
        if exit.reason is ExitReason.CURRENT_TASK_DONE and row.revision != revision:
            raise ClaimSuperseded
        if exit.reason is not ExitReason.CURRENT_TASK_DONE and row.control != Control.NONE:
            exit, after = _stopped(Control(row.control), exit, after)
        connection.execute(
            sa.update(t.wakeups)
            .where(t.wakeups.c.id == claimed.wakeup)
            .values(
                exit_reason=exit.reason,
                exit_detail=exit.detail,
                exit_facts={"v": mapping.VERSION, **exit.facts},
                ended_at=now,
                **progressed(progress),
            )
        )
        charge(connection, claimed, Usage(), turns=0, active_ms=active_ms, now=now)
        _leave_nothing_open(connection, claimed.wakeup)
        questions.ask(store, connection, claimed.goal, claimed.seq, exit, now=now)
        if exit.reason is ExitReason.CURRENT_TASK_DONE:
            mark_verified(connection, claimed.goal, checks, now)
        after = wake_sources.scheduled(connection, claimed.goal, exit, after)
        kinds = ("note", "answer", "edit") if row.revision != revision else ("note", "answer")
        after = _with_news(connection, claimed, kinds, exit, after, now)
        settle_goal(connection, claimed.goal, after, now)
    return exit, after


def settle_goal(
    connection: sa.Connection, goal: int, after: Aftermath, now: datetime, **changes: Any
) -> None:
    if after.status in (GoalStatus.DONE, GoalStatus.ABORTED):
        questions.withdraw(connection, goal)
    connection.execute(
        sa.update(t.goals)
        .where(t.goals.c.id == goal)
        .values(
            status=after.status,
            status_detail=after.status_detail,
            next_wakeup_at=after.next_wakeup_at,
            wake_reason=after.wake_reason,
            streak=after.streak,
            failures=after.failures,
            control=Control.NONE,
            updated_at=now,
            **changes,
        )
    )


def _leave_nothing_open(connection: sa.Connection, wakeup: int) -> None:
    """A wakeup that ended between intent and outcome: what has no outcome by now was not run."""
    connection.execute(
        sa.update(t.tool_calls)
        .where(t.tool_calls.c.wakeup == wakeup, t.tool_calls.c.outcome.is_(None))
        .values(outcome=CallOutcome.SKIPPED)
    )
    connection.execute(
        sa.update(t.turns)
        .where(t.turns.c.wakeup == wakeup, t.turns.c.state == t.TurnState.OPEN)
        .values(state=t.TurnState.DONE)
    )


def _with_news(
    connection: sa.Connection,
    claimed: Claimed,
    kinds: Sequence[str],
    exit: Exit,
    after: Aftermath,
    now: datetime,
) -> Aftermath:
    """What a user said during the wakeup and the model has not seen makes an active or waiting goal due at once.

    So it does with one that the model calls blocked: it may be what takes the obstacle away.
    """
    news = connection.execute(
        sa.select(sa.func.max(t.inbox.c.id))
        .join(t.wakeups, t.wakeups.c.goal == t.inbox.c.goal)
        .where(
            t.wakeups.c.id == claimed.wakeup,
            t.inbox.c.id > t.wakeups.c.inbox_seen,
            t.inbox.c.kind.in_(kinds),
        )
    ).scalar()
    awaits = after.status in (GoalStatus.ACTIVE, GoalStatus.WAITING_USER)
    if news is None or not (awaits or exit.reason is ExitReason.TASK_BLOCKED):
        return after
    return Aftermath(GoalStatus.ACTIVE, "", now, "the user spoke", after.streak, after.failures)


def _honoured(connection: sa.Connection, goal: int, after: Aftermath) -> Aftermath:
    """`after`, unless the user has stopped the goal: before its owner died (control) or after it (status)."""
    row = connection.execute(
        sa.select(t.goals.c.status, t.goals.c.status_detail, t.goals.c.control).where(t.goals.c.id == goal)
    ).one()
    match row.control:
        case Control.PAUSE:
            status, detail = GoalStatus.PAUSED, "by the user"
        case Control.ABORT:
            status, detail = GoalStatus.ABORTED, "by the user"
        case _ if row.status != GoalStatus.ACTIVE:
            status, detail = GoalStatus(row.status), row.status_detail
        case _:
            return after
    return Aftermath(status, detail, None, "", after.streak, after.failures)


def _stopped(control: Control, exit: Exit, after: Aftermath) -> tuple[Exit, Aftermath]:
    status = GoalStatus.ABORTED if control is Control.ABORT else GoalStatus.PAUSED
    stopped = (
        exit
        if exit.reason is ExitReason.USER_ABORTED
        else Exit(ExitReason.USER_ABORTED, f"{control.value} by the user", {"control": control.value})
    )
    return stopped, Aftermath(status, stopped.detail, None, "", after.streak, after.failures)


def _is_at(connection: sa.Connection, goal: int, revision: int) -> bool:
    return connection.execute(sa.select(t.goals.c.revision).where(t.goals.c.id == goal)).scalar() == revision


def _lost_turn(
    connection: sa.Connection,
    goal: int,
    dead: OpenWakeup,
    purpose: t.Purpose,
    usage: Usage,
    cost_micro: int,
    now: datetime,
) -> None:
    """Its price is not known here: this process may be configured otherwise than the one that died."""
    last = connection.execute(
        sa.select(sa.func.max(t.turns.c.seq)).where(t.turns.c.wakeup == dead.id)
    ).scalar()
    connection.execute(
        sa.insert(t.turns).values(
            wakeup=dead.id,
            seq=int(last or 0) + 1,
            purpose=purpose,
            state=t.TurnState.LOST,
            movement=movement_of(connection, goal),
            stop_reason=StopReason.MISSING,
            stop_detail="the process ended while the model was being asked",
            provider="",
            model="",
            started_at=now,
            ended_at=now,
            input=usage.input,
            cached=0,
            cache_write=0,
            output=usage.output,
            estimated=True,
            cost_micro=cost_micro,
        )
    )
