"""Which files of the workspace a text names: in a verification's evidence, or in a claim's."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from goalmode.errors import BadInput
from goalmode.tools.paths import PathError, Workspace, measure

MAX_TEXT = 20_000
"""Characters of a text that are looked through."""

MAX_NAMED = 20
"""Files of one text that are followed."""

MAX_FOLLOWED = 64_000_000
"""Bytes of the largest file that is followed: it is hashed again at each wakeup and each claim."""

MAX_PATH = 500
_WORD = re.compile(r"[^\s\"'`()\[\]{},;:<>“”‘’「」《》，。；：、（）]+")
_WITHIN = re.compile(r"[!-~]{3,}")
"""What stands between Chinese characters; shorter ones are rarely meant as a name."""


def words(text: str) -> Iterator[str]:
    """The words of a text that could be paths. Chinese has no blanks: `已写入a.txt并检查` is looked at in parts too."""
    for match in _WORD.finditer(text[:MAX_TEXT]):
        whole = match.group()
        for part in (whole, *(() if whole.isascii() else _WITHIN.findall(whole))):
            word = part.rstrip(".!?。！？")
            if word and len(word) <= MAX_PATH:
                yield word


def is_file(workspace: Workspace, path: str) -> bool:
    """Whether there is such a file inside the workspace."""
    try:
        with workspace.open(path):
            return True
    except (BadInput, PathError):
        return False


def hash_of(workspace: Workspace, path: str) -> str | None:
    """A file's hash; None if there is no such file inside the workspace, or it is larger than what is followed."""
    try:
        with workspace.open(path) as file:
            if os.fstat(file.fileno()).st_size > MAX_FOLLOWED:
                return None
            return measure(file)[1]
    except (BadInput, PathError):
        return None


def files_named(workspace: Workspace, text: str) -> tuple[tuple[str, str], ...]:
    """The files that a text names (path, hash), in its order, at most `MAX_NAMED`."""
    found: dict[str, str] = {}
    for word in words(text):
        if len(found) == MAX_NAMED:
            break
        try:
            path = workspace.normalise(word)
        except BadInput:
            continue
        if path not in found and (sha := hash_of(workspace, path)) is not None:
            found[path] = sha
    return tuple(found.items())
