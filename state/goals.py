"""Goals as users make, change, stop and find them. User columns change by compare-and-set on the revision."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from goalmode.domain.budget import Limits
from goalmode.domain.contract import CheckKind, ProtectedFile, Requirement, RequirementStatus
from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Control, Goal, GoalSettings, GoalSpec
from goalmode.domain.memory import SettlementState
from goalmode.errors import NotAllowed, StoreUnreadable, UnknownGoal
from goalmode.state import mapping, wakeups
from goalmode.state import tables as t
from goalmode.state.store import Store

_UID_ALPHABET = "23456789abcdefghjkmnpqrstuvwxyz"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A goal whose rows have a shape this code does not know. Only this goal is affected."""

    uid: str
    problem: str


def create(store: Store, spec: GoalSpec, *, protected: Sequence[ProtectedFile] = (), now: datetime) -> Goal:
    """Store a new goal, due now, and return it. `spec` has been checked (`goalmode.orchestrator.goals`)."""
    uid = "".join(secrets.choice(_UID_ALPHABET) for _ in range(12))
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
        _write_contract(
            store, connection, goal, 1, objective, spec.requirements, spec.deliverables, "user", now
        )
        _write_protected(connection, goal, protected)
    return get(store, goal)


def get(store: Store, goal: int) -> Goal:
    with store.reading() as connection:
        return read(connection, goal)


def read(connection: sa.Connection, goal: int) -> Goal:
    """The goal at one moment, inside a transaction."""
    try:
        row = connection.execute(sa.select(t.goals).where(t.goals.c.id == goal)).first()
    except ValueError as error:
        raise StoreUnreadable(f"goal number {goal}: a time that is stored is none: {error}") from None
    if row is None:
        raise UnknownGoal("the goal has been deleted")
    requirements = _contract_rows(connection, t.requirements, goal)
    deliverables = _contract_rows(connection, t.deliverables, goal)
    protected = _contract_rows(connection, t.protected_files, goal)
    head = connection.execute(sa.select(sa.func.max(t.inbox.c.id)).where(t.inbox.c.goal == goal)).scalar()
    return mapping.goal_from_rows(row, requirements, deliverables, protected, int(head or 0))


def find(store: Store, prefix: str) -> Goal:
    """The goal whose public id begins with `prefix`.

    Raises:
        UnknownGoal: none does, or several do; the message names the candidates.
    """
    wanted = prefix.strip().lower()
    with store.reading() as connection:
        matches = (
            connection.execute(
                sa.select(t.goals.c.id, t.goals.c.uid)
                .where(t.goals.c.uid.startswith(wanted, autoescape=True))
                .order_by(t.goals.c.uid)
                .limit(6)
            ).all()
            if wanted
            else []
        )
        exact = [m for m in matches if m.uid == wanted]
        if len(exact or matches) != 1:
            if not matches:
                raise UnknownGoal(f"no goal {prefix!r} in {store.path}; `goalmode list` shows them")
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
        return Unreadable(row.uid, str(error))


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
        for table in (t.requirements, t.deliverables):
            connection.execute(sa.delete(table).where(table.c.goal == goal.id))
        _write_contract(
            store, connection, goal.id, change.revision + 1, objective, requirements, paths, author, now
        )
        if change.protected is not None:
            connection.execute(sa.delete(t.protected_files).where(t.protected_files.c.goal == goal.id))
            _write_protected(connection, goal.id, change.protected)
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
    answer: str | None = None,
    limits: Limits | None = None,
    settings: GoalSettings | None = None,
) -> Goal:
    """Let the goal be woken now; its streak of bad endings and its count of obstacles start anew.

    An `answer` goes through the inbox. New `limits` are a new limits revision, so that one more wrap-up is possible.
    New `settings` hold from the next wakeup on.
    """
    with store.writing() as connection:
        if limits is not None:
            _set_limits(connection, goal.id, limits, now)
        if settings is not None:
            _set_settings(connection, goal.id, settings, now)
        connection.execute(
            sa.update(t.goals)
            .where(t.goals.c.id == goal.id)
            .values(
                status=GoalStatus.ACTIVE,
                status_detail="",
                control=Control.NONE,
                streak=0,
                failures=0,
                obstacles=_counted_anew(connection, goal),
                next_wakeup_at=now,
                wake_reason=reason,
                updated_at=now,
            )
        )
        if answer is not None:
            post(store, connection, goal.id, "answer", answer, now)
    return get(store, goal.id)


def is_running(store: Store, connection: sa.Connection, goal: int) -> bool:
    """Whether a wakeup of the goal is open whose owner lives."""
    running = wakeups.open_wakeup(connection, goal)
    return running is not None and not running.lease.is_void(store.clock.lease_ms(), store.owner)


