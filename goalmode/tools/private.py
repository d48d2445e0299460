"""A directory of a wakeup's own, outside of its workspace: gone with it, or with the next one if it was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "goalmode-sandbox-"
_NEW_SECONDS = 60
"""A directory as young as that may not be locked yet."""


@contextmanager
def private_directory() -> Iterator[Path]:
    """Made in the system's place for such; whoever is killed in here leaves it to `private_directory` elsewhere.

    Raises:
        OSError: it cannot be made.
    """
    _sweep(Path(tempfile.gettempdir()))
    own = Path(tempfile.mkdtemp(prefix=_PREFIX)).resolve()
    held = os.open(own, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield own
    finally:
        _remove(own)
        os.close(held)


def _sweep(place: Path) -> None:
    """Remove directories of ours that nobody holds."""
    for left in place.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            info = left.lstat()
            if info.st_uid != os.geteuid() or time.time() - info.st_mtime < _NEW_SECONDS:
                continue
            held = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(left)
            finally:
                os.close(held)


def _remove(directory: Path) -> None:
    """Also where directories in it may not be written, as those of Go's modules."""
    shutil.rmtree(directory, ignore_errors=True)
    if directory.exists():
        for *_, descriptor in os.fwalk(directory):
            with suppress(OSError):
                os.fchmod(descriptor, 0o700)
        shutil.rmtree(directory, ignore_errors=True)
