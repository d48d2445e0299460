"""The contract as a user gives it: checked, brought into the form in which it is stored, with the files it protects."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from goalmode.domain.contract import CheckKind, FileCheck, FileTest, ProtectedFile, Requirement
from goalmode.domain.goal import Goal
from goalmode.errors import BadInput
from goalmode.settle import protect
from goalmode.settle.masked import masked
from goalmode.tools.paths import Workspace

MAX_LINE = 10_000
"""Longest requirement, check or text looked for, in characters."""

MAX_CHECK_SECONDS = 86_400.0
"""Longest time limit of one check."""

_ID = re.compile(r"R[0-9]+")
_FIELDS = {
    CheckKind.COMMAND: "check",
    CheckKind.FILE: "check-file",
    CheckKind.HUMAN: "human",
    CheckKind.EVIDENCE: "require",
}
"""The option that gives a requirement of each kind."""

_TESTS = ", ".join(FileTest)
_FORM = f"TEST:PATH or TEST:PATH:VALUE, where TEST is one of {_TESTS}; such as contains:report.md:Total"


def encodable(text: str) -> bool:
    """Whether it can be stored and run exactly as it was given: no NUL, no undecodable byte."""
    return "\x00" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


def checked_requirements(given: Iterable[Requirement], workspace: Path) -> tuple[Requirement, ...]:
    """The requirements with their ids, in the form in which they are stored.

    Raises:
        BadInput: one is blank, too long, of no kind or of several, or names no file of the workspace.
    """
    jail = Workspace(workspace)
    return tuple(_requirement(number, one, jail) for number, one in enumerate(given, 1))


def checked_deliverables(paths: Iterable[str], workspace: Path) -> tuple[str, ...]:
    """The paths in their clean form, each once.

    Raises:
        BadInput: one leads out of the workspace, is the workspace, or reads like a requirement's id.
    """
    jail = Workspace(workspace)
    return tuple(dict.fromkeys(_path(jail, path, "deliverable", path) for path in paths))


def checked_protection(
    requirements: Iterable[Requirement], globs: Iterable[str], deliverables: Collection[str], workspace: Path
) -> tuple[ProtectedFile, ...]:
    """The files that a new goal protects, as they are now: those that its checks name, and those that match a glob.

    A deliverable is not one of them: it is there to be written.

    Raises:
        BadInput: a glob leads out of the workspace or matches nothing, or the files are too many or too large.
    """
    jail = Workspace(workspace)
    named = {**_matched(jail, globs), **protect.named_by_checks(jail, requirements)}
    return protect.take_hashes(jail, _without(named, deliverables))


def protection_after(
    goal: Goal,
    requirements: Sequence[Requirement],
    deliverables: Collection[str],
    *,
    globs: Iterable[str] = (),
    dropped: Collection[str] = (),
) -> tuple[ProtectedFile, ...]:
    """The files that a goal protects after an edit. What is protected already keeps its hash.

    Args:
        requirements, deliverables: after the edit.
        globs: further ones. dropped: paths and globs that are to be protected no longer.

    Raises:
        BadInput: as for a new goal.
    """
    jail = Workspace(Path(goal.workspace))
    naming = protect.named_by_checks(jail, requirements)
    kept = [
        replace(file, named_by=by)
        for file in goal.protected
        if file.path not in deliverables
        and file.path not in dropped
        and (_ID.fullmatch(file.named_by) or file.named_by not in dropped)
        and (by := _still_named(goal, file, requirements) or naming.get(file.path, ""))
    ]
    before = {r.check for r in goal.requirements}
    added = protect.named_by_checks(jail, (r for r in requirements if r.check not in before))
    named = {**_matched(jail, globs), **added}
    known = {*deliverables, *dropped, *(file.path for file in kept)}
    return (*kept, *protect.take_hashes(jail, _without(named, known), kept))


def warnings(requirements: Iterable[Requirement]) -> list[str]:
    """Checks that hold whatever they find, one line each, for the user who wrote them."""
    found = ((r.id, masked(r.check)) for r in requirements if r.check is not None)
    return [f"check {label} may hold whatever it finds: {why}" for label, why in found if why]


def parse_file_check(text: str, field: str = "check-file") -> FileCheck:
    """A file's test as a user writes it: `exists:out.md`, `contains:report.md:Total`, `larger:data.csv:1024`.

    A path with a colon can be given to a test without a value only.

    Raises:
        BadInput: it is no test, or lacks its path or its value.
    """
    word, _, rest = text.partition(":")
    if word not in tuple(FileTest) or not rest:
        raise BadInput(field, text, _FORM)
    test = FileTest(word)
    if test not in (FileTest.CONTAINS, FileTest.LARGER):
        return FileCheck(test, rest)
    path, _, value = rest.partition(":")
    return FileCheck(test, path, value)


def _requirement(number: int, given: Requirement, jail: Workspace) -> Requirement:
    if (given.check is not None) + (given.file is not None) + given.human > 1:
        raise BadInput("requirement", given.text, "one of a command, a file's test and a person's acceptance")
    field = _FIELDS[given.kind]
    file = None if given.file is None else _file(given.file, jail)
    said = given.check if given.check is not None else file.written if file is not None else given.text
    for text in (said, given.text or said):
        _refuse_unusable(text, field)
    # Without a status: what was accepted is known to the store, by its words.
    return Requirement(f"R{number}", given.text or said, given.check, file, given.human)


def _file(given: FileCheck, jail: Workspace) -> FileCheck:
    path = _path(jail, given.path, "check-file", given.written)
    match given.test:
        case FileTest.CONTAINS:
            if not given.value:
                raise BadInput("check-file", given.written, "a text to look for: contains:PATH:TEXT")
        case FileTest.LARGER:
            if not (given.value.isascii() and given.value.isdigit()) or len(given.value) > 15:
                raise BadInput("check-file", given.written, "a whole number of bytes: larger:PATH:BYTES")
        case _:
            if given.value:
                raise BadInput("check-file", given.written, f"no value: {given.test}:PATH")
    return replace(given, path=path)


def _path(jail: Workspace, path: str, field: str, shown: str) -> str:
    try:
        normal = jail.normalise(path)
    except BadInput as error:
        raise BadInput(field, shown, error.expected) from None
    if normal == ".":
        raise BadInput(field, shown, "a file inside the workspace; this is the workspace itself")
    if _ID.fullmatch(normal):
        raise BadInput(field, shown, "a path that does not read like a requirement's id")
    return normal


def _refuse_unusable(text: str, field: str) -> None:
    if not text.strip() or not encodable(text):
        raise BadInput(field, text, "a text that is not blank, is valid UTF-8 and holds no NUL")
    if len(text) > MAX_LINE:
        raise BadInput(field, text, f"at most {MAX_LINE:,} characters; it has {len(text):,}")


def _matched(jail: Workspace, globs: Iterable[str]) -> dict[str, str]:
    wanted = tuple(globs)
    for glob in wanted:
        if _ID.fullmatch(glob):
            raise BadInput("protect", glob, "a glob that does not read like a requirement's id")
        if not encodable(glob):
            raise BadInput("protect", glob, "valid UTF-8 without NUL")
    return protect.matched(jail, wanted)


def _without(named: dict[str, str], left_out: Collection[str]) -> dict[str, str]:
    return {path: by for path, by in named.items() if path not in left_out and not _ID.fullmatch(path)}


def _still_named(goal: Goal, file: ProtectedFile, requirements: Iterable[Requirement]) -> str:
    """What names the file after the edit: the glob, or the check under the id that it has then; empty if it is gone."""
    if not _ID.fullmatch(file.named_by):
        return file.named_by
    check = next((r.check for r in goal.requirements if r.id == file.named_by), None)
    return next((r.id for r in requirements if check is not None and r.check == check), "")
