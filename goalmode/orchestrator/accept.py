"""What a person says of a goal's contract: this requirement holds, this change of a protected file is wanted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from goalmode.domain.contract import CheckKind, Requirement, basis_of
from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Goal
from goalmode.domain.text import one_line
from goalmode.errors import BadInput, NotAllowed
from goalmode.settle import files, protect
from goalmode.settle.gate import open_sign_off
from goalmode.state import contract
from goalmode.state.contract import Acceptance
from goalmode.state.store import Store
from goalmode.tools.paths import PathError, Workspace


@dataclass(frozen=True, slots=True)
class Accepted:
    """The goal as it is now, and what of that which was named was new.

    Attributes:
        names: ids and paths as they are stored, in the order in which they were given.
        already: those of them that had been accepted as they are.
        open: requirements that still wait for a person.
    """

    goal: Goal
    names: tuple[str, ...]
    already: tuple[str, ...]
    open: tuple[Requirement, ...]


def accept(store: Store, goal: Goal, names: Iterable[str]) -> Accepted:
    """Accept requirements (`R3`), and protected files (by their paths) as they are now: all that is named, or nothing.

    A requirement is accepted with the deliverables as they are; when one changes, it is open again. Accepting twice
    changes nothing. A goal that waits for nothing but acceptance is due once the last requirement is accepted.

    Raises:
        BadInput: a name is neither.
        NotAllowed: the goal is aborted, its workspace is on another machine, or it was edited meanwhile.
    """
    if goal.status is GoalStatus.ABORTED:
        raise NotAllowed(f"goal {goal.uid}: is aborted and can only be read, so `accept` is refused")
    if goal.host_label != store.owner.host_label:
        raise NotAllowed(f"goal {goal.uid}: its workspace is on {goal.host_label}, so it is accepted there")
    jail = Workspace(Path(goal.workspace))
    basis = basis_of((d.path, d.sha256) for d in files.observe(jail, goal.deliverables))
    wanted = dict.fromkeys(_named(goal, name, jail) for name in names)
    known = {file.path: file for file in goal.protected}
    requirements = [r for r in goal.requirements if r.id in wanted]
    hashes = {path: _hash(jail, path) for path in wanted if path in known}
    already = {r.id for r in requirements if r.is_accepted(basis)}
    already |= {path for path, sha in hashes.items() if sha == known[path].sha256}
    left = tuple(r for r in open_sign_off(goal, basis) if r.id not in wanted)
    acceptance = Acceptance(
        [r.id for r in requirements if r.id not in already],
        basis,
        {path: sha for path, sha in hashes.items() if path not in already},
        signs_off=bool(requirements) and not left,
    )
    goal = contract.accept(store, goal, acceptance, now=store.clock.now())
    return Accepted(goal, tuple(wanted), tuple(name for name in wanted if name in already), left)


def _named(goal: Goal, name: str, jail: Workspace) -> str:
    """The id or the path that is meant."""
    human = [r.id for r in goal.requirements if r.kind is CheckKind.HUMAN]
    label = name.strip().upper()
    if label in human:
        return label
    other = next((r for r in goal.requirements if r.id == label), None)
    if other is not None:
        raise BadInput("accept", name, f"a requirement for a person; {label} is shown by {_shown_by(other)}")
    protected = {file.path for file in goal.protected}
    try:
        path = jail.normalise(name)
    except BadInput:
        path = name
    if path in protected:
        return path
    have = [*human, *sorted(protected)]
    some = ", ".join(one_line(one, 80) for one in have[:10]) + (", …" if len(have) > 10 else "")
    expected = f"the goal's requirements for a person and protected files: {some or 'it has none'}"
    raise BadInput("accept", name, expected)


def _shown_by(requirement: Requirement) -> str:
    match requirement.kind:
        case CheckKind.COMMAND:
            return "its command"
        case CheckKind.FILE:
            return "its file"
        case _:
            return "what a claim cites"


def _hash(jail: Workspace, path: str) -> str | None:
    try:
        return protect.hash_now(jail, path)
    except PathError as error:
        raise BadInput("accept", path, f"a file that can be read: {error.problem}") from None
    except BadInput as error:
        raise BadInput("accept", path, error.expected) from None
