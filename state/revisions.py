"""The rows of a contract: written whole with each revision, and read in the order in which they were given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from types import MappingProxyType
from typing import Any

import sqlalchemy as sa

from goalmode.domain.contract import CheckKind, ProtectedFile, Requirement, RequirementStatus
from goalmode.state import mapping
from goalmode.state import tables as t
from goalmode.state.shape import held
from goalmode.state.store import Store


def contract_rows(connection: sa.Connection, table: sa.Table, goal: int) -> Sequence[sa.Row[Any]]:
    """Requirements, deliverables or protected files of a goal, in the contract's order."""
    return held(connection, of_contract(table), lambda row: f"{table.name} {row.position}", {"wanted": goal})


@cache
def of_contract(table: sa.Table) -> sa.Select[Any]:
    """The query for them; which goal is `wanted` is left open."""
    return sa.select(table).where(table.c.goal == sa.bindparam("wanted")).order_by(table.c.position)


def write_contract(
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
    """The requirements and deliverables of a revision, and the revision itself for the history."""
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


def as_accepted(
    store: Store, connection: sa.Connection, goal: int, requirements: Sequence[Requirement]
) -> tuple[Requirement, ...]:
    """The requirements of a new revision, those in the same words still accepted, also if that was a moment ago."""
    stored = {
        row.text: row
        for row in contract_rows(connection, t.requirements, goal)
        if row.kind == CheckKind.HUMAN and row.status == RequirementStatus.PASSED
    }

    def accepted(one: Requirement) -> Requirement:
        row = stored.get(store.clean(one.text)) if one.human else None
        if row is None:
            return one
        return replace(one, status=RequirementStatus.PASSED, checked_at=row.checked_at, basis=row.basis)

    return tuple(map(accepted, requirements))


def write_protected(
    connection: sa.Connection,
    goal: int,
    protected: Sequence[ProtectedFile],
    stored: Mapping[str, sa.Row[Any]] = MappingProxyType({}),
) -> None:
    """What is stored already keeps its hash: the user may have accepted another one a moment ago."""
    for position, file in enumerate(protected, 1):
        kept = stored.get(file.path, file)
        connection.execute(
            sa.insert(t.protected_files).values(
                goal=goal,
                position=position,
                path=file.path,
                sha256=kept.sha256,
                named_by=file.named_by,
                accepted_at=kept.accepted_at,
            )
        )
