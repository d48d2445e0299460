"""Goals as users make, change, stop and find them. User columns change by compare-and-set on the revision."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from goalmode.domain.budget import Limits
from goalmode.domain.contract import ProtectedFile, Requirement
from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Control, Goal, GoalSettings, GoalSpec
from goalmode.domain.memory import SettlementState
from goalmode.domain.text import sendable
from goalmode.domain.wake import Planned
from goalmode.errors import NotAllowed, StoreUnreadable, UnknownGoal
from goalmode.state import bodies, imported, mapping, wake_sources, wakeups
from goalmode.state import tables as t
from goalmode.state.exclusion import lock_goal
from goalmode.state.imported import Earlier
from goalmode.state.notes import post
from goalmode.state.questions import withdraw
from goalmode.state.revisions import as_accepted, contract_rows, write_contract, write_protected
from goalmode.state.shape import an_object, held
from goalmode.state.store import Store

_UID_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"
_UID_LENGTH = 12


def new_uid() -> str:
    """A public id that no goal has."""
    return "".join(secrets.choice(_UID_ALPHABET) for _ in range(_UID_LENGTH))


def is_uid(text: str) -> bool:
    """Whether a goal can have this public id."""
    return len(text) == _UID_LENGTH and set(text) <= set(_UID_ALPHABET)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A goal whose rows have a shape this code does not know. Only this goal is affected."""

    uid: str
    problem: str


def create(
    store: Store,
    spec: GoalSpec,
    *,
    protected: Sequence[ProtectedFile] = (),
    waits_for: Sequence[Planned] = (),
    earlier: Earlier | None = None,
    now: datetime,
) -> Goal:
    """Store a new goal, due now, and return it. `spec` has been checked (`goalmode.orchestrator.goals`).

    With `waits_for` it is due when the first of these comes.
    """
    uid = new_uid()
    objective = store.clean(spec.objective)
    settings = mapping.settings_to_json(spec.settings)
    settings["workflow"] = store.clean_json(settings["workflow"])
    with store.writing() as connection:
        goal = connection.execute(
            sa.insert(t.goals)
            .values(
                uid=uid,
                objective=objective,
                workspace=spec.workspace,
                revision=1,
                limits_rev=1,
                wrapped_limits_rev=0,
                limits=mapping.limits_to_json(spec.limits),
                settings=settings,
                status=GoalStatus.ACTIVE,
                status_detail="",
                control=Control.NONE,
                fence=0,
                next_wakeup_at=now,
                wake_reason="created",
                host_label=store.owner.host_label,
                movement=spec.settings.workflow.start,
                spent_turns=0,
                spent_wakeups=0,
                spent_input=0,
                spent_cached=0,
                spent_cache_write=0,
                spent_output=0,
                spent_active_ms=0,
                streak=0,
                failures=0,
                obstacles=mapping.obstacles_to_json(()),
                created_at=now,
                updated_at=now,
            )
            .returning(t.goals.c.id)
        ).scalar_one()
        write_contract(
            store, connection, goal, 1, objective, spec.requirements, spec.deliverables, "user", now
        )
        write_protected(connection, goal, protected)
        for planned in waits_for:
            wake_sources.add(store, connection, goal, planned, now=now)
        if earlier is not None:
            imported.write(store, connection, goal, earlier, now=now)
    return get(store, goal)


def get(store: Store, goal: int) -> Goal:
    with store.reading() as connection:
        return read(connection, goal)


GOAL = sa.select(t.goals).where(t.goals.c.id == sa.bindparam("wanted"))
INBOX_HEAD = sa.select(sa.func.max(t.inbox.c.id)).where(t.inbox.c.goal == sa.bindparam("wanted"))
# A statement that is built anew each time takes longer to build than to run.


def read(connection: sa.Connection, goal: int) -> Goal:
    """The goal at one moment, inside a transaction."""
    rows = held(connection, GOAL, lambda row: f"goal {row.uid}", {"wanted": goal})
    if not rows:
        raise UnknownGoal("the goal has been deleted")
    requirements = contract_rows(connection, t.requirements, goal)
    deliverables = contract_rows(connection, t.deliverables, goal)
    protected = contract_rows(connection, t.protected_files, goal)
    head = connection.execute(INBOX_HEAD, {"wanted": goal}).scalar()
    return mapping.goal_from_rows(rows[0], requirements, deliverables, protected, int(head or 0))


