"""Wake sources as users ask for them: every one is checked before it is stored; a refused one changes nothing."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from pathlib import Path

from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Goal
from goalmode.domain.wake import (
    CEILING,
    FARTHEST,
    SHORTEST_SECONDS,
    At,
    Every,
    FileChange,
    GoalEnd,
    Planned,
    ProcessEnd,
    WakeSource,
    next_tick,
    span,
)
from goalmode.errors import BadInput, NotAllowed
from goalmode.orchestrator import cron
from goalmode.orchestrator.goals import parse_deadline, parse_seconds
from goalmode.orchestrator.sources import mark_of
from goalmode.state import goals, wake_sources
from goalmode.state.owner import boot_id, pid_namespace, process_start
from goalmode.state.store import Store
from goalmode.tools.paths import Workspace

_LABEL = re.compile(r"[Ss]?([0-9]{1,9})")
_YEARS = f"{FARTHEST.days // 365} years"


def at_time(text: str, now: datetime) -> Planned:
    """Once, at an ISO time; one without an offset is local time.

    Raises:
        BadInput: it is none, is not ahead, or is too far ahead.
    """
    time = parse_deadline(text, "at", now)
    if time - now > FARTHEST:
        raise BadInput("at", text, f"a time within {_YEARS}")
    return Planned(At(time), time)


def every(text: str, now: datetime) -> Planned:
    """Again and again, first when the span is over.

    Raises:
        BadInput: it is no span, too short or too long.
    """
    seconds = _seconds(text, "every")
    return Planned(Every(seconds), next_tick(now, seconds, now))


def by_cron(line: str, zone: str, now: datetime) -> Planned:
    """Again and again, by the clocks of a zone.

    Raises:
        BadInput: the line is none or never fires, or there is no such zone.
    """
    spec = cron.checked(line, zone, now)
    return Planned(spec, cron.next_fire(spec, now))


def on_file(store: Store, goal: Goal, path: str, ceiling: timedelta = CEILING) -> Planned:
    """When a file of the goal's workspace, which need not be there yet, is created or changed from now on.

    Raises:
        BadInput: the path leads out of the workspace, or the workspace is on another host.
    """
    _must_be_here(store, goal, "file", path)
    try:
        inside = Workspace(Path(goal.workspace)).normalise(path)
    except BadInput as error:
        raise BadInput("file", path, f"a file inside the workspace: {error.expected}") from None
    if inside == "." or (Path(goal.workspace) / inside).is_dir():
        raise BadInput("file", path, "a file; this is a directory")
    return Planned(
        FileChange(inside, mark_of(Path(goal.workspace), inside)), None, store.clock.now() + ceiling
    )


def on_process(store: Store, goal: Goal, pid: int, ceiling: timedelta = CEILING) -> Planned:
    """When a process of this machine has ended; one that gets its pid later does not count.

    Raises:
        BadInput: there is no such process, or the goal is on another host.
    """
    _must_be_here(store, goal, "pid", pid)
    start = process_start(pid) if pid > 0 else None
    if start is None:
        raise BadInput("pid", pid, "the number of a process that runs on this machine")
    return Planned(ProcessEnd(pid, f"{start}{pid_namespace()}", boot_id()), None, store.clock.now() + ceiling)


def on_goal(store: Store, prefix: str, ceiling: timedelta = CEILING) -> Planned:
    """When another goal is over.

    Raises:
        UnknownGoal: there is no such goal. BadInput: it was aborted, so that nothing will come of it.
    """
    other = goals.find(store, prefix)
    if other.status is GoalStatus.ABORTED:
        raise BadInput("after", other.uid, "a goal that can still be done; this one is aborted")
    return Planned(GoalEnd(other.id, other.uid), None, store.clock.now() + ceiling)


def parse_ceiling(text: str) -> timedelta:
    """How long something is waited for.

    Raises:
        BadInput: it is no span, too short or too long.
    """
    return timedelta(seconds=_seconds(text, "ceiling"))


def schedule(store: Store, goal: Goal, planned: Planned) -> WakeSource:
    """Let the goal be woken when this comes. Until the first of its sources comes it is not due.

    Raises:
        NotAllowed: the goal is over, or has too many sources. BadInput: a chain of goals would wait for itself.
    """
    if goal.status in (GoalStatus.DONE, GoalStatus.ABORTED):
        reopens = f"; `goalmode edit {goal.uid}` reopens it" if goal.status is GoalStatus.DONE else ""
        raise NotAllowed(f"goal {goal.uid}: is {goal.status}, nothing wakes it{reopens}")
    return wake_sources.schedule(store, goal, planned, now=store.clock.now())


def unschedule(store: Store, goal: Goal, label: str) -> WakeSource:
    """Wait for a source no longer. A goal that waited for nothing else is due now.

    Raises:
        BadInput: the goal has no such open source.
    """
    named = _LABEL.fullmatch(label.strip())
    removed = None
    if named:
        removed = wake_sources.unschedule(store, goal, int(named.group(1)), now=store.clock.now())
    if removed is None:
        with store.reading() as connection:
            waiting = wake_sources.of_goal(connection, goal, only_open=True)
        have = ", ".join(s.label for s in waiting) or "it has none"
        raise BadInput("remove", label, f"the number of an open wake source of goal {goal.uid}: {have}")
    return removed


def _seconds(text: str, field: str) -> float:
    try:
        seconds = parse_seconds(text, field)
    except BadInput:
        seconds = -1.0
    if not SHORTEST_SECONDS <= seconds <= FARTHEST.total_seconds():
        shortest = span(SHORTEST_SECONDS)
        raise BadInput(field, text, f"a time span from {shortest} to {_YEARS}, such as 90s, 15m, 3h or 1d")
    return seconds


def _must_be_here(store: Store, goal: Goal, field: str, value: object) -> None:
    if not store.owner.reaches(goal.host_label):
        here = f"; set GOALMODE_HOST_LABEL={goal.host_label} if this is that machine"
        raise BadInput(field, value, f"one on {goal.host_label}, where the goal's workspace is{here}")
