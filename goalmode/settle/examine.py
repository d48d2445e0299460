"""The host looks for itself at everything of a contract that can be looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from anyio import to_thread

from goalmode.domain.contract import CheckKind, basis_of
from goalmode.domain.goal import Goal
from goalmode.domain.redact import Redactor
from goalmode.settle import command, files, predicates, protect
from goalmode.state.checks import CheckResult
from goalmode.tools.confinement import Confinement
from goalmode.tools.paths import Workspace
from goalmode.tools.registry import EffectGate


@dataclass(frozen=True, slots=True)
class Checks:
    """What the checks are run with.

    Attributes:
        environment: of the commands; it holds no provider's key.
        gate: that the commands pass; None outside of a wakeup.
        call_id: under which the gate knows them.
        confinement: what the commands are started in.
    """

    jail: Workspace
    environment: Mapping[str, str]
    gate: EffectGate | None
    call_id: str
    redact: Redactor
    confinement: Confinement


@dataclass(frozen=True, slots=True)
class Examined:
    """What was found.

    Attributes:
        results: of requirements in their order, then of deliverables in theirs; to be stored.
        missing_files: what is wrong with deliverables, protected files and other files, one line each, for the model.
        missing_checks: which commands fail, and how.
        changed: protected files that are not as they were, each with what became of it.
        basis: the deliverables as they are (`basis_of`).
    """

    results: tuple[CheckResult, ...]
    missing_files: tuple[str, ...]
    missing_checks: tuple[str, ...]
    changed: Mapping[str, str]
    basis: str


async def examine(goal: Goal, checks: Checks) -> Examined:
    """Run the contract's commands, then look at its files: a command may change what was seen before it ran.

    Raises:
        Fenced: another owner has the goal.
    """
    # Also before the commands: they could put a file back that made them hold.
    before = await to_thread.run_sync(protect.changes, checks.jail, goal.protected)
    ran = [
        await command.check(
            requirement,
            workspace=checks.jail.root,
            environment=checks.environment,
            gate=checks.gate,
            call_id=checks.call_id,
            seconds=goal.settings.check_seconds,
            redact=checks.redact,
            confinement=checks.confinement,
        )
        for requirement in goal.requirements
        if requirement.kind is CheckKind.COMMAND
    ]
    return await to_thread.run_sync(_look, goal, checks.jail, ran, before)


def _look(
    goal: Goal, jail: Workspace, ran: list[tuple[CheckResult, str]], before: Mapping[str, str]
) -> Examined:
    looked = [predicates.check(jail, r) for r in goal.requirements if r.kind is CheckKind.FILE]
    delivered, lacking = files.check(jail, goal.deliverables)
    after = protect.changes(jail, goal.protected)
    while_run = {path: f"{state} while the checks ran" for path, state in after.items() if path not in before}
    changed = {**before, **while_run}
    position = {r.id: place for place, r in enumerate(goal.requirements)}
    of_requirements = sorted(
        (result for result, _ in (*ran, *looked)), key=lambda result: position[result.subject]
    )
    return Examined(
        results=(*of_requirements, *delivered),
        missing_files=(
            *lacking,
            *(problem for _, problem in looked if problem),
            *(protect.told(goal.uid, path, state) for path, state in changed.items()),
        ),
        missing_checks=tuple(problem for _, problem in ran if problem),
        changed=changed,
        basis=basis_of((result.subject, result.sha256) for result in delivered),
    )
