"""The tables. Integer keys, aware UTC times, CHECKs on every stored word, JSON with a version inside.

Rows are read and written with Core statements (see `goals.py`, `wakeups.py`, `journal.py`): named columns and
increments, never a whole row written back. Validation is the domain's; the database holds the words and the keys.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlmodel import Field, SQLModel

from goalmode.domain.calls import CallOutcome, Effect
from goalmode.domain.contract import CheckKind, RequirementStatus
from goalmode.domain.exits import ExitReason, GoalStatus
from goalmode.domain.goal import Control
from goalmode.domain.memory import MemoryKind, SettlementState
from goalmode.domain.questions import QuestionKind, QuestionStatus
from goalmode.domain.sandbox import SandboxMode
from goalmode.domain.signals import StopReason
from goalmode.domain.wake import WATCHED, SourceKind, SourceStatus
from goalmode.domain.work import ItemKind, ItemStatus, Provenance
from goalmode.state import columns as c

SQLModel.metadata.naming_convention = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}


class Purpose(StrEnum):
    """What a model call was made for. The first three count as turns."""

    WORK = "work"
    RECOVERY = "recovery"
    WRAP_UP = "wrap_up"
    HANDOFF = "handoff"
    SETTLEMENT = "settlement"
    REVIEW = "review"


class TurnState(StrEnum):
    OPEN = "open"
    """The reply is stored; its calls may be running."""
    DONE = "done"
    FAILED = "failed"
    """The call failed after its response stream had begun: charged, not a turn."""
    LOST = "lost"
    """The process died with a request out: charged as reserved, not a turn."""


class BodyRow(SQLModel, table=True):
    """Texts, apart from the rows that lists read. Insert-only."""

    __tablename__ = "bodies"
    id: int | None = c.key()
    codec: str = Field(sa_column=sa.Column(sa.String(8), nullable=False))
    raw_len: int = c.whole()
    data: bytes = Field(sa_column=sa.Column(sa.LargeBinary, nullable=False))


class GoalRow(SQLModel, table=True):
    __tablename__ = "goals"
    __table_args__ = (
        c.words("status", GoalStatus),
        c.words("control", Control),
        c.words("settlement", SettlementState),
        sa.Index(
            "ix_goals_due",
            "next_wakeup_at",
            "id",
            sqlite_where=c.written("status", GoalStatus.ACTIVE),
            postgresql_where=c.written("status", GoalStatus.ACTIVE),
        ),
        sa.Index(
            "ix_goals_issued",
            "issued_at",
            sqlite_where=sa.text("issued_at IS NOT NULL"),
            postgresql_where=sa.text("issued_at IS NOT NULL"),
        ),
    )
    id: int | None = c.key()
    uid: str = Field(sa_column=sa.Column(sa.String(32), nullable=False, unique=True))
    objective: str = c.text()
    workspace: str = c.text()
    revision: int = c.whole(1)
    limits_rev: int = c.whole(1)
    wrapped_limits_rev: int = c.whole(0)
    limits: dict[str, Any] = c.json()
    settings: dict[str, Any] = c.json()
    status: str = c.word()
    status_detail: str = c.text()
    control: str = c.word()
    fence: int = c.whole()
    next_wakeup_at: datetime | None = c.time()
    wake_reason: str = c.text()
    host_label: str = c.text()
    movement: str = c.text()
    spent_turns: int = c.whole()
    spent_wakeups: int = c.whole()
    spent_input: int = c.whole()
    spent_cached: int = c.whole()
    spent_cache_write: int = c.whole()
    spent_output: int = c.whole()
    spent_active_ms: int = c.whole()
    spent_cost_micro: int = c.whole(zero=True)
    stretch_from: int = c.whole(zero=True)
    settlement: str = c.word(first=SettlementState.NONE)
    streak: int = c.whole()
    failures: int = c.whole()
    obstacles: dict[str, Any] = c.json()
    created_at: datetime | None = c.time(nullable=False)
    updated_at: datetime | None = c.time(nullable=False)
    delivery: int = c.whole(zero=True)
    issued_at: datetime | None = c.time()


class GoalRevisionRow(SQLModel, table=True):
    __tablename__ = "goal_revisions"
    goal: int | None = c.ref("goals.id", primary_key=True)
    revision: int = Field(sa_column=sa.Column(sa.BigInteger, primary_key=True))
    contract: dict[str, Any] = c.json()
    author: str = c.text()
    at: datetime | None = c.time(nullable=False)


class RequirementRow(SQLModel, table=True):
    __tablename__ = "requirements"
    __table_args__ = (c.words("status", RequirementStatus), c.words("kind", CheckKind))
    goal: int | None = c.ref("goals.id", primary_key=True)
    position: int = Field(sa_column=sa.Column(sa.BigInteger, primary_key=True))
    revision: int = c.whole()
    text: str = c.text()
    command: str | None = c.text(None)
    status: str = c.word()
    checked_at: datetime | None = c.time()
    kind: str = c.word(first=CheckKind.EVIDENCE)
    file: dict[str, Any] | None = c.json(nullable=True)
    basis: str | None = c.text(None)


class DeliverableRow(SQLModel, table=True):
    __tablename__ = "deliverables"
    goal: int | None = c.ref("goals.id", primary_key=True)
    position: int = Field(sa_column=sa.Column(sa.BigInteger, primary_key=True))
    revision: int = c.whole()
    path: str = c.text()
    sha_seen: str | None = c.text(None)
    sha_verified: str | None = c.text(None)
    checked_at: datetime | None = c.time()


class ProtectedFileRow(SQLModel, table=True):
    __tablename__ = "protected_files"
    goal: int | None = c.ref("goals.id", primary_key=True)
    position: int = Field(sa_column=sa.Column(sa.BigInteger, primary_key=True))
    path: str = c.text()
    sha256: str | None = c.text(None)
    named_by: str = c.text()
    accepted_at: datetime | None = c.time()


class WakeupRow(SQLModel, table=True):
    __tablename__ = "wakeups"
    __table_args__ = (
        sa.UniqueConstraint("goal", "seq"),
        sa.UniqueConstraint("goal", "fence"),
        sa.Index(
            "uq_wakeups_open",
            "goal",
            unique=True,
            sqlite_where=sa.text("exit_reason IS NULL"),
            postgresql_where=sa.text("exit_reason IS NULL"),
        ),
        c.words("exit_reason", ExitReason),
        c.words("sandbox", SandboxMode),
    )
    id: int | None = c.key()
    goal: int | None = c.ref("goals.id")
    seq: int = c.whole()
    fence: int = c.whole()
    owner: str = c.text()
    host_label: str = c.text()
    pid: int = c.whole()
    pid_start: str = c.text()
    boot_id: str = c.text()
    lease_ms: int = c.whole()
    revision: int = c.whole()
    inbox_seen: int = c.whole()
    exit_reason: str | None = c.word(nullable=True)
    exit_detail: str = c.text()
    exit_facts: dict[str, Any] = c.json()
    turns: int = c.whole()
    tokens: int = c.whole()
    recoveries: int = c.whole()
    rejections: int = c.whole()
    progress: int = c.whole()
    reserved_input: int = c.whole()
    reserved_output: int = c.whole()
    reserved_cost: int = c.whole(zero=True)
    pending_exit: dict[str, Any] | None = c.json(nullable=True)
    settlement_attempts: int = c.whole(zero=True)
    progress_by: dict[str, Any] | None = c.json(nullable=True)
    sandbox: str = c.word(first=SandboxMode.NONE.value)
    started_at: datetime | None = c.time(nullable=False)
    ended_at: datetime | None = c.time()


STORED_STATUSES = tuple(status for status in ItemStatus if status is not ItemStatus.STALE)
"""Staleness is seen each time anew, from the files as they are."""


class WorkItemRow(SQLModel, table=True):
    __tablename__ = "work_items"
    __table_args__ = (
        sa.UniqueConstraint("goal", "number"),
        sa.Index("ix_work_items_goal_status", "goal", "status", "id"),
        c.words("kind", ItemKind),
        c.words("status", STORED_STATUSES),
        c.words("provenance", Provenance),
    )
    id: int | None = c.key()
    goal: int | None = c.ref("goals.id")
    number: int = c.whole()
    kind: str = c.word()
    status: str = c.word()
    text: str = c.text()
    evidence: str = c.text()
    provenance: str = c.word()
    wakeup: int = c.whole()
    count: int = c.whole(1)
    rests_on: list[list[str]] | None = c.json(nullable=True)


class CheckpointRow(SQLModel, table=True):
    __tablename__ = "checkpoints"
    __table_args__ = (sa.Index("ix_checkpoints_goal_id", "goal", "id"),)
    id: int | None = c.key()
    goal: int | None = c.ref("goals.id")
    wakeup: int = c.whole()
    body: dict[str, Any] = c.json()
    at: datetime | None = c.time(nullable=False)


class InboxRow(SQLModel, table=True):
    __tablename__ = "inbox"
    __table_args__ = (
        sa.Index("ix_inbox_goal_id", "goal", "id"),
        c.words("kind", ("note", "answer", "edit", "stop")),
    )
    id: int | None = c.key()
    goal: int | None = c.ref("goals.id")
    kind: str = c.word()
    text: str = c.text()
    superseded_by: int | None = c.whole(None)
    at: datetime | None = c.time(nullable=False)
    question: int | None = c.whole(None)


class QuestionRow(SQLModel, table=True):
    __tablename__ = "questions"
    __table_args__ = (
        sa.UniqueConstraint("goal", "number"),
        sa.Index(
            "ix_questions_due",
            "default_at",
            sqlite_where=c.written("status", QuestionStatus.OPEN),
            postgresql_where=c.written("status", QuestionStatus.OPEN),
        ),
        c.words("kind", QuestionKind),
        c.words("status", QuestionStatus),
    )
    id: int | None = c.key()
    goal: int | None = c.ref("goals.id")
    number: int = c.whole()
    wakeup: int = c.whole()
    kind: str = c.word()
    status: str = c.word()
    text: str = c.text()
    why: str = c.text()
    options: list[str] = c.json()
    default: str = c.text()
    default_at: datetime | None = c.time()
    session_id: str = c.text()
    answer: str = c.text()
    answered_by: str = c.text()
    asked_at: datetime | None = c.time(nullable=False)
    answered_at: datetime | None = c.time()


_OPEN = c.written("status", SourceStatus.OPEN)
_WATCHED = _OPEN & c.written("kind", *WATCHED)


class WakeSourceRow(SQLModel, table=True):
    """What a goal waits for. No key leads to `target`, another goal: that it was deleted must be seen."""

    __tablename__ = "wake_sources"
    __table_args__ = (
        sa.UniqueConstraint("goal", "number"),
        sa.Index(
            "ix_wake_sources_open",
            "goal",
            "id",
            sqlite_where=_OPEN,
            postgresql_where=_OPEN,
        ),
        sa.Index(
            "ix_wake_sources_watched",
            "id",
            sqlite_where=_WATCHED,
            postgresql_where=_WATCHED,
        ),
        c.words("kind", SourceKind),
        c.words("status", SourceStatus),
    )
    id: int | None = c.key()
    goal: int | None = c.ref("goals.id")
    number: int = c.whole()
    kind: str = c.word()
    spec: dict[str, Any] = c.json()
    target: int | None = c.whole(None)
    status: str = c.word()
    due_at: datetime | None = c.time()
    ceiling_at: datetime | None = c.time()
    created_at: datetime | None = c.time(nullable=False)
    fired_at: datetime | None = c.time()


class CheckRow(SQLModel, table=True):
    """One run of one requirement's check, or one look at one deliverable, at a revision of the contract."""

    __tablename__ = "checks"
    __table_args__ = (sa.Index("ix_checks_goal_id", "goal", "id"),)
    id: int | None = c.key()
    goal: int | None = c.ref("goals.id")
    wakeup: int | None = c.ref("wakeups.id", nullable=True)
    revision: int = c.whole()
    subject: str = c.text()
    passed: bool = c.flag()
    exit_code: int | None = c.whole(None)
    sha256: str | None = c.text(None)
    tail: int | None = c.body()
    at: datetime | None = c.time(nullable=False)


