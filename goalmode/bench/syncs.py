"""How often a turn waits for the disk: the fsyncs between one request and the next, as strace sees them."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from statistics import median

from goalmode.bench.measure import in_child, own_directory
from goalmode.bench.provider import provider

_TRACED = "fsync,fdatasync,sync_file_range,sendto,sendmsg,write"
_SYNC = re.compile(r"\b(?:fsync|fdatasync|sync_file_range)\(")
_REQUEST = re.compile(r'\b(?:sendto|sendmsg|write)\(.*"POST /')


def syncs(tool: str, turns: int) -> list[int]:
    """The fsyncs of each turn of a goal whose turns call `tool`."""
    with (
        own_directory() as directory,
        provider("--tool", tool) as there,
    ):
        log = Path(directory) / "strace.log"
        traced = ("strace", "-f", "-s", "12", "-e", f"trace={_TRACED}", "-o", str(log))
        in_child("turns", under=traced, base_url=there.base_url, directory=directory, turns=turns, warm=2)
        return between_requests(log.read_text("utf-8", "replace").splitlines())


def between_requests(log: Iterable[str]) -> list[int]:
    """Of each turn, from its request to the next one's, how many fsyncs a log of strace holds."""
    found: list[int] = []
    for line in log:
        if _REQUEST.search(line):
            found.append(0)
        elif found and _SYNC.search(line):
            found[-1] += 1
    return found[:-1]  # The last request has none that follows.


def per_turn(counts: list[int]) -> tuple[float, int]:
    """Of a turn, as a rule; and how many turns had more, because a checkpoint of SQLite's WAL fell into them."""
    usual = median(counts)
    return usual, sum(count > usual for count in counts)


def why_not() -> str:
    """What keeps fsyncs from being seen here; empty if nothing does."""
    if shutil.which("strace") is None:
        return "not measured: there is no strace here"
    done = subprocess.run(["strace", "-f", "-o", "/dev/null", "true"], capture_output=True, check=False)
    return "" if done.returncode == 0 else "not measured: strace may not trace here"
