"""What the host found when it checked a contract: every result kept, the newest one beside what it is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from goalmode.domain.contract import RequirementStatus
from goalmode.state import bodies
from goalmode.state import tables as t
from goalmode.state.store import Store
from goalmode.state.wakeups import Claimed


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check of one requirement or deliverable (`subject`: `R1`, or a path), as it is stored."""

    subject: str
    passed: bool
    exit_code: int | None = None
    sha256: str | None = None
    tail: str = ""


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


def mark_verified(connection: sa.Connection, goal: int, checks: Sequence[CheckResult], now: datetime) -> None:
    for check in checks:
        if check.sha256 is not None:
            connection.execute(
                sa.update(t.deliverables)
                .where(t.deliverables.c.goal == goal, t.deliverables.c.path == check.subject)
                .values(sha_verified=check.sha256, checked_at=now)
            )
