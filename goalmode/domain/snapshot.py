"""Everything a context is rendered from: one consistent read of the store, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from goalmode.domain.calls import CallOutcome
from goalmode.domain.exits import ExitReason
from goalmode.domain.goal import Goal
from goalmode.domain.memory import Memory
from goalmode.domain.messages import Message
from goalmode.domain.questions import Question
from goalmode.domain.work import WorkState


@dataclass(frozen=True, slots=True)
class Action:
    """One tool call as the host recorded it. `brief` names its subject: a command line, a path."""

    wakeup: int
    turn: int
    call_id: str
    tool: str
    brief: str
    outcome: CallOutcome
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class Observed:
    """A deliverable as the host sees it just now.

    Attributes:
        size: bytes; None if absent.
        problem: why it does not count although something is there (`outside the workspace`, `a directory`), or empty.
        hint: what may help (`a file with the same normalised name exists: …`), or empty.
        verified: its content is the one a completion was accepted with.
    """

    path: str
    exists: bool
    size: int | None = None
    sha256: str | None = None
    problem: str = ""
    hint: str = ""
    verified: bool = False


@dataclass(frozen=True, slots=True)
class LastEnding:
    """How the goal's last wakeup ended. One that still runs has no `ended_at`; it counts as INTERRUPTED."""

    wakeup: int
    reason: ExitReason
    detail: str
    turns: int
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class InboxEntry:
    """What a user said to the goal: `kind` is `note`, or `answer` for one to no question in particular."""

    id: int
    kind: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The goal's state at (goal.revision, goal.inbox_head).

    Attributes:
        wakeup: sequence number of the wakeup to be rendered, from 1.
        actions: the newest last, a bounded number.
        work: as stored, or as seen beside the workspace (`WorkState.as_seen`).
        observed: the contract's deliverables, in the contract's order.
        changed: protected files that are not as they were (path, what became of it).
        inbox: what users said of their own accord, oldest first, superseded entries left out.
        questions: the newest ones, oldest first: open and answered.
        memories: long-term memories that fit the objective, the most relevant first.
        memory_head: id of the newest memory there is; what came later, nobody was shown here.
        earlier: messages of the earlier wakeups, for the policy `replay` only.
    """

    goal: Goal
    wakeup: int
    now: datetime
    work: WorkState = WorkState()
    actions: tuple[Action, ...] = ()
    observed: tuple[Observed, ...] = ()
    changed: tuple[tuple[str, str], ...] = ()
    inbox: tuple[InboxEntry, ...] = ()
    questions: tuple[Question, ...] = ()
    memories: tuple[Memory, ...] = ()
    memory_head: int = 0
    last: LastEnding | None = None
    earlier: tuple[Message, ...] = ()
