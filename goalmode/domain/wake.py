"""Wake sources: what a goal waits for, and the arithmetic of when it comes. Values; nothing is looked at here."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import ClassVar

from goalmode.domain.text import one_line

FARTHEST = timedelta(days=3653)
"""How far ahead anything may be waited for: ten years."""

SHORTEST_SECONDS = 30.0
"""The shortest interval: the first back-off. Anything quicker would be a busy loop of model calls."""

CEILING = timedelta(days=7)
"""How long a file, a process or another goal is waited for, unless the user says otherwise."""

ASKED_TIME, QUOTA_RESET, BACK_OFF = "asked time", "quota reset", "back-off"
"""What a goal waits for by the rules of its last ending, in the words that are stored as its wake reason."""

MAX_SOURCES = 20
"""Open sources of one goal."""


class SourceKind(StrEnum):
    """The stored words."""

    AT = "at"
    EVERY = "every"
    CRON = "cron"
    FILE = "file"
    PROCESS = "process"
    GOAL = "goal"


WATCHED = (SourceKind.FILE, SourceKind.PROCESS, SourceKind.GOAL)
"""Kinds that somebody has to look at: no clock says when they come. Each has a ceiling."""


class SourceStatus(StrEnum):
    OPEN = "open"
    FIRED = "fired"
    """It came, or its ceiling did. One that recurs stays open."""
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class At:
    """Once, at a time; aware, in the offset in which it was given."""

    kind: ClassVar[SourceKind] = SourceKind.AT
    time: datetime

    def __str__(self) -> str:
        return f"at {self.time.isoformat()}"


@dataclass(frozen=True, slots=True)
class Every:
    """Again and again, after so many elapsed seconds: a change of clocks makes no interval longer or shorter."""

    kind: ClassVar[SourceKind] = SourceKind.EVERY
    seconds: float

    def __str__(self) -> str:
        return f"every {span(self.seconds)}"


@dataclass(frozen=True, slots=True)
class Cron:
    """Again and again, when the clocks of a zone show what a cron line says."""

    kind: ClassVar[SourceKind] = SourceKind.CRON
    line: str
    zone: str

    def __str__(self) -> str:
        return f"cron {self.line} ({self.zone})"


@dataclass(frozen=True, slots=True)
class FileMark:
    """By which a file that was changed or put in another's place is told from what it was."""

    size: int
    mtime_ns: int
    inode: int


@dataclass(frozen=True, slots=True)
class FileChange:
    """Once, when a file of the workspace is there and is not what it was.

    Attributes:
        seen: the file when it was asked for; None where there was none.
    """

    kind: ClassVar[SourceKind] = SourceKind.FILE
    path: str
    seen: FileMark | None = None

    def __str__(self) -> str:
        return f"file {one_line(self.path, 200)} is {'created' if self.seen is None else 'changed'}"


@dataclass(frozen=True, slots=True)
class ProcessEnd:
    """Once, when a process has ended. Start time and boot tell it from a later one with its pid."""

    kind: ClassVar[SourceKind] = SourceKind.PROCESS
    pid: int
    start: str
    boot_id: str

    def __str__(self) -> str:
        return f"process {self.pid} ends"


@dataclass(frozen=True, slots=True)
class GoalEnd:
    """Once, when another goal is over: done, aborted or deleted."""

    kind: ClassVar[SourceKind] = SourceKind.GOAL
    goal: int
    uid: str

    def __str__(self) -> str:
        return f"goal {self.uid} is over"


Spec = At | Every | Cron | FileChange | ProcessEnd | GoalEnd


@dataclass(frozen=True, slots=True)
class Planned:
    """A source that is to be stored. Exactly one of the times is there: when it comes, or when it is given up."""

    spec: Spec
    due_at: datetime | None
    ceiling_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class WakeSource:
    """A source as stored. Within a goal they are numbered from 1.

    Attributes:
        due_at: when it comes next; None where only looking tells.
        ceiling_at: when the goal is woken although it has not come.
        fired_at: when it last woke the goal.
    """

    number: int
    spec: Spec
    status: SourceStatus
    due_at: datetime | None
    ceiling_at: datetime | None
    created_at: datetime
    fired_at: datetime | None = None

    @property
    def label(self) -> str:
        return f"S{self.number}"

    @property
    def next_at(self) -> datetime | None:
        """When the goal is woken at the latest."""
        return self.due_at if self.due_at is not None else self.ceiling_at

    @property
    def recurs(self) -> bool:
        return isinstance(self.spec, Every | Cron)

    @property
    def awaited(self) -> str:
        """The wake reason of a goal that is held back by it."""
        return f"waits for {self}"

    def __str__(self) -> str:
        """What is waited for, in words."""
        until = (
            "" if self.ceiling_at is None else f", or {self.ceiling_at.isoformat(timespec='seconds')} comes"
        )
        return f"{self.label}: {self.spec}{until}"


def has_come(wake_reason: str) -> bool:
    """Whether a wake reason is that of a source that came, or was given up: such a one begins with its label."""
    return re.match(r"S\d+: ", wake_reason) is not None


def next_tick(due: datetime, seconds: float, now: datetime) -> datetime:
    """The first tick after `now` of the series that `due` belongs to, in UTC. Ticks in between are left out."""
    passed = max(0.0, (now - due).total_seconds() // seconds)
    return due.astimezone(UTC) + timedelta(seconds=seconds * (passed + 1))


def span(seconds: float) -> str:
    """A time span as people say it: in the largest unit of which it is a whole number."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:g} s"
