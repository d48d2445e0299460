"""The lock that tools inherit: a fence stops an old owner's writes, this stops its tools.

Every effect of a wakeup starts under a shared lock on one file for each goal and fence, and its processes inherit the
descriptor. The file names each started call, its process group and start time. Whoever takes a goal over from a dead
owner first takes the file exclusively, ending the recorded groups if it must. POSIX (flock) only.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from goalmode.errors import Fenced, StoreError
from goalmode.state.owner import boot_id, process_start

TAKEOVER_SECONDS = 5.0
"""How long the end of an old owner's tools is waited for."""


@dataclass
class Hold:
    """A shared lock, held for one call: by this process, or once its process group is marked by that alone.

    What a process group inherits is read-only: whoever can write marks names the processes that a new owner ends.
    """

    fd: int | None
    call_id: str
    marks: int | None = None

    def mark(self, process_group: int) -> None:
        assert self.marks is not None, "a hold covers one process group"
        _append(
            self.marks,
            {
                "call": self.call_id,
                "group": process_group,
                "start": process_start(process_group, zombie=True),
            },
        )
        # The group has inherited the descriptor. An owner that is stopped must not keep the lock of ended tools.
        self.release()

    def release(self) -> None:
        for descriptor in (self.fd, self.marks):
            if descriptor is not None:
                os.close(descriptor)
        self.fd = self.marks = None


class LockGate:
    """Lets the effects of one wakeup through, as long as its fence is the goal's.

    Args:
        current_fence: reads the goal's fence from the store.
    """

    def __init__(self, path: Path, fence: int, current_fence: Callable[[], int]) -> None:
        self._path, self._fence, self._current_fence = path, fence, current_fence

    @contextmanager
    def enter(self, call_id: str) -> Iterator[Hold]:
        hold = Hold(_open(self._path, os.O_RDONLY), call_id)
        try:
            assert hold.fd is not None
            _lock(hold.fd, fcntl.LOCK_SH, self._path)
            if self._current_fence() != self._fence:
                discard(self._path)
                raise Fenced
            hold.marks = _open(
                self._path, os.O_WRONLY | os.O_APPEND
            )  # The same file: under the lock nobody takes it.
            _append(hold.marks, {"call": call_id})
            yield hold
        finally:
            hold.release()  # A child that inherited the descriptor keeps the lock.


@contextmanager
def take_over(path: Path, old_owner: int = 0) -> Iterator[frozenset[str] | None]:
    """Hold an old owner's lock file exclusively; yields the ids of the calls it started on this boot.

    Yields None if its tools could not be ended in time: the goal must not be woken yet. The file is removed afterwards.
    It is made where there is none: an old owner that wakes up now must wait for the new fence, then see it.

    Args:
        old_owner: pid of the process that had the goal. It is never ended here: it may live, only too slowly.
    """
    fd = _open(path, os.O_RDWR)
    try:
        if not _exclusive(fd, path, old_owner):
            yield None
            return
        yield started(path)
        path.unlink(missing_ok=True)
    finally:
        os.close(fd)


def discard(path: Path) -> None:
    """Remove the lock file of a wakeup that has closed."""
    with suppress(OSError):
        path.unlink(missing_ok=True)


def check_locking(directory: Path) -> None:
    """Refuse a file system, of a network perhaps, on which nobody would be kept out.

    Raises:
        StoreError: files there cannot be locked.
    """
    fd = os.open(directory, os.O_RDONLY)
    try:
        with suppress(BlockingIOError):  # Somebody holds it: locking works.
            _lock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB, directory)
    finally:
        os.close(fd)


def started(path: Path) -> frozenset[str]:
    """The ids of the calls that were started on this boot."""
    return frozenset(str(mark["call"]) for mark in _marks(path))


def end_tools(path: Path) -> None:
    """End the process groups recorded in the file that are still the ones recorded."""
    for mark in _marks(path):
        group = mark.get("group")
        if isinstance(group, int) and process_start(group, zombie=True) == mark.get("start"):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)


def _exclusive(fd: int, path: Path, old_owner: int) -> bool:
    deadline = time.monotonic() + TAKEOVER_SECONDS
    while True:
        with suppress(BlockingIOError):
            _lock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, path)
            return True
        end_tools(path)
        _end_heirs(path, spare={old_owner, os.getpid()})
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.02)


def _end_heirs(path: Path, spare: set[int]) -> None:
    """End every process that inherited the shared lock, also one that left its group or was never recorded.

    Linux only: elsewhere, and for processes of other users, the recorded groups are all there is.
    """
    name = os.path.realpath(path)
    for directory in Path("/proc").glob("[0-9]*"):
        pid = int(directory.name)
        if pid not in spare and _holds(directory, name):
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)


def _holds(process: Path, name: str) -> bool:
    """Whether a process has the file open with a shared lock on it; a claimer that waits for the lock has none."""
    with suppress(OSError):
        for fd in (process / "fd").iterdir():
            with suppress(OSError):
                if str(fd.readlink()) == name and " READ " in (process / "fdinfo" / fd.name).read_text():
                    return True
    return False


def _open(path: Path, how: int) -> int:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, how | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(f"lock file {path}: cannot be made: {error.strerror}") from None


def _lock(fd: int, how: int, path: Path) -> None:
    """Raises BlockingIOError where it would have to wait and may not, StoreError where there is no locking at all."""
    try:
        fcntl.flock(fd, how)
    except BlockingIOError:
        raise
    except OSError as error:
        raise StoreError(
            f"{path}: this file system cannot lock files ({error.strerror}); put the store on a local disk"
        ) from None


def _append(fd: int, mark: dict[str, object]) -> None:
    os.write(fd, json.dumps({**mark, "boot": boot_id()}).encode() + b"\n")


def _marks(path: Path) -> list[dict[str, object]]:
    """The marks of this boot; a line torn by a crash is no mark."""
    marks: list[dict[str, object]] = []
    with suppress(OSError):
        for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
            with suppress(ValueError):
                mark = json.loads(line)
                if isinstance(mark, dict) and mark.get("boot") == boot_id() and "call" in mark:
                    marks.append(mark)
    return marks