class ContextRow(SQLModel, table=True):
    __tablename__ = "contexts"
    __table_args__ = (sa.UniqueConstraint("wakeup", "n"),)
    id: int | None = c.key()
    wakeup: int | None = c.ref("wakeups.id")
    n: int = c.whole()
    sha256: str = c.text()
    tokens: int = c.whole()
    encoding: str = c.text()
    completion_phrases: int = c.whole()
    sections: list[dict[str, Any]] = c.json()
    body: int | None = c.body()
    messages: int | None = c.body()


class TurnRow(SQLModel, table=True):
    __tablename__ = "turns"
    __table_args__ = (
        sa.UniqueConstraint("wakeup", "seq"),
        c.words("purpose", Purpose),
        c.words("state", TurnState),
        c.words("stop_reason", StopReason),
    )
    id: int | None = c.key()
    wakeup: int | None = c.ref("wakeups.id")
    seq: int = c.whole()
    purpose: str = c.word()
    state: str = c.word()
    stop_reason: str = c.word()
    stop_raw: str | None = c.text(None)
    stop_native: str | None = c.text(None)
    stop_detail: str = c.text()
    provider: str = c.text()
    model: str = c.text()
    request_id: str | None = c.text(None)
    movement: str = c.text()
    started_at: datetime | None = c.time(nullable=False)
    ended_at: datetime | None = c.time()
    input: int = c.whole()
    cached: int = c.whole()
    cache_write: int = c.whole()
    output: int = c.whole()
    estimated: bool = c.flag()
    cost_micro: int = c.whole(zero=True)
    price: dict[str, Any] | None = c.json(nullable=True)
    repairs: list[dict[str, Any]] | None = c.json(nullable=True)
    reply: int | None = c.body()
    results: int | None = c.body()


