"""How a wakeup ends in the store: closed by its owner, or recovered by whoever finds the owner dead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from goalmode.domain.calls import CallOutcome
from goalmode.domain.exits import Exit, ExitReason, GoalStatus
from goalmode.domain.goal import Control, Goal
from goalmode.domain.messages import Usage
from goalmode.domain.signals import StopReason
from goalmode.state import mapping
from goalmode.state import tables as t
from goalmode.state.checks import CheckResult, mark_verified
from goalmode.state.movements import movement_of
from goalmode.state.store import Store
from goalmode.state.wakeups import Claimed, OpenWakeup, charge, guard


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
    store: Store, goal: Goal, dead: OpenWakeup, *, started: frozenset[str], after: Aftermath, now: datetime
) -> bool:
    """Close a wakeup whose owner is gone as INTERRUPTED; False if somebody else did so first.

    Calls that had started and have no outcome become `interrupted`, those that had not `skipped`. What the call to
    the model that may have been out was reserved is charged, as an estimate. The fence grows, so that nothing the
    old owner still does can count. A stop that the user asked for, at any time until now, beats `after`.
    """
    with store.writing() as connection:
        row = connection.execute(
            sa.update(t.wakeups)
            .where(
                t.wakeups.c.id == dead.id,
                t.wakeups.c.fence == dead.fence,
                t.wakeups.c.exit_reason.is_(None),
            )
            .values(
                exit_reason=ExitReason.INTERRUPTED,
                exit_detail=f"the process {dead.lease.owner.name} ended",
                exit_facts={"owner": dead.lease.owner.name},
                ended_at=now,
            )
            .returning(t.wakeups.c.reserved_input, t.wakeups.c.reserved_output, t.wakeups.c.turns)
        ).first()
        if row is None:
            return False
        unfinished = sa.and_(t.tool_calls.c.wakeup == dead.id, t.tool_calls.c.outcome.is_(None))
        connection.execute(
            sa.update(t.tool_calls)
            .where(unfinished, t.tool_calls.c.call_id.in_(started))
            .values(outcome=CallOutcome.INTERRUPTED)
        )
        _leave_nothing_open(connection, dead.id)
        claimed = Claimed(goal.id, dead.id, dead.seq, dead.fence)
        if row.reserved_input or row.reserved_output:
            lost = Usage(input=row.reserved_input, output=row.reserved_output, estimated=True)
            _lost_turn(connection, goal.id, dead, lost, now)
            charge(connection, claimed, lost, turns=0, active_ms=0, now=now)
        settle_goal(
            connection, goal.id, _honoured(connection, goal.id, after), now, fence=t.goals.c.fence + 1
        )
        return True


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
) -> tuple[Exit, Aftermath]:
    """End the wakeup, all in one commit. Returns the ending and its aftermath as stored.

    A user's stop that arrived meanwhile beats every ending but an accepted claim.

    Raises:
        Fenced: somebody else has the goal.
        ClaimSuperseded: success was claimed at another revision of the contract than the goal now has.
    """
    exit = replace(exit, detail=store.clean(exit.detail), facts=store.clean_json(exit.facts))
    after = replace(after, status_detail=store.clean(after.status_detail))
    with store.writing() as connection:
        guard(store, connection, claimed, reserved_input=0, reserved_output=0)
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
            )
        )
        charge(connection, claimed, Usage(), turns=0, active_ms=active_ms, now=now)
        _leave_nothing_open(connection, claimed.wakeup)
        if exit.reason is ExitReason.CURRENT_TASK_DONE:
            mark_verified(connection, claimed.goal, checks, now)
        kinds = ("note", "answer", "edit") if row.revision != revision else ("note", "answer")
        after = _with_news(connection, claimed, kinds, after, now)
        settle_goal(connection, claimed.goal, after, now)
    return exit, after


def settle_goal(
    connection: sa.Connection, goal: int, after: Aftermath, now: datetime, **changes: Any
) -> None:
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
    connection: sa.Connection, claimed: Claimed, kinds: Sequence[str], after: Aftermath, now: datetime
) -> Aftermath:
    """What a user said during the wakeup and the model has not seen makes an active or waiting goal due at once."""
    news = connection.execute(
        sa.select(sa.func.max(t.inbox.c.id))
        .join(t.wakeups, t.wakeups.c.goal == t.inbox.c.goal)
        .where(
            t.wakeups.c.id == claimed.wakeup,
            t.inbox.c.id > t.wakeups.c.inbox_seen,
            t.inbox.c.kind.in_(kinds),
        )
    ).scalar()
    if news is None or after.status not in (GoalStatus.ACTIVE, GoalStatus.WAITING_USER):
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


def _lost_turn(connection: sa.Connection, goal: int, dead: OpenWakeup, usage: Usage, now: datetime) -> None:
    last = connection.execute(
        sa.select(sa.func.max(t.turns.c.seq)).where(t.turns.c.wakeup == dead.id)
    ).scalar()
    connection.execute(
        sa.insert(t.turns).values(
            wakeup=dead.id,
            seq=int(last or 0) + 1,
            purpose=t.Purpose.WORK,
            state=t.TurnState.LOST,
            movement=movement_of(goal),
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
        )
    )
