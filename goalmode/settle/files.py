"""The contract's deliverables, as they are just now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from goalmode.domain.contract import Deliverable
from goalmode.domain.snapshot import Observed
from goalmode.domain.text import one_line
from goalmode.state.checks import CheckResult
from goalmode.tools.paths import Workspace


def observe(workspace: Workspace, deliverables: Sequence[Deliverable]) -> tuple[Observed, ...]:
    """Look at each deliverable; one is verified if its content is the one a completion was accepted with."""
    seen = []
    for deliverable in deliverables:
        found = workspace.observe(deliverable.path)
        verified = found.exists and found.sha256 == deliverable.sha_verified
        seen.append(replace(found, path=deliverable.path, verified=verified))
    return tuple(seen)


def check(workspace: Workspace, deliverables: Sequence[Deliverable]) -> tuple[list[CheckResult], list[str]]:
    """Whether each deliverable exists inside the workspace and is not empty: results to store, and what is missing."""
    results, missing = [], []
    for found in observe(workspace, deliverables):
        problem = _problem(found)
        results.append(CheckResult(found.path, not problem, sha256=found.sha256, tail=problem))
        if problem:
            missing.append(f"deliverable {one_line(found.path, 200)}: {problem}")
    return results, missing


def _problem(found: Observed) -> str:
    if not found.exists:
        text = found.problem or "the file does not exist"
        return f"{text} ({found.hint})" if found.hint else text
    return "the file is empty" if found.size == 0 else ""
