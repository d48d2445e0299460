"""Which files a confined command may read: the system's, and the tools that its user works with."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

_SYSTEM = (
    "/usr /bin /sbin /lib /lib32 /lib64 /libx32 /etc /opt /nix /gnu /run/current-system "
    "/sys/devices/system /sys/fs/cgroup"
)
_RESOLVER = Path("/etc/resolv.conf")
"""Often a link to where it is kept up to date, outside of /etc."""


def readable(path: str, home: Path, more: Iterable[Path] = ()) -> tuple[Path, ...]:
    """The directories and files that are there, each as it is named and as it really is.

    Args:
        path: `$PATH`.
        more: what the user has configured.
    """
    system = [*map(Path, _SYSTEM.split()), _RESOLVER.resolve().parent]
    ours = map(Path, (sys.prefix, sys.exec_prefix, sys.base_prefix, sys.base_exec_prefix))
    named = [*system, *(one for one in ours if not holds(one, home)), *_toolchains(path, home), *more]
    found = dict.fromkeys(one for path in named if path.exists() for one in (path, path.resolve()))
    return tuple(one for one in found if not any(other in one.parents for other in found))


def _toolchains(path: str, home: Path) -> Iterator[Path]:
    """The directories on `$PATH`, and what those called `bin` or `shims` belong to: their libraries lie beside them.

    Not the home directory, and of a hidden directory in it no more than its `bin`: `~/.cargo` and `~/.local` hold
    credentials.
    """
    for word in path.split(os.pathsep):
        directory = Path(word)
        if not directory.is_absolute() or holds(directory, home):
            continue
        yield directory
        parent = directory.parent
        hidden = parent.parent == home and parent.name.startswith(".")
        if directory.name == "shims" or (directory.name == "bin" and not hidden):
            yield from () if holds(parent, home) else (parent,)


def holds(directory: Path, home: Path) -> bool:
    """Whether it is the home directory or above it; the root is above everything."""
    homes = [one for path in (home, home.resolve()) for one in (path, *path.parents)]
    return directory in homes or directory.resolve() in homes


def unreadable(private: Iterable[Path], among: Iterable[Path]) -> tuple[Path, ...]:
    """What is not to be read although it lies in what may be.

    Root can read everything, so for its commands what other users may not read in /etc is left out.
    """
    roots = tuple(among)
    hidden = [*private, *(_secrets(Path("/etc")) if os.geteuid() == 0 else ())]
    return tuple(one for one in hidden if one.exists() and any(one == r or r in one.parents for r in roots))


def _secrets(directory: Path) -> Iterator[Path]:
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_symlink():
                continue
            mode = entry.stat(follow_symlinks=False).st_mode
            if not mode & (stat.S_IXOTH if stat.S_ISDIR(mode) else stat.S_IROTH):
                yield directory / entry.name
            elif stat.S_ISDIR(mode):
                yield from _secrets(directory / entry.name)