def find(store: Store, prefix: str) -> Goal:
    """The goal whose public id begins with `prefix`.

    Raises:
        UnknownGoal: none does, or several do; the message names the candidates.
    """
    wanted = sendable(prefix.strip().lower())
    with store.reading() as connection:
        matches = (
            connection.execute(
                sa.select(t.goals.c.id, t.goals.c.uid)
                # A range, for which the index is used; "~" comes after all letters of an id.
                .where(t.goals.c.uid >= wanted, t.goals.c.uid < f"{wanted}~")
                .order_by(t.goals.c.uid)
                .limit(6)
            ).all()
            if wanted
            else []
        )
        exact = [m for m in matches if m.uid == wanted]
        if len(exact or matches) != 1:
            if not matches:
                raise UnknownGoal(f"no goal {prefix!r} in {store.name}; `goalmode list` shows them")
            shown = ", ".join(m.uid for m in matches[:5]) + (", …" if len(matches) > 5 else "")
            raise UnknownGoal(f"{prefix!r} is the beginning of several goals: {shown}")
        return read(connection, (exact or matches)[0].id)


def every(store: Store, *, limit: int | None = None, offset: int = 0) -> list[Goal | Unreadable]:
    """The goals, newest first."""
    statement = sa.select(t.goals.c.id, t.goals.c.uid).order_by(t.goals.c.id.desc()).offset(offset)
    with store.reading() as connection:
        rows = connection.execute(statement.limit(limit) if limit is not None else statement).all()
        return [_read_or_mark(connection, row) for row in rows]


def _read_or_mark(connection: sa.Connection, row: sa.Row[Any, Any]) -> Goal | Unreadable:
    try:
        return read(connection, row.id)
    except StoreUnreadable as error:
        return Unreadable(str(row.uid), str(error))


@dataclass(frozen=True, slots=True)
class Edit:
    """A user's change of a goal. None means "as it was".

    `revision` is the one the change was made against; a newer one refuses it.
    """

    revision: int
    objective: str | None = None
    requirements: tuple[Requirement, ...] | None = None
    deliverables: tuple[str, ...] | None = None
    protected: tuple[ProtectedFile, ...] | None = None
    settings: GoalSettings | None = None


def edit(store: Store, goal: Goal, change: Edit, *, now: datetime, author: str = "user") -> Goal:
    """Make a new revision of the contract; a goal that was done is open again.

    Raises:
        NotAllowed: somebody else edited it meanwhile.
    """
    objective = goal.objective if change.objective is None else store.clean(change.objective)
    requirements = goal.requirements if change.requirements is None else change.requirements
    paths = tuple(d.path for d in goal.deliverables) if change.deliverables is None else change.deliverables
    with store.writing() as connection:
        changed = connection.execute(
            sa.update(t.goals)
            .where(t.goals.c.id == goal.id, t.goals.c.revision == change.revision)
            .values(objective=objective, revision=change.revision + 1, updated_at=now)
        )
        if changed.rowcount != 1:
            raise NotAllowed(
                f"goal {goal.uid}: was edited by somebody else meanwhile; look at it and try again"
            )
        requirements = as_accepted(store, connection, goal.id, requirements)
        for table in (t.requirements, t.deliverables):
            connection.execute(sa.delete(table).where(table.c.goal == goal.id))
        write_contract(
            store, connection, goal.id, change.revision + 1, objective, requirements, paths, author, now
        )
        if change.protected is not None:
            stored = {p.path: p for p in contract_rows(connection, t.protected_files, goal.id)}
            connection.execute(sa.delete(t.protected_files).where(t.protected_files.c.goal == goal.id))
            write_protected(connection, goal.id, change.protected, stored)
        if change.settings is not None:
            _set_settings(connection, goal.id, change.settings, now)
        # A wakeup may have closed the goal since it was read.
        connection.execute(
            sa.update(t.goals)
            .where(t.goals.c.id == goal.id, t.goals.c.status == GoalStatus.DONE)
            .values(
                status=GoalStatus.ACTIVE,
                status_detail="",
                next_wakeup_at=now,
                wake_reason="edited",
                stretch_from=t.goals.c.spent_turns,
                settlement=SettlementState.NONE,
            )
        )
        post(store, connection, goal.id, "edit", f"revision {change.revision + 1}", now)
    return get(store, goal.id)


def make_due(
    store: Store,
    goal: Goal,
    *,
    now: datetime,
    reason: str,
    limits: Limits | None = None,
    settings: GoalSettings | None = None,
) -> Goal:
    """Let the goal be woken now; its streak of bad endings and its count of obstacles start anew.

    New `limits` are a new limits revision, so that one more wrap-up is possible. New `settings` hold from the next
    wakeup on.
    """
    with store.writing() as connection:
        lock_goal(connection, goal.id)
        go_on(connection, goal, now=now, reason=reason, limits=limits, settings=settings)
    return get(store, goal.id)


