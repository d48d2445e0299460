"""Files that the work must leave as they are: chosen when a goal is made, looked at again with every claim.

What a check reads decides whether the check holds, so a check is only worth as much as the files that it names.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from goalmode.domain.contract import ProtectedFile, Requirement
from goalmode.domain.text import one_line
from goalmode.errors import BadInput
from goalmode.settle.shell import script_of, simple_commands
from goalmode.tools.listing import NOT_ENTERED, Kind, entries
from goalmode.tools.named import is_file
from goalmode.tools.paths import MAX_LEVELS, Missing, PathError, Workspace, measure

MAX_PROTECTED = 1_000
"""Protected files of one goal."""

MAX_BYTES = 256_000_000
"""Of all protected files together: they are read whole with every claim, and when a context is rendered."""

MAX_NAMES = 100_000
"""Names in the directory that a glob is looked for in."""

_WILD = re.compile(r"[*?\[]")
_DEEPEST = 5
"""Scripts within scripts (`bash -c "bash -c …"`) that are looked into."""


def named_by_checks(workspace: Workspace, requirements: Iterable[Requirement]) -> dict[str, str]:
    """The files that the requirements' commands name, each with the id of the first requirement that does."""
    found: dict[str, str] = {}
    for requirement in requirements:
        if requirement.check is not None:
            for path in _named(workspace, requirement.check):
                found.setdefault(path, requirement.id)
    return found


def matched(workspace: Workspace, globs: Iterable[str]) -> dict[str, str]:
    """The files that match, each with the first glob that it does.

    `*`, `?` and `[…]` stand for names in one directory, `**` for directories; a directory stands for all below it.

    Raises:
        BadInput: a glob that leads out of the workspace, or matches no file in it.
    """
    found: dict[str, str] = {}
    for glob in globs:
        try:
            paths = _matched(workspace, workspace.normalise(glob))
        except BadInput as error:
            raise BadInput("protect", glob, error.expected) from None
        if not paths:
            raise BadInput("protect", glob, _NO_MATCH)
        for path in paths:
            found.setdefault(path, glob)
    return found


def take_hashes(
    workspace: Workspace, named: Mapping[str, str], beside: Sequence[ProtectedFile] = ()
) -> tuple[ProtectedFile, ...]:
    """The files (path, what names it) as they are to stay.

    Args:
        beside: files that are protected already.

    Raises:
        BadInput: they are too many or too large, or one cannot be read.
    """
    count = len(named) + len(beside)
    if count > MAX_PROTECTED:
        expected = f"checks and globs that name at most {MAX_PROTECTED:,} files together"
        raise BadInput("protect", f"{count:,} files", expected)
    protected, total = [], sum(_size(workspace, file.path) for file in beside)
    for path, by in named.items():
        try:
            with workspace.open(path) as file:
                total += os.fstat(file.fileno()).st_size
                if total > MAX_BYTES:
                    raise BadInput("protect", path, _TOO_LARGE)
                protected.append(ProtectedFile(path, measure(file)[1], by))
        except PathError as error:
            raise BadInput("protect", path, f"a file that can be read: {error.problem}") from None
    return tuple(protected)


def hash_now(workspace: Workspace, path: str) -> str | None:
    """The hash of a protected file's content, None if it is not there.

    Raises:
        BadInput, PathError: there is something else at the path, or it is too large to be protected.
    """
    try:
        with workspace.open(path) as file:
            if os.fstat(file.fileno()).st_size > MAX_BYTES:
                raise BadInput("protect", path, _TOO_LARGE)
            return measure(file)[1]
    except Missing:
        return None


def state_of(workspace: Workspace, file: ProtectedFile) -> str:
    """What became of a protected file, as the end of a sentence; empty if it is as it was."""
    try:
        now = hash_now(workspace, file.path)
    except PathError as error:
        return f"was replaced ({error.problem})"
    except BadInput:
        return "was changed"
    if now == file.sha256:
        return ""
    if now is None:
        return "was removed"
    return "was changed" if file.sha256 is not None else "was made anew"


def changes(workspace: Workspace, protected: Iterable[ProtectedFile]) -> dict[str, str]:
    """The files that are not as they were, each with what became of it."""
    states = ((file.path, state_of(workspace, file)) for file in protected)
    return {path: state for path, state in states if state}


def told(uid: str, path: str, state: str) -> str:
    """What is wrong with a claim whose protected file changed, and what to do."""
    shown = one_line(path, 200)
    return (
        f"protected file {shown} {state}: restore it as it was, "
        f"or the user accepts it with `goalmode accept {uid} {shlex.quote(shown)}`"
    )


def _size(workspace: Workspace, path: str) -> int:
    try:
        with workspace.open(path) as file:
            return os.fstat(file.fileno()).st_size
    except PathError:
        return 0


_NO_MATCH = (
    "a glob that matches a file of the workspace; this one matches none "
    f"(links, and what is in {', '.join(sorted(NOT_ENTERED))}, are left out)"
)
_TOO_LARGE = f"protected files of at most {MAX_BYTES:,} bytes together, and with this one they are larger"


def _named(workspace: Workspace, command: str, depth: int = 0) -> Iterator[str]:
    """Paths of the workspace's files that a shell command names, but not those that it writes."""
    commands = simple_commands(command)
    written = {path for one in commands for path in one.written}
    below = [one.words[1] for one in commands if one.words[:1] == ("cd",) and len(one.words) > 1]
    for one in commands:
        if script := script_of(one.words):
            yield from _named(workspace, script, depth + 1) if depth < _DEEPEST else ()
        if one.words and PurePosixPath(one.words[0]).name == "tee":
            continue
        for word in one.words:
            for candidate in _candidates(word, below):
                path = _file(workspace, candidate)
                if path is not None and candidate not in written:
                    yield path


def _candidates(word: str, below: Sequence[str]) -> Iterator[str]:
    """The paths that a word may mean: itself, `--option=path`, `path::part`; also below the command's directories."""
    for text in (word, word.partition("=")[2], word.partition("::")[0]):
        if text:
            yield text
            yield from (f"{directory}/{text}" for directory in below if not text.startswith("/"))


def _file(workspace: Workspace, candidate: str) -> str | None:
    try:
        path = workspace.normalise(candidate)
    except BadInput:
        return None
    return path if is_file(workspace, path) else None


def _matched(workspace: Workspace, glob: str) -> list[str]:
    """Raises BadInput: the directory to look in is too large."""
    if not _WILD.search(glob) and is_file(workspace, glob):
        return [glob]
    parts = [part for part in glob.split("/") if part != "."]
    fixed = next((place for place, part in enumerate(parts) if _WILD.search(part)), len(parts))
    pattern = parts[fixed:] or ["**"]
    top = "/".join(parts[:fixed]) or "."
    depth = MAX_LEVELS if "**" in pattern else len(pattern)
    try:
        found, more = entries(workspace, top, depth=depth, limit=MAX_NAMES)
    except PathError:
        return []
    if more:
        raise BadInput("protect", glob, f"a glob in a directory with at most {MAX_NAMES:,} names below it")
    prefix = "" if top == "." else f"{top}/"
    return [prefix + e.path for e in found if e.kind is Kind.FILE and _fits(e.path.split("/"), pattern)]


def _fits(path: Sequence[str], pattern: Collection[str]) -> bool:
    places = {0}
    for part in pattern:
        if part == "**":
            places = set(range(min(places), len(path) + 1))
        else:
            places = {p + 1 for p in places if p < len(path) and fnmatchcase(path[p], part)}
        if not places:
            return False
    return len(path) in places
