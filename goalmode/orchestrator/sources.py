"""Looking at wake sources: which have come, why, and when those that recur come next."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import datetime
from itertools import groupby
from pathlib import Path

from goalmode.domain.exits import GoalStatus
from goalmode.domain.wake import At, Cron, Every, FileChange, FileMark, GoalEnd, ProcessEnd, next_tick
from goalmode.errors import BadInput, ToolError
from goalmode.orchestrator.cron import next_fire
from goalmode.state import wake_sources
from goalmode.state.owner import Owner, boot_id, lives
from goalmode.state.store import Store
from goalmode.state.wake_sources import Firing, Open
from goalmode.tools.paths import Workspace

OVER = frozenset({GoalStatus.DONE, GoalStatus.ABORTED})
"""A goal in one of these will not go on by itself."""


def notice(store: Store, goal: int) -> bool:
    """Look at the open sources of a goal that is about to be woken; whether any has come.

    Raises:
        StoreUnreadable: one has a shape that this code does not know.
    """
    with store.reading() as connection:
        found = wake_sources.open_of(connection, goal)
    return bool(fire_what_came(store, found))


def fire_what_came(store: Store, found: Iterable[Open]) -> list[Firing]:
    """Fire those that have come, all of one goal in one commit; returns the ones that nobody else fired first."""
    now = store.clock.now()
    came = [firing for one in found if (firing := look(one, now)) is not None]
    fired: list[Firing] = []
    for _, group in groupby(sorted(came, key=_goal), key=_goal):
        of_goal = list(group)
        fired += of_goal if wake_sources.fire(store, of_goal, now=now) else []
    return fired


def look(open: Open, now: datetime) -> Firing | None:
    """Whether a source has come by now, or has to be given up."""
    source = open.source
    due, ceiling = source.due_at, source.ceiling_at
    if due is not None:
        if due > now:
            return None
        return Firing(open, f"{source.label}: {source.spec}, due {_iso(due)}", _next(open, due, now))
    cause = _cause(open)
    if cause is not None:
        return Firing(open, f"{source.label}: {cause}")
    if ceiling is not None and ceiling <= now:
        return Firing(open, f"{source.label}: ceiling {_iso(ceiling)} reached, but not: {source.spec}")
    return None


def mark_of(workspace: Path, path: str) -> FileMark | None:
    """A file of the workspace as it is just now; None where there is none."""
    try:
        with Workspace(workspace).open(path) as file:
            info = os.fstat(file.fileno())
    except (ToolError, BadInput):
        return None
    return FileMark(info.st_size, info.st_mtime_ns, info.st_ino)


def _goal(firing: Firing) -> int:
    return firing.open.goal


def _next(open: Open, due: datetime, now: datetime) -> datetime | None:
    """When it comes next: after now, so that ticks that were missed are made up for by this one."""
    match open.source.spec:
        case Every(seconds):
            return next_tick(due, seconds, now)
        case Cron() as cron:
            return next_fire(cron, now)
        case _:
            return None


def _cause(open: Open) -> str | None:
    """What has happened that the source waits for; None if it has not."""
    match open.source.spec:
        case FileChange(path, seen) as change:
            now = mark_of(Path(open.workspace), path)
            return str(change) if now is not None and now != seen else None
        case ProcessEnd(pid, start, boot):
            return None if _runs(pid, start, boot) else f"process {pid} ended"
        case GoalEnd(_, uid):
            status = "deleted" if open.target is None else open.target
            return f"goal {uid} is {status}" if open.target is None or open.target in OVER else None
        case At() | Every() | Cron():
            return None


def _runs(pid: int, start: str, boot: str) -> bool:
    """Whether it is still the same process: on the same boot, and not a later one with its pid."""
    return boot == boot_id() and lives(Owner("", "", pid, start, boot))


def _iso(time: datetime) -> str:
    return time.isoformat(timespec="seconds")