class ToolCallRow(SQLModel, table=True):
    __tablename__ = "tool_calls"
    __table_args__ = (
        sa.UniqueConstraint("turn", "position"),
        sa.Index("ix_tool_calls_wakeup_id", "wakeup", "id"),
        c.words("effect", Effect),
        c.words("outcome", CallOutcome),
    )
    id: int | None = c.key()
    wakeup: int | None = c.ref("wakeups.id")
    turn: int | None = c.ref("turns.id")
    position: int = c.whole()
    call_id: str = c.text()
    tool: str = c.text()
    effect: str | None = c.word(nullable=True)
    args_sha: str = c.text()
    brief: str = c.text()
    idem_key: str = c.text()
    outcome: str | None = c.word(nullable=True)
    exit_code: int | None = c.whole(None)
    ms: int = c.whole()
    result_sha: str | None = c.text(None)
    result_bytes: int = c.whole()
    redactions: int = c.whole()
    result: int | None = c.body()


class MemoryRow(SQLModel, table=True):
    """Long-term memory. It outlives the goals that it comes from, so no key leads to them."""

    __tablename__ = "memories"
    __table_args__ = (
        sa.Index("ix_memories_workspace", "workspace", "id"),
        c.words("kind", MemoryKind),
    )
    id: int | None = c.key()
    kind: str = c.word()
    text: str = c.text()
    workspace: str = c.text()
    goal: str = c.text()
    wakeup: int = c.whole()
    turn: int = c.whole()
    superseded_by: int | None = c.whole(None)
    forgotten_at: datetime | None = c.time()
    created_at: datetime | None = c.time(nullable=False)


