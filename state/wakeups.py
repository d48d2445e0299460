"""Claiming, renewing, recovering and closing a wakeup. Everything here is one short transaction.

The first statement of every write of a wakeup is the guard: it renews the lease of exactly this wakeup at exactly this
fence, and touches no row once somebody else has taken over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from goalmode.domain.calls import CallOutcome
from goalmode.domain.exits import Exit, ExitReason, GoalStatus
from goalmode.domain.goal import Control, Goal, RequirementStatus
from goalmode.domain.messages import Usage
from goalmode.domain.signals import StopReason
from goalmode.errors import Fenced
from goalmode.state import bodies, mapping
from goalmode.state import tables as t
from goalmode.state.owner import LEASE_MS, Lease, Owner
from goalmode.state.store import Store


@dataclass(frozen=True, slots=True)
class OpenWakeup:
    """A wakeup that has not been closed. Whether its owner still lives is the lease's question."""

    id: int
    seq: int
    fence: int
    lease: Lease
    started_at: datetime
    progress: int = 0


@dataclass(frozen=True, slots=True)
class Claimed:
    """This process's hold on a goal."""

    goal: int
    wakeup: int
    seq: int
    fence: int


@dataclass(frozen=True, slots=True)
class StoredContext:
    """What the model is shown first: the whole text, its messages for a later replay, and its sections' sizes."""

    text: str
    sha256: str
    tokens: int
    encoding: str
    completion_phrases: int
    sections: Sequence[Mapping[str, Any]]
    messages: Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What an ending does to its goal."""

    status: GoalStatus
    status_detail: str
    next_wakeup_at: datetime | None
    wake_reason: str
    streak: int
    failures: int


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check of one requirement or deliverable (`subject`: `R1`, or a path), as it is stored."""

    subject: str
    passed: bool
    exit_code: int | None = None
    sha256: str | None = None
    tail: str = ""


class ClaimSuperseded(Exception):
    """The goal was edited while its completion was being checked: the claim is judged again at the new revision."""


def open_wakeup(connection: sa.Connection, goal: int) -> OpenWakeup | None:
    row = connection.execute(
        sa.select(t.wakeups).where(t.wakeups.c.goal == goal, t.wakeups.c.exit_reason.is_(None))
    ).first()
    if row is None:
        return None
    owner = Owner(row.owner, row.host_label, row.pid, row.pid_start, row.boot_id)
    return OpenWakeup(row.id, row.seq, row.fence, Lease(owner, row.lease_ms), row.started_at, row.progress)


def turns_of(connection: sa.Connection, wakeup: int) -> int:
    """The wakeup's turns with a committed outcome: one whose tools never ended is none."""
    done = sa.select(sa.func.count()).where(t.turns.c.wakeup == wakeup, t.turns.c.state == t.TurnState.DONE)
    return connection.execute(done).scalar_one()


def was_interrupted(connection: sa.Connection, goal: int, seq: int) -> bool:
    """Whether the goal's wakeup number `seq` ended because its process did."""
    ending = sa.select(t.wakeups.c.exit_reason).where(t.wakeups.c.goal == goal, t.wakeups.c.seq == seq)
    return connection.execute(ending).scalar() == ExitReason.INTERRUPTED


def control(store: Store, goal: int) -> Control:
    """What a user asks of the goal's wakeup; a deleted goal is to be aborted."""
    with store.reading() as connection:
        asked = connection.execute(sa.select(t.goals.c.control).where(t.goals.c.id == goal)).scalar()
    return Control.ABORT if asked is None else Control(asked)


def current_fence(store: Store, goal: int) -> int:
    """The goal's fence now; -1 if the goal is gone."""
    with store.reading() as connection:
        fence = connection.execute(sa.select(t.goals.c.fence).where(t.goals.c.id == goal)).scalar()
    return -1 if fence is None else int(fence)


