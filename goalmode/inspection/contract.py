"""A goal's contract beside what is known of it: what was checked, what a person accepted, and the files just now."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from goalmode.domain.contract import CheckKind, Requirement, basis_of
from goalmode.domain.goal import Goal
from goalmode.inspection.seen import iso
from goalmode.settle import files, protect
from goalmode.state.reading import CheckSeen
from goalmode.tools.paths import Workspace


def contract(goal: Goal, checks: Mapping[str, CheckSeen]) -> dict[str, Any]:
    """The requirements, deliverables and protected files.

    Args:
        checks: the newest one of each requirement and deliverable, by its subject.
    """
    jail = Workspace(Path(goal.workspace))
    seen = files.observe(jail, goal.deliverables)
    basis = basis_of((now.path, now.sha256) for now in seen)
    return {
        "requirements": [_requirement(r, checks.get(r.id), basis) for r in goal.requirements],
        "deliverables": [
            {
                "path": now.path,
                "exists": now.exists,
                "size": now.size,
                "sha256": now.sha256,
                "seen_sha256": stored.sha_seen,
                "verified_sha256": stored.sha_verified,
                "verified": now.verified,
                "problem": now.problem,
                "hint": now.hint,
            }
            for now, stored in zip(seen, goal.deliverables, strict=True)
        ],
        "protected": [
            {
                "path": file.path,
                "named_by": file.named_by,
                "sha256": file.sha256,
                "state": protect.state_of(jail, file),
                "accepted_at": iso(file.accepted_at),
            }
            for file in goal.protected
        ],
    }


def _requirement(requirement: Requirement, check: CheckSeen | None, basis: str) -> dict[str, Any]:
    shown = None if requirement.kind is CheckKind.HUMAN else check
    return {
        "id": requirement.id,
        "kind": requirement.kind.value,
        "text": requirement.text,
        "check": requirement.check,
        "file": None if requirement.file is None else requirement.file.written,
        "status": requirement.status.value,
        "checked_at": iso(requirement.checked_at),
        "outdated": requirement.is_outdated(basis),
        "exit_code": None if shown is None else shown.exit_code,
        "evidence": "" if shown is None else shown.tail,
    }