SHOWN_EVENTS = (
    "transition",
    "limits",
    "settings",
    "scheduled",
    "unscheduled",
    "wake_source",
    "accepted",
    "fenced",
)
"""Kinds of events that are worth a line of a timeline. Others are about single calls, and many more."""

_SHOWN = c.written("kind", *SHOWN_EVENTS)

SERVERS = "servers"
"""The kind of event that tells which MCP servers a wakeup began with."""


class EventRow(SQLModel, table=True):
    """What happened beside the turns. `wakeup` is the number of the one that it belongs to, not its id."""

    __tablename__ = "events"
    __table_args__ = (
        sa.Index("ix_events_goal_id", "goal", "id"),
        sa.Index(
            "ix_events_servers",
            "goal",
            "wakeup",
            sqlite_where=c.written("kind", SERVERS),
            postgresql_where=c.written("kind", SERVERS),
        ),
        sa.Index("ix_events_shown", "goal", "id", sqlite_where=_SHOWN, postgresql_where=_SHOWN),
    )
    id: int | None = c.key()
    goal: int | None = c.ref("goals.id", nullable=True)
    wakeup: int | None = c.whole(None)
    kind: str = c.text()
    data: dict[str, Any] = c.json()
    at: datetime | None = c.time(nullable=False)


_tables = SQLModel.metadata.tables
goals = _tables["goals"]
goal_revisions = _tables["goal_revisions"]
requirements = _tables["requirements"]
deliverables = _tables["deliverables"]
protected_files = _tables["protected_files"]
wakeups = _tables["wakeups"]
work_items = _tables["work_items"]
checkpoints = _tables["checkpoints"]
inbox = _tables["inbox"]
questions = _tables["questions"]
wake_sources = _tables["wake_sources"]
checks = _tables["checks"]
contexts = _tables["contexts"]
turns = _tables["turns"]
tool_calls = _tables["tool_calls"]
bodies = _tables["bodies"]
memories = _tables["memories"]
events = _tables["events"]

BODIES = tuple(c for table in SQLModel.metadata.sorted_tables for c in table.columns if c.info.get("body"))
"""The columns that name a body."""
