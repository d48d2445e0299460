"""What a person accepts of a contract: a requirement that only a person can judge, or a protected file as it is now."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import sqlalchemy as sa

from goalmode.domain.contract import RequirementStatus
from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Goal
from goalmode.errors import NotAllowed
from goalmode.state import answers, goals, notes
from goalmode.state import tables as t
from goalmode.state.exclusion import lock_goal
from goalmode.state.store import Store


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What is accepted.

    Attributes:
        requirements: their ids.
        basis: of the deliverables that the person saw (`goalmode.domain.contract.basis_of`).
        files: path -> the hash of its content, None if it is absent.
        signs_off: whether nothing is left that a person has to accept.
    """

    requirements: Sequence[str] = ()
    basis: str = ""
    files: Mapping[str, str | None] = field(default_factory=dict)
    signs_off: bool = False


def accept(store: Store, goal: Goal, accepted: Acceptance, *, now: datetime) -> Goal:
    """Store what a person accepts. Where that signs everything off, a goal that waits for just that is due at once.

    Raises:
        NotAllowed: the goal was edited or aborted meanwhile; nothing is stored.
    """
    with store.writing() as connection:
        lock_goal(connection, goal.id)
        touched = connection.execute(
            sa.update(t.goals)
            .where(
                t.goals.c.id == goal.id,
                t.goals.c.revision == goal.revision,
                t.goals.c.status != GoalStatus.ABORTED,
            )
            .values(updated_at=now)
        )
        if touched.rowcount != 1:
            raise NotAllowed(
                f"goal {goal.uid}: was changed by somebody else meanwhile; look at it and try again"
            )
        new = [
            label for label in accepted.requirements if _hold(connection, goal, label, accepted.basis, now)
        ]
        for label in new:
            _event(store, connection, goal, {"requirement": label, "basis": accepted.basis}, now)
        before = {file.path: file.sha256 for file in goal.protected}
        for path, sha in accepted.files.items():
            if _keep(connection, goal, path, sha, now):
                data = {"file": path, "sha256": sha, "before": before.get(path)}
                _event(store, connection, goal, data, now)
        _answer(store, connection, goal, new, accepted.signs_off, now)
    return goals.get(store, goal.id)


def _hold(connection: sa.Connection, goal: Goal, label: str, basis: str, now: datetime) -> bool:
    """Whether the requirement was not accepted so already: by this user, or by another at the same moment."""
    row = t.requirements.c
    changed = connection.execute(
        sa.update(t.requirements)
        .where(
            row.goal == goal.id,
            row.position == int(label[1:]),
            sa.or_(row.status != RequirementStatus.PASSED, row.basis.is_distinct_from(basis)),
        )
        .values(status=RequirementStatus.PASSED, checked_at=now, basis=basis)
    )
    return changed.rowcount == 1


def _keep(connection: sa.Connection, goal: Goal, path: str, sha: str | None, now: datetime) -> bool:
    row = t.protected_files.c
    changed = connection.execute(
        sa.update(t.protected_files)
        .where(row.goal == goal.id, row.path == path, row.sha256.is_distinct_from(sha))
        .values(sha256=sha, accepted_at=now)
    )
    return changed.rowcount == 1


def _answer(
    store: Store, connection: sa.Connection, goal: Goal, new: Sequence[str], signs_off: bool, now: datetime
) -> None:
    """Say so to the goal: as the answer to its question, or, where it asks nothing, to a wakeup about to ask."""
    texts = [f"{r.id} ({r.text})" for r in goal.requirements if r.id in new]
    said = f"accepted: {'; '.join(texts)}" if texts else "accepted"
    answered = signs_off and answers.sign_off(store, connection, goal, said, now=now)
    if texts and not answered:
        notes.post(store, connection, goal.id, "answer", said, now)


def _event(
    store: Store, connection: sa.Connection, goal: Goal, data: Mapping[str, object], now: datetime
) -> None:
    row = {"goal": goal.id, "kind": "accepted", "data": store.clean_json(data), "at": now}
    connection.execute(sa.insert(t.events).values(**row))
