"""An ending that stands while its wakeup settles into long-term memory: stored, but not closed with yet.

Whatever comes in between, the wakeup ends with it; whoever finds its owner dead closes with it in his place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.goal import Goal
from goalmode.domain.memory import SettlementState
from goalmode.domain.messages import Usage
from goalmode.errors import StoreUnreadable
from goalmode.state import mapping
from goalmode.state import tables as t
from goalmode.state.checks import CheckResult
from goalmode.state.store import Store
from goalmode.state.wakeups import Claimed, OpenWakeup, guard, reserved


@dataclass(frozen=True, slots=True)
class Pending:
    """The ending, the checks that it was accepted with, and the contract's revision that they hold for."""

    exit: Exit
    checks: tuple[CheckResult, ...]
    revision: int
    settlement: SettlementState = SettlementState.STARTED

    @property
    def accepted(self) -> bool:
        """Whether it is an accepted claim, which no stop beats."""
        return self.exit.reason is ExitReason.CURRENT_TASK_DONE

    def after(self, settlement: SettlementState, detail: str = "") -> Pending:
        """The same once it is known how settlement went."""
        facts = {**self.exit.facts, "settlement": settlement.value}
        if detail:
            facts["settlement_detail"] = detail
        return replace(self, exit=replace(self.exit, facts=facts), settlement=settlement)


def start(store: Store, claimed: Claimed, *, now: datetime) -> None:
    """Note that the goal's present stretch settles, where the model begins it by itself and it has not yet."""
    with store.writing() as connection:
        guard(store, connection, claimed)
        connection.execute(
            sa.update(t.goals)
            .where(t.goals.c.id == claimed.goal, t.goals.c.settlement == SettlementState.NONE)
            .values(settlement=SettlementState.STARTED, updated_at=now)
        )


def hold(store: Store, claimed: Claimed, pending: Pending, *, now: datetime) -> None:
    """Store the ending as pending, and that the goal's present stretch settles.

    Raises:
        Fenced: somebody else has the goal; nothing is stored.
    """
    with store.writing() as connection:
        guard(store, connection, claimed, pending_exit=store.clean_json(_to_json(pending)))
        _note(connection, claimed.goal, SettlementState.STARTED, now)


def attempt(store: Store, claimed: Claimed, usage: Usage) -> None:
    """Count one call of settlement, and reserve what it may cost, before it is sent."""
    with store.writing(durable=False) as connection:
        guard(store, connection, claimed, add={"settlement_attempts": 1}, **reserved(claimed.price, usage))


def finish(store: Store, claimed: Claimed, settlement: SettlementState, *, now: datetime) -> None:
    """Note how settlement went."""
    with store.writing(durable=False) as connection:
        guard(store, connection, claimed)
        _note(connection, claimed.goal, settlement, now)


def withdraw(store: Store, claimed: Claimed) -> None:
    """The ending stands no more: the contract is another one now, and the wakeup goes on."""
    with store.writing() as connection:
        guard(store, connection, claimed, pending_exit=None)


def left_behind(goal: Goal, dead: OpenWakeup) -> Pending | None:
    """The ending that a dead owner has stored as pending.

    None if there is none, or if the contract has been edited since: then nobody knows whether it still holds.

    Raises:
        StoreUnreadable: it has a shape we do not know.
    """
    if dead.pending_exit is None:
        return None
    pending = _from_json(goal.uid, dead.seq, dead.pending_exit)
    if pending.revision != goal.revision:
        return None
    cut_off = goal.settlement is SettlementState.STARTED
    return pending.after(SettlementState.FAILED if cut_off else goal.settlement)


def _note(connection: sa.Connection, goal: int, settlement: SettlementState, now: datetime) -> None:
    connection.execute(
        sa.update(t.goals).where(t.goals.c.id == goal).values(settlement=settlement, updated_at=now)
    )


def _to_json(pending: Pending) -> dict[str, Any]:
    return {
        "v": mapping.VERSION,
        "reason": pending.exit.reason.value,
        "detail": pending.exit.detail,
        "facts": dict(pending.exit.facts),
        "revision": pending.revision,
        "checks": [
            {"subject": c.subject, "passed": c.passed, "exit_code": c.exit_code, "sha256": c.sha256}
            for c in pending.checks
        ],
    }


def _from_json(uid: str, wakeup: int, value: Mapping[str, Any]) -> Pending:
    try:
        checks = tuple(
            CheckResult(str(c["subject"]), bool(c["passed"]), c.get("exit_code"), c.get("sha256"))
            for c in value["checks"]
        )
        ending = Exit(ExitReason(value["reason"]), str(value["detail"]), dict(value["facts"]))
        return Pending(ending, checks, int(value["revision"]))
    except (KeyError, TypeError, ValueError) as error:
        raise StoreUnreadable(
            f"goal {uid}: wakeup {wakeup}: pending_exit is of another shape: {error!r}"
        ) from None