def stop(store: Store, goal: Goal, control: Control, *, now: datetime) -> tuple[Goal, bool]:
    """Ask a running wakeup to end, or set the status at once where none runs; returns the goal, and which it was."""
    status = GoalStatus.PAUSED if control is Control.PAUSE else GoalStatus.ABORTED
    at_once = {"status": status, "status_detail": "by the user", "next_wakeup_at": None, "wake_reason": ""}
    with store.writing() as connection:
        running = is_running(store, connection, goal.id)
        changes = {"control": control} if running else {**at_once, "control": Control.NONE}
        connection.execute(
            sa.update(t.goals).where(t.goals.c.id == goal.id).values(updated_at=now, **changes)
        )
        post(store, connection, goal.id, "stop", control.value, now)
    return get(store, goal.id), running


def delete(store: Store, goal: Goal) -> None:
    """Remove a goal with everything stored for it. Its workspace is not touched."""
    with store.writing() as connection:
        of_goal = sa.select(t.wakeups.c.id).where(t.wakeups.c.goal == goal.id)
        used = sa.union_all(
            sa.select(t.contexts.c.body).where(t.contexts.c.wakeup.in_(of_goal)),
            sa.select(t.contexts.c.messages).where(t.contexts.c.wakeup.in_(of_goal)),
            sa.select(t.turns.c.reply).where(t.turns.c.wakeup.in_(of_goal)),
            sa.select(t.turns.c.results).where(t.turns.c.wakeup.in_(of_goal)),
            sa.select(t.tool_calls.c.result).where(t.tool_calls.c.wakeup.in_(of_goal)),
            sa.select(t.checks.c.tail).where(t.checks.c.goal == goal.id),
        )
        ids = [i for i in connection.execute(used).scalars() if i is not None]
        connection.execute(sa.delete(t.goals).where(t.goals.c.id == goal.id))
        for start in range(0, len(ids), 500):
            connection.execute(sa.delete(t.bodies).where(t.bodies.c.id.in_(ids[start : start + 500])))


def post(store: Store, connection: sa.Connection, goal: int, kind: str, text: str, now: datetime) -> None:
    """Append what a user said to the goal's inbox."""
    connection.execute(sa.insert(t.inbox).values(goal=goal, kind=kind, text=store.clean(text), at=now))


def revisions(store: Store, goal: Goal) -> Sequence[Mapping[str, Any]]:
    """The contract's revisions, oldest first: revision, author, at, contract."""
    with store.reading() as connection:
        rows = connection.execute(
            sa.select(t.goal_revisions)
            .where(t.goal_revisions.c.goal == goal.id)
            .order_by(t.goal_revisions.c.revision)
        )
        return [
            {"revision": r.revision, "author": r.author, "at": r.at, "contract": r.contract} for r in rows
        ]


def _contract_rows(connection: sa.Connection, table: sa.Table, goal: int) -> Sequence[sa.Row[Any]]:
    return connection.execute(sa.select(table).where(table.c.goal == goal).order_by(table.c.position)).all()


def _write_contract(
    store: Store,
    connection: sa.Connection,
    goal: int,
    revision: int,
    objective: str,
    requirements: Sequence[Requirement],
    paths: Sequence[str],
    author: str,
    now: datetime,
) -> None:
    contract: dict[str, Any] = {
        "v": mapping.VERSION,
        "objective": objective,
        "requirements": [],
        "deliverables": [],
    }
    for position, requirement in enumerate(requirements, 1):
        text, command = store.clean(requirement.text), requirement.check
        file = mapping.file_check_to_json(requirement.file)
        kind = requirement.kind
        contract["requirements"].append({"text": text, "kind": kind, "check": command, "file": file})
        accepted = kind is CheckKind.HUMAN and requirement.status is RequirementStatus.PASSED
        connection.execute(
            sa.insert(t.requirements).values(
                goal=goal,
                position=position,
                revision=revision,
                text=text,
                command=command,
                kind=kind,
                file=file,
                status=RequirementStatus.PASSED if accepted else RequirementStatus.OPEN,
                checked_at=requirement.checked_at if accepted else None,
                basis=requirement.basis if accepted else None,
            )
        )
    for position, path in enumerate(paths, 1):
        contract["deliverables"].append(path)
        connection.execute(
            sa.insert(t.deliverables).values(goal=goal, position=position, revision=revision, path=path)
        )
    connection.execute(
        sa.insert(t.goal_revisions).values(
            goal=goal, revision=revision, contract=contract, author=author, at=now
        )
    )


def _write_protected(connection: sa.Connection, goal: int, protected: Sequence[ProtectedFile]) -> None:
    for position, file in enumerate(protected, 1):
        connection.execute(
            sa.insert(t.protected_files).values(
                goal=goal, position=position, path=file.path, sha256=file.sha256, named_by=file.named_by
            )
        )


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
