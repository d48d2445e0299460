"""Checking a contract outside of any wakeup: the same look as at a claim, without a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from anyio import to_thread

from goalmode.domain.contract import CheckKind, Requirement
from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Goal
from goalmode.domain.redact import Redactor
from goalmode.errors import NotAllowed
from goalmode.settle.examine import Checks, Examined, examine
from goalmode.state import checks, goals
from goalmode.state.checks import CheckResult
from goalmode.state.store import Store
from goalmode.tools.confinement import FREE, Confinement
from goalmode.tools.paths import Workspace


@dataclass(frozen=True, slots=True)
class Line:
    """One part of a contract as it was found.

    Attributes:
        subject: a requirement's id, or a path.
        kind: of a requirement; `deliverable` or `protected`.
        holds: None: only a claim can show it.
        detail: what was found, in a few words.
        tail: the end of a command's output.
    """

    subject: str
    kind: str
    text: str
    holds: bool | None
    detail: str
    exit_code: int | None = None
    tail: str = ""


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found, and the goal with it. Protected files are told only where they changed."""

    goal: Goal
    lines: tuple[Line, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing speaks against a claim, as far as it can be known without one."""
        return all(line.holds is not False for line in self.lines)


async def check_contract(
    store: Store,
    goal: Goal,
    *,
    environment: Mapping[str, str],
    redact: Redactor,
    confinement: Confinement = FREE,
) -> Checked:
    """Run the contract's checks and store what they found. A wakeup that runs goes on meanwhile.

    Args:
        environment: of the checks' commands; it holds no provider's key.
        confinement: what they are started in.

    Raises:
        NotAllowed: the goal is aborted, or its workspace is on another machine.
        UnknownGoal: it was deleted meanwhile.
    """
    if goal.status is GoalStatus.ABORTED:
        raise NotAllowed(f"goal {goal.uid}: is aborted and can only be read, so `check` is refused")
    if goal.host_label != store.owner.host_label:
        raise NotAllowed(f"goal {goal.uid}: its workspace is on {goal.host_label}, so it is checked there")
    jail = Workspace(Path(goal.workspace))
    found = await examine(goal, Checks(jail, environment, None, "check", redact, confinement))
    record = partial(checks.record_alone, store, goal, found.results, now=store.clock.now())
    await to_thread.run_sync(record)
    return Checked(goals.get(store, goal.id), tuple(_lines(goal, found)))


def _lines(goal: Goal, found: Examined) -> Iterator[Line]:
    results = {result.subject: result for result in found.results}
    for requirement in goal.requirements:
        yield _requirement(requirement, results.get(requirement.id), found.basis)
    for deliverable in goal.deliverables:
        result = results[deliverable.path]
        detail = result.tail or "exists and is not empty"
        yield Line(deliverable.path, "deliverable", deliverable.path, result.passed, detail)
    for path, state in found.changed.items():
        yield Line(path, "protected", path, holds=False, detail=state)


def _requirement(requirement: Requirement, result: CheckResult | None, basis: str) -> Line:
    def line(holds: bool | None, detail: str, exit_code: int | None = None, tail: str = "") -> Line:
        kind = requirement.kind.value
        return Line(requirement.id, kind, requirement.text, holds, detail, exit_code, tail)

    match requirement.kind:
        case CheckKind.COMMAND:
            assert result is not None
            code = result.exit_code
            detail = "no exit code" if code is None else f"exit code {code}"
            return line(result.passed, detail, code, result.tail)
        case CheckKind.FILE:
            assert result is not None
            return line(result.passed, result.tail or "as it should be")
        case CheckKind.HUMAN:
            if requirement.is_accepted(basis):
                return line(holds=True, detail="accepted by the user")
            outdated = requirement.is_outdated(basis)
            detail = "accepted, but the deliverables changed since" if outdated else "not accepted yet"
            return line(holds=False, detail=detail)
        case CheckKind.EVIDENCE:
            return line(holds=None, detail="shown by what a claim cites")
