"""The options that make a contract, for `new` and `edit`, and what a user is told of the contract that they made."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from typing import Any

import click

from goalmode.cli.options import UTF8, Common, together
from goalmode.cli.output import remark
from goalmode.cli.stores import command_here
from goalmode.domain.contract import CheckKind, ProtectedFile, Requirement
from goalmode.domain.goal import Goal, GoalSettings
from goalmode.domain.text import counted, one_line
from goalmode.orchestrator.contract import parse_file_check, warnings
from goalmode.orchestrator.goals import parse_seconds

contract_options = together(
    click.option("--deliverable", "deliverables", metavar="PATH", multiple=True, type=UTF8,
                 help="A file of the workspace that must be there at the end, and not be empty. Repeatable."),
    click.option("--check", "checks", metavar="CMD", multiple=True, type=UTF8,
                 help="A shell command that must exit 0 at the end. Repeatable."),
    click.option("--check-file", "file_checks", metavar="TEST:PATH[:VALUE]", multiple=True, type=UTF8,
                 help="A file's test: exists:PATH, non-empty:PATH, contains:PATH:TEXT, json:PATH or "
                 "larger:PATH:BYTES. Repeatable."),
    click.option("--require", "requirements", metavar="TEXT", multiple=True, type=UTF8,
                 help="A requirement in words, for which evidence must be cited. Repeatable."),
    click.option("--human", "humans", metavar="TEXT", multiple=True, type=UTF8,
                 help="A requirement that a person has to accept, with `goalmode accept`. Repeatable."),
    click.option("--protect", "protect", metavar="GLOB", multiple=True, type=UTF8,
                 help="Files of the workspace that must stay as they are, such as 'tests/**'. What a check names is "
                 "protected in any case. Repeatable."),
)  # fmt: skip

check_timeout = click.option(
    "--check-timeout", metavar="SPAN", help="Longest run of one check. [default: 10m]"
)

_RESTS = {
    CheckKind.COMMAND: "command that must exit 0",
    CheckKind.FILE: "file that must be as its test says",
    CheckKind.EVIDENCE: "requirement in words, for which evidence must be cited",
    CheckKind.HUMAN: "requirement that a person has to accept",
}
_SHOWN = 10
"""Protected files that are named."""


def requirements_of(given: dict[str, Any]) -> tuple[Requirement, ...]:
    """The requirements that the options give, kind by kind.

    Raises:
        BadInput: a file's test is none.
    """
    files = [(text, parse_file_check(text)) for text in given["file_checks"]]
    return (
        *(Requirement("", text) for text in given["requirements"]),
        *(Requirement("", command, command) for command in given["checks"]),
        *(Requirement("", text, file=check) for text, check in files),
        *(Requirement("", text, human=True) for text in given["humans"]),
    )


def check_seconds(given: dict[str, Any], settings: GoalSettings) -> float:
    """How long one check may run: as the options say, else as it was."""
    span = given["check_timeout"]
    return settings.check_seconds if span is None else parse_seconds(span, "check-timeout")


def in_json(goal: Goal, before: Goal | None = None) -> dict[str, Any]:
    """What a program is told of the contract: what may be wrong with its checks, and what they protect."""
    return {
        "warnings": warnings(_added(goal, before)),
        "protected": [file.path for file in goal.protected],
    }


def tell(goal: Goal, common: Common, before: Goal | None = None) -> None:
    """Say what may be wrong with the checks, and which files they protect; after an edit only what is new."""
    for warning in warnings(_added(goal, before)):
        remark(f"Warning: {warning}.")
    known = set() if before is None else {file.path for file in before.protected}
    added = [file for file in goal.protected if file.path not in known]
    if added:
        drop = command_here(common, f"goalmode edit {goal.uid} --drop {_quoted(added[0])}")
        remark(
            f"Protected, so a change of one refuses every claim: {_listed(added)}. "
            f"If the work is to change one, take it out: {drop}"
        )


def resting(goal: Goal) -> str:
    """What a claim of completion rests on."""
    if goal.bare and not goal.requirements:
        return (
            "Nothing can be checked: a claim of completion needs only to cite a command that was run or a file "
            "that is there. --deliverable and --check say more."
        )
    return f"Completion rests on: {'; '.join(_rests(goal))}."


def _rests(goal: Goal) -> Iterator[str]:
    if goal.deliverables:
        yield _many(len(goal.deliverables), "file that must be there and not be empty")
    kinds = Counter(requirement.kind for requirement in goal.requirements)
    yield from (_many(kinds[kind], what) for kind, what in _RESTS.items() if kinds[kind])
    if goal.bare and not kinds[CheckKind.EVIDENCE]:
        yield "a claim that cites a command that was run or a file that is there"


def _added(goal: Goal, before: Goal | None) -> list[Requirement]:
    known = set() if before is None else {requirement.check for requirement in before.requirements}
    return [requirement for requirement in goal.requirements if requirement.check not in known]


def _listed(files: list[ProtectedFile]) -> str:
    shown = [f"{one_line(file.path, 100)} ({one_line(file.named_by, 60)})" for file in files[:_SHOWN]]
    more = len(files) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _quoted(file: ProtectedFile) -> str:
    return shlex.quote(one_line(file.path))


def _many(count: int, what: str) -> str:
    noun, rest = what.split(" ", 1)
    return f"{counted(count, noun)} {rest}"
