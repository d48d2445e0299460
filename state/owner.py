"""Who runs a wakeup, whether that process still lives, and whether its lease has run out."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from goalmode.errors import BadInput

LEASE_MS = 60_000
"""How long a wakeup is held without a sign of life, in milliseconds, where nothing else is set."""

SHORTEST_LEASE_MS, LONGEST_LEASE_MS = 1_000, 86_400_000


def chosen_lease() -> int:
    """The length of this process's leases in milliseconds: `GOALMODE_LEASE` holds seconds.

    Raises:
        BadInput: it holds no number, or one out of range.
    """
    text = os.environ.get("GOALMODE_LEASE", "")
    if not text:
        return LEASE_MS
    shortest, longest = SHORTEST_LEASE_MS // 1000, LONGEST_LEASE_MS // 1000
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not shortest <= seconds <= longest:
        raise BadInput("GOALMODE_LEASE", text, f"seconds, from {shortest} to {longest}")
    return int(seconds * 1000)


@dataclass(frozen=True, slots=True)
class Owner:
    """One process on one boot of one machine. `pid_start` tells it from a later process with the same pid.

    `serves` are further host labels whose workspaces it can reach. They are this process's business, and not stored.
    """

    name: str
    host_label: str
    pid: int
    pid_start: str
    boot_id: str
    serves: frozenset[str] = frozenset()

    @classmethod
    def current(cls, host_label: str | None = None) -> Owner:
        """This process. The host label says which workspaces it can reach; by default the machine's name."""
        label = host_label or os.environ.get("GOALMODE_HOST_LABEL") or socket.gethostname()
        pid = os.getpid()
        return cls(f"{label}:{pid}", label, pid, f"{process_start(pid) or ''}{pid_namespace()}", boot_id())

    def is_near(self) -> bool:
        """Whether it ran on this boot of this machine, in this container: its pid and its marks mean something here."""
        _, mark, namespace = self.pid_start.partition("@")
        return self.boot_id == boot_id() and mark + namespace in ("", pid_namespace())

    def reaches(self, host_label: str) -> bool:
        """Whether it can work in the workspaces of goals with this host label."""
        return host_label == self.host_label or host_label in self.serves


@dataclass(frozen=True, slots=True)
class Lease:
    """An open wakeup's hold on its goal, as stored."""

    owner: Owner
    until_ms: int

    def is_void(self, now_ms: int, here: Owner, *, served: bool = False) -> bool:
        """Whether somebody else may take over: the owner is dead, or gave no sign of life for the lease's length.

        Args:
            now_ms: on the clock that the lease is counted on.
            served: that clock is a server's, which all machines share. Else it is the boot's own, and a lease of
                another boot says nothing any more.
        """
        same_boot = self.owner.boot_id == here.boot_id
        if self.until_ms < now_ms or not (same_boot or served):
            return True
        # Over a server, an unknown boot may be another machine's: only the lease tells.
        known = same_boot and (here.boot_id != "" or not served)
        return known and self.owner.host_label == here.host_label and not lives(self.owner)


def lives(owner: Owner) -> bool:
    """Whether the process is still there, and not a later one with its pid.

    One of another container has a pid that means nothing here: it lives as long as its lease.
    """
    if not owner.is_near():
        return True
    start, began = process_start(owner.pid), owner.pid_start.partition("@")[0]
    return start is not None and (not began or start == began)


def process_start(pid: int, *, zombie: bool = False) -> str | None:
    """When a process started, in the kernel's own words; None if there is none, "" if that cannot be told.

    A zombie counts as gone, since it runs no more code, unless `zombie` is set: it still keeps its process group.
    """
    proc = Path("/proc")
    if not (proc / "self" / "stat").exists():
        return _signalled(pid)
    try:
        stat = (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = stat.rsplit(")", 1)[-1].split()
    state, started = fields[0], fields[19]
    return None if state in "ZX" and not zombie else started


@cache
def pid_namespace() -> str:
    """Tells one numbering of processes on this machine from another, as `@inode`; "" where there is only one."""
    try:
        return f"@{os.stat('/proc/self/ns/pid').st_ino}"  # noqa: PTH116 - pathlib resolves what is no path
    except OSError:
        return ""


@cache
def boot_id() -> str:
    """Tells one boot of the machine from the next; "" where the platform has nothing of the kind."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _signalled(pid: int) -> str | None:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return ""
