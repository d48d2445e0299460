"""The gate that a claim of success must pass. A claim is a proposal; the host decides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from functools import cache, partial
from pathlib import Path

from anyio import to_thread

from goalmode.domain.contract import CheckKind, Requirement
from goalmode.domain.goal import Goal
from goalmode.domain.redact import Redactor
from goalmode.domain.text import one_line
from goalmode.domain.work import ItemStatus, WorkState
from goalmode.settle import evidence
from goalmode.settle.case import Case, Judgement
from goalmode.settle.examine import Checks, Examined, examine
from goalmode.state.checks import CheckResult
from goalmode.tools.confinement import FREE, Confinement
from goalmode.tools.named import hash_of
from goalmode.tools.paths import Workspace

MAX_MISSING = 20
"""Lines of what is missing that the model is told at once."""

MAX_EVIDENCE = 4_000
"""Characters of a claim's evidence that are stored with the requirements that rest on it."""


def judge(
    workspace: Path, redact: Redactor, confinement: Confinement = FREE
) -> Callable[[Case], Awaitable[Judgement]]:
    """A judge of claims about the work in `workspace`, whose commands are started in `confinement`."""
    jail = Workspace(workspace)

    async def decide(case: Case) -> Judgement:
        checks = Checks(jail, case.environment, case.gate, case.call_id, redact, confinement)
        found = await examine(case.goal, checks)
        return await to_thread.run_sync(partial(_judged, case, found, jail))

    return decide


def _judged(case: Case, found: Examined, jail: Workspace) -> Judgement:
    goal = case.goal
    missing = [*found.missing_files, *_pending(case.work, jail), *found.missing_checks]
    in_words = [r for r in goal.requirements if r.kind is CheckKind.EVIDENCE]
    if (in_words or goal.bare) and not evidence.cites(case.evidence, case.actions, jail):
        missing.append(_wanted(in_words[0].text if in_words else ""))
    basis = "evidence-only" if goal.bare else "checks"
    if missing:
        more = len(missing) - MAX_MISSING
        told = [*missing[:MAX_MISSING], *([f"and {more} more"] if more > 0 else [])]
        return Judgement(tuple(told), found.results, basis)
    # Only now: of a claim that does not stand, what it cited is worth nothing.
    cited = "\n".join(case.evidence)[:MAX_EVIDENCE]
    results = (*found.results, *(CheckResult(r.id, passed=True, tail=cited) for r in in_words))
    return Judgement((), results, basis, open_sign_off(goal, found.basis))


def open_sign_off(goal: Goal, basis: str) -> tuple[Requirement, ...]:
    """The requirements that a person has yet to accept, with the deliverables as they are (`basis_of`)."""
    return tuple(r for r in goal.requirements if r.human and not r.is_accepted(basis))


def _pending(work: WorkState, jail: Workspace) -> Iterator[str]:
    """What awaits verification, or does so again because a file changed that it rests on."""
    for item in work.as_seen(cache(partial(hash_of, jail))).pending:
        if item.status is ItemStatus.STALE:
            changed = one_line(", ".join(item.changed), 200)
            state = f"was verified, but {changed} changed since, verify it again"
        else:
            state = "awaits verification"
        yield f"item {item.label} {state}: {one_line(item.text, 200)}"


def _wanted(requirement: str) -> str:
    about = f" for: {one_line(requirement, 200)}" if requirement else ""
    return f"evidence{about}: cite a command that was run, or a file that is there, by its exact name"
