"""What the host found when it checked a contract: every result kept, the newest one beside what it is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from goalmode.domain.contract import RequirementStatus
from goalmode.domain.goal import Goal
from goalmode.errors import UnknownGoal
from goalmode.state import bodies
from goalmode.state import tables as t
from goalmode.state.exclusion import lock_goal
from goalmode.state.store import Store
from goalmode.state.wakeups import Claimed


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check of one requirement or deliverable (`subject`: `R1`, or a path), as it is stored.

    Attributes:
        sha256: of a deliverable's content.
        output_sha256: of a command's output, as far as it was kept. No mark of a state: it may hold a time.
        tail: the end of the output, or what was wrong.
    """

    subject: str
    passed: bool
    exit_code: int | None = None
    sha256: str | None = None
    tail: str = ""
    output_sha256: str | None = None


def record_checks(
    store: Store,
    connection: sa.Connection,
    claimed: Claimed,
    revision: int,
    checks: Sequence[CheckResult],
    now: datetime,
) -> None:
    """Keep the results of a contract's checks, and the requirements' and deliverables' newest state."""
    _record(store, connection, claimed.goal, claimed.wakeup, revision, checks, now)


def record_alone(store: Store, goal: Goal, checks: Sequence[CheckResult], *, now: datetime) -> None:
    """Keep the results of checks that were made outside of any wakeup, at the revision of `goal`.

    Raises:
        UnknownGoal: it was deleted meanwhile.
    """
    with store.writing() as connection:
        lock_goal(connection, goal.id)
        if connection.execute(sa.select(t.goals.c.id).where(t.goals.c.id == goal.id)).first() is None:
            raise UnknownGoal("the goal has been deleted")
        _record(store, connection, goal.id, None, goal.revision, checks, now)


def _record(
    store: Store,
    connection: sa.Connection,
    goal: int,
    wakeup: int | None,
    revision: int,
    checks: Sequence[CheckResult],
    now: datetime,
) -> None:
    for check in checks:
        connection.execute(
            sa.insert(t.checks).values(
                goal=goal,
                wakeup=wakeup,
                revision=revision,
                subject=check.subject,
                passed=check.passed,
                exit_code=check.exit_code,
                sha256=check.sha256 or check.output_sha256,
                tail=bodies.put(connection, store.clean(check.tail)) if check.tail else None,
                at=now,
            )
        )
        connection.execute(
            sa.update(t.requirements)
            .where(
                t.requirements.c.goal == goal,
                t.requirements.c.revision == revision,
                sa.literal("R").concat(sa.cast(t.requirements.c.position, sa.String)) == check.subject,
            )
            .values(
                status=RequirementStatus.PASSED if check.passed else RequirementStatus.FAILED, checked_at=now
            )
        )
        connection.execute(
            sa.update(t.deliverables)
            .where(t.deliverables.c.goal == goal, t.deliverables.c.path == check.subject)
            .values(sha_seen=check.sha256, checked_at=now)
        )


def mark_verified(connection: sa.Connection, goal: int, checks: Sequence[CheckResult], now: datetime) -> None:
    for check in checks:
        if check.sha256 is not None:
            connection.execute(
                sa.update(t.deliverables)
                .where(t.deliverables.c.goal == goal, t.deliverables.c.path == check.subject)
                .values(sha_verified=check.sha256, checked_at=now)
            )
