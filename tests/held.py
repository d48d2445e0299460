"""Time limits of commands that tests hold back: on a busy machine a command may not even have begun when they end."""

from __future__ import annotations

import time
from pathlib import Path

from goalmode.tools.registry import GateHold

SECONDS = 120.0


class Begun:
    """A hold that is in no hurry: a command's time runs from the moment at which it has made `file`."""

    def __init__(self, file: Path, hold: GateHold | None = None) -> None:
        self._file, self._hold = file, hold

    @property
    def fd(self) -> int | None:
        return None if self._hold is None else self._hold.fd

    def mark(self, process_group: int) -> None:
        if self._hold is not None:
            self._hold.mark(process_group)
        end = time.monotonic() + SECONDS
        while not self._file.exists():
            assert time.monotonic() < end, f"the command has not begun within {SECONDS:g} s"
            time.sleep(0.005)
        self._file.unlink()
