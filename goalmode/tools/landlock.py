"""Landlock: a command that may touch only what it was given. System calls through ctypes; no root, no library.

A thread that lives for this alone gives up its rights and starts the command, which inherits that and can never get
them back. The rest of this process keeps its own.
"""

from __future__ import annotations

import ctypes
import os
import stat
import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from subprocess import Popen
from typing import Any

from goalmode.tools import capabilities
from goalmode.tools.syscall import syscall

MIN_ABI = 3
"""Linux 6.2. Before it, nothing outside could be written, but all of it could be truncated."""

SCOPED_ABI = 6
"""Linux 6.12: from here on signals and abstract sockets of processes outside are out of reach too."""

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
_SCOPES = 0b11

_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_DEVICE = _READ_FILE | _WRITE_FILE | _IOCTL_DEV


class _Ruleset(ctypes.Structure):
    _fields_ = (("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


@cache
def abi() -> int:
    """The version of the kernel's Landlock; 0 where there is none, or it is switched off or forbidden."""
    try:
        return syscall(_CREATE, None, 0, _VERSION)
    except OSError:
        return 0


@cache
def problem() -> str:
    """Why it cannot be used here, empty if it can. It is tried, not only looked for."""
    found = abi()
    if found == 0:
        return "this kernel has no Landlock, or it is switched off"
    if found < MIN_ABI:
        return f"this kernel's Landlock is version {found}, and {MIN_ABI} is needed (Linux 6.2)"
    try:
        with Rules() as rules:
            rules.read(Path("/usr"))
            rules.start([b"/bin/true"], close_fds=True).wait()
    except OSError as error:
        return f"Landlock cannot be used here: {error.strerror or error}"
    return ""


class Rules:
    """What a command may touch. Everything that is not named is refused.

    Raises:
        OSError: the kernel refuses.
    """

    def __init__(self) -> None:
        found = abi()
        all_files = (1 << (16 if found >= 5 else 15)) - 1
        self._handled = all_files
        attributes = _Ruleset(all_files, 0, _SCOPES if found >= SCOPED_ABI else 0)
        size = ctypes.sizeof(attributes) if found >= SCOPED_ABI else 8
        self._fd = syscall(_CREATE, ctypes.byref(attributes), size, 0)

    def __enter__(self) -> Rules:
        return self

    def __exit__(self, *exc: object) -> None:
        os.close(self._fd)

    def read(self, path: Path, hidden: Collection[Path] = ()) -> None:
        """Allow reading and executing what is at `path` and below it, but not what is `hidden`."""
        for place, whole in _spared(path, hidden):
            self._allow(place, _READ if whole else _READ_DIR)

    def write(self, path: Path) -> None:
        """Allow everything at `path` and below it but making devices."""
        self._allow(path, self._handled & ~(_MAKE_CHAR | _MAKE_BLOCK))

    def device(self, path: Path) -> None:
        self._allow(path, _DEVICE)

    def _allow(self, path: Path, rights: int) -> None:
        """A path that is not there, or that we may not open ourselves, gives nothing."""
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError):
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
            try:
                if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
                    rights &= _OF_FILES
                rule = _Beneath(rights & self._handled, descriptor)
                syscall(_ADD_RULE, self._fd, _PATH_BENEATH, ctypes.byref(rule), 0)
            finally:
                os.close(descriptor)

    def start(self, command: Iterable[bytes], **options: Any) -> Popen[bytes]:
        """`subprocess.Popen`, under these rules.

        Raises:
            OSError: as there, or the kernel refuses.
        """
        started: list[Popen[bytes]] = []
        failed: list[BaseException] = []

        def confined() -> None:
            try:
                capabilities.bound()
                syscall(_RESTRICT, self._fd, 0)
                started.append(Popen(list(command), **options))
            except BaseException as error:  # noqa: BLE001 - raised below, in the caller's thread
                failed.append(error)

        thread = threading.Thread(target=confined, name="goalmode landlock")
        thread.start()
        thread.join()
        if failed:
            raise failed[0]
        return started[0]


def _spared(path: Path, hidden: Collection[Path]) -> Iterator[tuple[Path, bool]]:
    """The largest pieces of `path` that hold nothing hidden; of directories above hidden ones the names alone."""
    if path in hidden:
        return
    below = [one for one in hidden if path in one.parents]
    yield path, not below
    if below:
        with suppress(OSError), os.scandir(path) as entries:
            for entry in entries:
                if not entry.is_symlink():
                    yield from _spared(path / entry.name, below)
