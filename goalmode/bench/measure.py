"""What a process has used up so far, and measurements in child processes of their own."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

MEBIBYTE = 1024 * 1024


class Failed(Exception):
    """A measurement could not be made."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What this process has used so far.

    Attributes:
        cpu: seconds, of all threads, in user and system mode. wall: seconds of a clock.
        written: bytes given to write calls, read: bytes taken by read calls; None where /proc has no such figures.
            Neither holds what goes through sockets' own calls.
        disk: bytes that had to go to a disk, in whole pages of the system's; None likewise.
    """

    cpu: float
    wall: float
    written: int | None
    read: int | None
    disk: int | None

    @classmethod
    def now(cls) -> Reading:
        used = resource.getrusage(resource.RUSAGE_SELF)
        io = _io()
        return cls(
            used.ru_utime + used.ru_stime,
            time.perf_counter(),
            io.get("wchar"),
            io.get("rchar"),
            io.get("write_bytes"),
        )


def between(start: Reading, end: Reading, turns: int) -> dict[str, float]:
    """What lies between two readings, for each of `turns` turns: `cpu_ms`, `wall_ms`, `written`, `disk`."""
    found = {
        "cpu_ms": (end.cpu - start.cpu) * 1000 / turns,
        "wall_ms": (end.wall - start.wall) * 1000 / turns,
    }
    if start.written is not None and end.written is not None:
        found["written"] = (end.written - start.written) / turns
    if start.disk is not None and end.disk is not None:
        found["disk"] = (end.disk - start.disk) / turns
    return found


def peak_memory() -> int:
    """The most bytes of memory that this program has held at once."""
    # ru_maxrss would hold what the parent had before this program began.
    status = Path("/proc/self/status")
    told = high_water(status.read_text()) if status.exists() else None
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale if told is None else told


def high_water(status: str) -> int | None:
    """The bytes that /proc/PID/status calls its peak; None if it does not."""
    lines = (line.split() for line in status.splitlines() if line.startswith("VmHWM:"))
    return next((int(words[1]) * 1024 for words in lines), None)


def _io() -> dict[str, int]:
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return {}
    return {name: int(value) for name, _, value in (line.partition(":") for line in lines)}


@dataclass(frozen=True, slots=True)
class Spread:
    """Repetitions of one figure."""

    median: float
    low: float
    high: float
    count: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(median(values), min(values), max(values), len(values))


def in_child(name: str, *, under: Sequence[str] = (), **given: Any) -> dict[str, Any]:
    """Run one measurement of `goalmode.bench.child` in a process of its own and return its figures.

    Args:
        under: a command to run it under, such as strace.

    Raises:
        Failed: the process did; the end of what it said is the message.
    """
    with own_directory() as home:
        command = [*under, sys.executable, "-m", "goalmode.bench.child", name, json.dumps(given)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment(home), check=False)
    if done.returncode:
        raise Failed(f"{name}: {done.stderr.strip()[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@contextmanager
def own_directory() -> Iterator[str]:
    """A directory for as long as the block lasts."""
    with tempfile.TemporaryDirectory(prefix="goalmode-bench-") as directory:
        yield directory


def environment(home: str) -> dict[str, str]:
    """Ours, without any settings of goalmode's, keys and proxies, and with empty directories of a user's.

    The machine has a name of its own there: one that changes its name meanwhile is still the same.
    """
    away = ("GOALMODE_", "OPENAI_", "ANTHROPIC_")
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(away) and not name.upper().endswith("_PROXY")
    }
    homes = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
    own = {name: str(Path(home) / name.lower()) for name in homes}
    return {**kept, **own, "GOALMODE_HOST_LABEL": "bench"}
