"""The gate that a claim of success must pass. A claim is a proposal; the host decides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from anyio import to_thread

from goalmode.domain.redact import Redactor
from goalmode.domain.text import one_line
from goalmode.settle import command, evidence, files
from goalmode.settle.case import Case, Judgement
from goalmode.state.checks import CheckResult
from goalmode.tools.paths import Workspace

MAX_MISSING = 20
"""Lines of what is missing that the model is told at once."""


def judge(workspace: Path, redact: Redactor) -> Callable[[Case], Awaitable[Judgement]]:
    """A judge of claims about the work in `workspace`."""
    jail = Workspace(workspace)

    async def decide(case: Case) -> Judgement:
        goal = case.goal
        results: list[CheckResult] = []
        lacking: list[str] = []
        for requirement in goal.requirements:
            if requirement.check is not None:
                result, problem = await command.check(
                    requirement,
                    workspace=workspace,
                    environment=case.environment,
                    gate=case.gate,
                    call_id=case.call_id,
                    redact=redact,
                )
                results.append(result)
                lacking += [problem] if problem else []
        # The files last: a check is a command, and may change them.
        seen, missing = await to_thread.run_sync(files.check, jail, goal.deliverables)
        results += seen
        missing += [
            f"item {item.label} awaits verification: {one_line(item.text, 200)}" for item in case.work.pending
        ]
        missing += lacking
        unchecked = [r for r in goal.requirements if r.check is None]
        nothing_to_check = not goal.deliverables and not goal.requirements
        if unchecked or nothing_to_check:
            cited = await to_thread.run_sync(evidence.cites, case.evidence, case.actions, jail)
            if not cited:
                missing.append(_wanted(unchecked[0].text if unchecked else ""))
        checked = any(r.check is not None for r in goal.requirements) or bool(goal.deliverables)
        return Judgement(
            tuple(missing[:MAX_MISSING]), tuple(results), "checks" if checked else "evidence-only"
        )

    return decide


def _wanted(requirement: str) -> str:
    about = f" for: {one_line(requirement, 200)}" if requirement else ""
    return f"evidence{about}: cite a command that was run, or a file that is there, by its exact name"