def claim(
    store: Store,
    goal: Goal,
    *,
    seq: int,
    context: StoredContext | None,
    reserve: Usage,
    counted: bool,
    now: datetime,
) -> Claimed | None:
    """Take the goal for one wakeup, if it is still what the context was rendered from; None if it is not.

    Args:
        goal: as read with the snapshot that the context was rendered from.
        context: None where no call will be made.
        reserve: what the first call may cost; charged if the process dies before it is known.
        counted: whether it counts towards the goal's wakeups (not one that only finds its budget spent).
    """
    owner = store.owner
    with store.writing(durable=False) as connection:
        fence = connection.execute(
            sa.update(t.goals)
            .where(
                t.goals.c.id == goal.id,
                t.goals.c.fence == goal.fence,
                t.goals.c.revision == goal.revision,
                t.goals.c.status == GoalStatus.ACTIVE,
                t.goals.c.control == Control.NONE,
                ~sa.exists().where(t.wakeups.c.goal == goal.id, t.wakeups.c.exit_reason.is_(None)),
            )
            .values(
                fence=t.goals.c.fence + 1,
                spent_wakeups=t.goals.c.spent_wakeups + int(counted),
                updated_at=now,
            )
            .returning(t.goals.c.fence)
        ).scalar()
        if fence is None:
            return None
        wakeup = connection.execute(
            sa.insert(t.wakeups)
            .values(
                goal=goal.id,
                seq=seq,
                fence=fence,
                owner=owner.name,
                host_label=owner.host_label,
                pid=owner.pid,
                pid_start=owner.pid_start,
                boot_id=owner.boot_id,
                lease_ms=store.clock.lease_ms() + LEASE_MS,
                revision=goal.revision,
                inbox_seen=goal.inbox_head,
                exit_detail="",
                exit_facts={},
                turns=0,
                tokens=0,
                recoveries=0,
                rejections=0,
                progress=0,
                reserved_input=reserve.input,
                reserved_output=reserve.output,
                started_at=now,
            )
            .returning(t.wakeups.c.id)
        ).scalar_one()
        if context is not None:
            _store_context(store, connection, wakeup, context)
        return Claimed(goal.id, int(wakeup), seq, int(fence))


def _store_context(store: Store, connection: sa.Connection, wakeup: int, context: StoredContext) -> None:
    connection.execute(
        sa.insert(t.contexts).values(
            wakeup=wakeup,
            n=0,
            sha256=context.sha256,
            tokens=context.tokens,
            encoding=context.encoding,
            completion_phrases=context.completion_phrases,
            sections=[dict(s) for s in context.sections],
            body=bodies.put(connection, store.clean(context.text)),
            messages=bodies.put_json(connection, store.clean_json(context.messages)),
        )
    )


def guard(store: Store, connection: sa.Connection, claimed: Claimed, **changes: Any) -> None:
    """Renew the lease and make `changes` to the wakeup's row.

    Raises:
        Fenced: the wakeup is no longer this process's.
    """
    renewed = connection.execute(
        sa.update(t.wakeups)
        .where(
            t.wakeups.c.id == claimed.wakeup,
            t.wakeups.c.fence == claimed.fence,
            t.wakeups.c.exit_reason.is_(None),
        )
        .values(lease_ms=store.clock.lease_ms() + LEASE_MS, **changes)
    )
    if renewed.rowcount != 1:
        raise Fenced


def saw_inbox(store: Store, claimed: Claimed, head: int) -> None:
    """The wakeup has taken in what users said up to `head`: it makes the goal due no more."""
    with store.writing(durable=False) as connection:
        guard(store, connection, claimed, inbox_seen=head)


def renew(store: Store, claimed: Sequence[Claimed]) -> list[Claimed]:
    """Renew the leases of several wakeups in one transaction; returns those that are lost."""
    lost: list[Claimed] = []
    with store.pulsing() as connection:
        for one in claimed:
            try:
                guard(store, connection, one)
            except Fenced:
                lost.append(one)
    return lost


