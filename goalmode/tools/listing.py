"""What is in a directory of the workspace: sorted, bounded, without following a link."""

from __future__ import annotations

import heapq
import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum

from goalmode.tools.paths import DIRECTORY, Workspace

NOT_ENTERED = frozenset({".git", ".venv", "node_modules", "__pycache__"})
"""Directories that are named but not looked into."""


class Kind(StrEnum):
    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Entry:
    """One name. `path` is relative to the listed directory; `size` in bytes, of files only.

    Inode and modification time tell whether it is still the same; they are no part of what is listed.
    """

    path: str
    kind: Kind
    size: int | None = None
    inode: int = field(default=0, compare=False)
    mtime_ns: int = field(default=0, compare=False)


def entries(
    workspace: Workspace, path: str = ".", *, depth: int = 2, limit: int = 500
) -> tuple[tuple[Entry, ...], bool]:
    """What is in a directory, `depth` levels deep, and whether there is more than `limit`.

    Raises:
        BadInput, PathError: there is no such directory inside the workspace.
    """
    found: list[Entry] = []
    with workspace.open_directory(path) as directory:
        _scan(directory, "", depth, limit + 1, found)
    return tuple(found[:limit]), len(found) > limit


def _scan(directory: int, prefix: str, depth: int, limit: int, found: list[Entry]) -> None:
    """Add to `found` until it holds `limit`; of a huge directory only so many names are ever kept."""
    with os.scandir(directory) as scanned:
        names = heapq.nsmallest(limit, (entry.name for entry in scanned))
    for name in names:
        if len(found) >= limit:
            return
        with suppress(OSError):  # It is gone meanwhile, or not ours to read: the rest is still told.
            info = os.stat(name, dir_fd=directory, follow_symlinks=False)
            kind = _kind(info.st_mode)
            size = info.st_size if kind is Kind.FILE else None
            found.append(Entry(prefix + name, kind, size, info.st_ino, info.st_mtime_ns))
            if kind is Kind.DIRECTORY and depth > 1 and name not in NOT_ENTERED:
                below = os.open(name, DIRECTORY, dir_fd=directory)
                try:
                    _scan(below, f"{prefix}{name}/", depth - 1, limit, found)
                finally:
                    os.close(below)


def _kind(mode: int) -> Kind:
    if stat.S_ISREG(mode):
        return Kind.FILE
    if stat.S_ISDIR(mode):
        return Kind.DIRECTORY
    return Kind.LINK if stat.S_ISLNK(mode) else Kind.OTHER