def go_on(
    connection: sa.Connection,
    goal: Goal,
    *,
    now: datetime,
    reason: str,
    only: GoalStatus | None = None,
    anew: bool = True,
    limits: Limits | None = None,
    settings: GoalSettings | None = None,
) -> None:
    """`make_due`, as part of a larger commit.

    Args:
        only: a goal of another status stays as it is.
        anew: False: streak, failures and obstacles are still counted.
    """
    if limits is not None:
        _set_limits(connection, goal.id, limits, now)
    if settings is not None:
        _set_settings(connection, goal.id, settings, now)
    chosen = [t.goals.c.id == goal.id, *([] if only is None else [t.goals.c.status == only])]
    counts = {"streak": 0, "failures": 0, "obstacles": _counted_anew(connection, goal)} if anew else {}
    connection.execute(
        sa.update(t.goals)
        .where(*chosen)
        .values(
            status=GoalStatus.ACTIVE,
            status_detail="",
            control=Control.NONE,
            next_wakeup_at=now,
            wake_reason=reason,
            updated_at=now,
            **counts,
        )
    )


def is_running(store: Store, connection: sa.Connection, goal: int) -> bool:
    """Whether a wakeup of the goal is open whose owner lives."""
    running = wakeups.open_wakeup(connection, goal)
    return running is not None and not store.is_void(running.lease)


def stop(store: Store, goal: Goal, control: Control, *, now: datetime) -> tuple[Goal, bool]:
    """Ask a running wakeup to end, or set the status at once where none runs; returns the goal, and which it was."""
    status = GoalStatus.PAUSED if control is Control.PAUSE else GoalStatus.ABORTED
    at_once = {"status": status, "status_detail": "by the user", "next_wakeup_at": None, "wake_reason": ""}
    with store.writing() as connection:
        lock_goal(connection, goal.id)
        running = is_running(store, connection, goal.id)
        changes = {"control": control} if running else {**at_once, "control": Control.NONE}
        connection.execute(
            sa.update(t.goals).where(t.goals.c.id == goal.id).values(updated_at=now, **changes)
        )
        if control is Control.ABORT and not running:
            withdraw(connection, goal.id)
        post(store, connection, goal.id, "stop", control.value, now)
    return get(store, goal.id), running


def delete(store: Store, goal: Goal) -> None:
    """Remove a goal with everything stored for it. Its workspace is not touched."""
    with store.writing() as connection:
        lock_goal(connection, goal.id)
        connection.execute(sa.delete(t.bodies).where(t.bodies.c.id.in_(bodies.of_goal(goal.id))))
        connection.execute(sa.delete(t.goals).where(t.goals.c.id == goal.id))


def revisions(store: Store, goal: Goal) -> Sequence[Mapping[str, Any]]:
    """The contract's revisions, oldest first: revision, author, at, contract."""
    with store.reading() as connection:
        statement = (
            sa.select(t.goal_revisions)
            .where(t.goal_revisions.c.goal == goal.id)
            .order_by(t.goal_revisions.c.revision)
        )
        rows = held(connection, statement, lambda row: f"revision {row.revision}")
    return [
        {
            "revision": r.revision,
            "author": r.author,
            "at": r.at,
            "contract": an_object(f"revision {r.revision}: contract", r.contract),
        }
        for r in rows
    ]


def _counted_anew(connection: sa.Connection, goal: Goal) -> dict[str, Any]:
    """The obstacles under the ids they have, none of them met yet."""
    stored = connection.execute(sa.select(t.goals.c.obstacles).where(t.goals.c.id == goal.id)).scalar_one()
    known = mapping.obstacles_from_json(goal.uid, stored)
    return mapping.obstacles_to_json([replace(obstacle, wakeups=()) for obstacle in known])


def _set_limits(connection: sa.Connection, goal: int, limits: Limits, now: datetime) -> None:
    new = mapping.limits_to_json(limits)
    merged = _merged(connection, goal, t.goals.c.limits, new)
    connection.execute(
        sa.update(t.goals)
        .where(t.goals.c.id == goal)
        .values(limits=merged, limits_rev=t.goals.c.limits_rev + 1, updated_at=now)
    )
    connection.execute(sa.insert(t.events).values(goal=goal, kind="limits", data=new, at=now))


def _set_settings(connection: sa.Connection, goal: int, settings: GoalSettings, now: datetime) -> None:
    new = mapping.settings_to_json(settings)
    merged = _merged(connection, goal, t.goals.c.settings, new)
    connection.execute(sa.update(t.goals).where(t.goals.c.id == goal).values(settings=merged, updated_at=now))
    connection.execute(sa.insert(t.events).values(goal=goal, kind="settings", data=new, at=now))


def _merged(
    connection: sa.Connection, goal: int, column: sa.ColumnElement[Any], new: dict[str, Any]
) -> dict[str, Any]:
    """What is stored with `new` in it: fields that a newer goalmode may have put there stay."""
    stored = connection.execute(sa.select(column).where(t.goals.c.id == goal)).scalar_one()
    return {**stored, **new} if isinstance(stored, dict) else new