def charge(
    connection: sa.Connection, claimed: Claimed, usage: Usage, *, turns: int, active_ms: int, now: datetime
) -> None:
    """Add to the goal's and the wakeup's totals."""
    connection.execute(
        sa.update(t.goals)
        .where(t.goals.c.id == claimed.goal)
        .values(
            spent_turns=t.goals.c.spent_turns + turns,
            spent_input=t.goals.c.spent_input + usage.input,
            spent_cached=t.goals.c.spent_cached + usage.cached,
            spent_cache_write=t.goals.c.spent_cache_write + usage.cache_write,
            spent_output=t.goals.c.spent_output + usage.output,
            spent_active_ms=t.goals.c.spent_active_ms + active_ms,
            updated_at=now,
        )
    )
    connection.execute(
        sa.update(t.wakeups)
        .where(t.wakeups.c.id == claimed.wakeup)
        .values(turns=t.wakeups.c.turns + turns, tokens=t.wakeups.c.tokens + usage.tokens)
    )


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
            _lost_turn(connection, dead, lost, now)
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
            _mark_verified(connection, claimed.goal, checks, now)
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


def record_checks(
    store: Store,
    connection: sa.Connection,
    claimed: Claimed,
    revision: int,
    checks: Sequence[CheckResult],
    now: datetime,
) -> None:
    """Keep the results of a contract's checks, and the requirements' and deliverables' newest state."""
    for check in checks:
        connection.execute(
            sa.insert(t.checks).values(
                goal=claimed.goal,
                wakeup=claimed.wakeup,
                revision=revision,
                subject=check.subject,
                passed=check.passed,
                exit_code=check.exit_code,
                sha256=check.sha256,
                tail=bodies.put(connection, store.clean(check.tail)) if check.tail else None,
                at=now,
            )
        )
        connection.execute(
            sa.update(t.requirements)
            .where(
                t.requirements.c.goal == claimed.goal,
                t.requirements.c.revision == revision,
                sa.literal("R").concat(sa.cast(t.requirements.c.position, sa.String)) == check.subject,
            )
            .values(
                status=RequirementStatus.PASSED if check.passed else RequirementStatus.FAILED, checked_at=now
            )
        )
        connection.execute(
            sa.update(t.deliverables)
            .where(t.deliverables.c.goal == claimed.goal, t.deliverables.c.path == check.subject)
            .values(sha_seen=check.sha256, checked_at=now)
        )


def met_obstacle(store: Store, claimed: Claimed, obstacle: str) -> int:
    """Note that this wakeup met `obstacle`; returns in how many wakeups it was met since the count was opened."""
    key = " ".join(store.clean(obstacle).lower().split())[:200]
    with store.writing(durable=False) as connection:
        guard(store, connection, claimed)
        stored = connection.execute(
            sa.select(t.goals.c.obstacles).where(t.goals.c.id == claimed.goal)
        ).scalar_one()
        met = dict(stored.get("met", {}))
        met[key] = sorted({*met.get(key, ()), claimed.seq})
        connection.execute(
            sa.update(t.goals)
            .where(t.goals.c.id == claimed.goal)
            .values(obstacles={"v": mapping.VERSION, "met": met})
        )
        return len(met[key])


def latch_wrap_up(connection: sa.Connection, goal: int) -> bool:
    """Use up the one wrap-up of the goal's current limits; False if it was used already."""
    latched = connection.execute(
        sa.update(t.goals)
        .where(t.goals.c.id == goal, t.goals.c.wrapped_limits_rev < t.goals.c.limits_rev)
        .values(wrapped_limits_rev=t.goals.c.limits_rev)
    )
    return latched.rowcount == 1


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


def _mark_verified(
    connection: sa.Connection, goal: int, checks: Sequence[CheckResult], now: datetime
) -> None:
    for check in checks:
        if check.sha256 is not None:
            connection.execute(
                sa.update(t.deliverables)
                .where(t.deliverables.c.goal == goal, t.deliverables.c.path == check.subject)
                .values(sha_verified=check.sha256, checked_at=now)
            )


def _lost_turn(connection: sa.Connection, dead: OpenWakeup, usage: Usage, now: datetime) -> None:
    last = connection.execute(
        sa.select(sa.func.max(t.turns.c.seq)).where(t.turns.c.wakeup == dead.id)
    ).scalar()
    connection.execute(
        sa.insert(t.turns).values(
            wakeup=dead.id,
            seq=int(last or 0) + 1,
            purpose=t.Purpose.WORK,
            state=t.TurnState.LOST,
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
