"""The tables. Integer keys, aware UTC times, CHECKs on every stored word, JSON with a version inside.

Rows are read and written with Core statements (see `goals.py`, `wakeups.py`, `journal.py`): named columns and
increments, never a whole row written back. Validation is the domain's; the database holds the words and the keys.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlmodel import Field, SQLModel

from goalmode.domain.calls import CallOutcome, Effect
from goalmode.domain.exits import ExitReason, GoalStatus
from goalmode.domain.goal import Control, RequirementStatus
from goalmode.domain.signals import StopReason
from goalmode.domain.work import ItemKind, ItemStatus, Provenance

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


class UTCDateTime(sa.types.TypeDecorator[datetime]):
    """Aware in, aware UTC out; a naive time is refused."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"naive time {value!r} refused")
        value = value.astimezone(UTC)
        return value.replace(tzinfo=None) if dialect.name == "sqlite" else value

    def process_result_value(self, value: datetime | None, dialect: sa.Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


JSON = sa.JSON().with_variant(JSONB(), "postgresql")
JSON_OR_NULL = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def _int(default: int | None = 0, **options: Any) -> Any:
    return Field(default=default, sa_column=sa.Column(sa.BigInteger, nullable=default is None, **options))


def _key() -> Any:
    # SQLite gives row ids to INTEGER keys only.
    column = sa.Column(sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True)
    return Field(default=None, sa_column=column)


def _ref(target: str, *, nullable: bool = False, index: bool = False, primary_key: bool = False) -> Any:
    key = sa.ForeignKey(target, ondelete="CASCADE")
    column = sa.Column(sa.BigInteger, key, nullable=nullable, index=index, primary_key=primary_key)
    return Field(default=None, sa_column=column)


def _body() -> Any:
    # No foreign key: bodies are pruned before the rows that name them, and a key would be looked up at each deletion.
    return Field(default=None, sa_column=sa.Column(sa.BigInteger, nullable=True))


def _text(default: str | None = "") -> Any:
    return Field(default=default, sa_column=sa.Column(sa.Text, nullable=default is None))


def _word(nullable: bool = False) -> Any:
    return Field(default=None, sa_column=sa.Column(sa.String(24), nullable=nullable))


def _json() -> Any:
    return Field(default=None, sa_column=sa.Column(JSON, nullable=False))


def _time(nullable: bool = True) -> Any:
    return Field(default=None, sa_column=sa.Column(UTCDateTime, nullable=nullable))


def _words(column: str, words: Iterable[str]) -> sa.CheckConstraint:
    listed = ", ".join(f"'{word}'" for word in words)
    return sa.CheckConstraint(f"{column} IN ({listed})", name=column)


class BodyRow(SQLModel, table=True):
    """Texts, apart from the rows that lists read. Insert-only."""

    __tablename__ = "bodies"
    id: int | None = _key()
    codec: str = Field(sa_column=sa.Column(sa.String(8), nullable=False))
    raw_len: int = _int()
    data: bytes = Field(sa_column=sa.Column(sa.LargeBinary, nullable=False))


class GoalRow(SQLModel, table=True):
    __tablename__ = "goals"
    __table_args__ = (
        _words("status", GoalStatus),
        _words("control", Control),
        sa.Index(
            "ix_goals_due",
            "next_wakeup_at",
            "id",
            sqlite_where=sa.text("status = 'ACTIVE'"),
            postgresql_where=sa.text("status = 'ACTIVE'"),
        ),
    )
    id: int | None = _key()
    uid: str = Field(sa_column=sa.Column(sa.String(32), nullable=False, unique=True))
    objective: str = _text()
    workspace: str = _text()
    revision: int = _int(1)
    limits_rev: int = _int(1)
    wrapped_limits_rev: int = _int(0)
    limits: dict[str, Any] = _json()
    settings: dict[str, Any] = _json()
    status: str = _word()
    status_detail: str = _text()
    control: str = _word()
    fence: int = _int()
    next_wakeup_at: datetime | None = _time()
    wake_reason: str = _text()
    host_label: str = _text()
    movement: str = _text()
    spent_turns: int = _int()
    spent_wakeups: int = _int()
    spent_input: int = _int()
    spent_cached: int = _int()
    spent_cache_write: int = _int()
    spent_output: int = _int()
    spent_active_ms: int = _int()
    streak: int = _int()
    failures: int = _int()
    obstacles: dict[str, Any] = _json()
    created_at: datetime | None = _time(nullable=False)
    updated_at: datetime | None = _time(nullable=False)


class GoalRevisionRow(SQLModel, table=True):
    __tablename__ = "goal_revisions"
    goal: int | None = _ref("goals.id", primary_key=True)
    revision: int = Field(sa_column=sa.Column(sa.BigInteger, primary_key=True))
    contract: dict[str, Any] = _json()
    author: str = _text()
    at: datetime | None = _time(nullable=False)


class RequirementRow(SQLModel, table=True):
    __tablename__ = "requirements"
    __table_args__ = (_words("status", RequirementStatus),)
    goal: int | None = _ref("goals.id", primary_key=True)
    position: int = Field(sa_column=sa.Column(sa.BigInteger, primary_key=True))
    revision: int = _int()
    text: str = _text()
    command: str | None = _text(None)
    status: str = _word()
    checked_at: datetime | None = _time()


class DeliverableRow(SQLModel, table=True):
    __tablename__ = "deliverables"
    goal: int | None = _ref("goals.id", primary_key=True)
    position: int = Field(sa_column=sa.Column(sa.BigInteger, primary_key=True))
    revision: int = _int()
    path: str = _text()
    sha_seen: str | None = _text(None)
    sha_verified: str | None = _text(None)
    checked_at: datetime | None = _time()


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
        _words("exit_reason", ExitReason),
    )
    id: int | None = _key()
    goal: int | None = _ref("goals.id")
    seq: int = _int()
    fence: int = _int()
    owner: str = _text()
    host_label: str = _text()
    pid: int = _int()
    pid_start: str = _text()
    boot_id: str = _text()
    lease_ms: int = _int()
    revision: int = _int()
    inbox_seen: int = _int()
    exit_reason: str | None = _word(nullable=True)
    exit_detail: str = _text()
    exit_facts: dict[str, Any] = _json()
    turns: int = _int()
    tokens: int = _int()
    recoveries: int = _int()
    rejections: int = _int()
    progress: int = _int()
    reserved_input: int = _int()
    reserved_output: int = _int()
    started_at: datetime | None = _time(nullable=False)
    ended_at: datetime | None = _time()


class WorkItemRow(SQLModel, table=True):
    __tablename__ = "work_items"
    __table_args__ = (
        sa.UniqueConstraint("goal", "number"),
        sa.Index("ix_work_items_goal_status", "goal", "status", "id"),
        _words("kind", ItemKind),
        _words("status", ItemStatus),
        _words("provenance", Provenance),
    )
    id: int | None = _key()
    goal: int | None = _ref("goals.id")
    number: int = _int()
    kind: str = _word()
    status: str = _word()
    text: str = _text()
    evidence: str = _text()
    provenance: str = _word()
    wakeup: int = _int()
    count: int = _int(1)


class CheckpointRow(SQLModel, table=True):
    __tablename__ = "checkpoints"
    __table_args__ = (sa.Index("ix_checkpoints_goal_id", "goal", "id"),)
    id: int | None = _key()
    goal: int | None = _ref("goals.id")
    wakeup: int = _int()
    body: dict[str, Any] = _json()
    at: datetime | None = _time(nullable=False)


class InboxRow(SQLModel, table=True):
    __tablename__ = "inbox"
    __table_args__ = (
        sa.Index("ix_inbox_goal_id", "goal", "id"),
        _words("kind", ("note", "answer", "edit", "stop")),
    )
    id: int | None = _key()
    goal: int | None = _ref("goals.id")
    kind: str = _word()
    text: str = _text()
    superseded_by: int | None = _int(None)
    at: datetime | None = _time(nullable=False)


class CheckRow(SQLModel, table=True):
    """One run of one requirement's check, or one look at one deliverable, at a revision of the contract."""

    __tablename__ = "checks"
    __table_args__ = (sa.Index("ix_checks_goal_id", "goal", "id"),)
    id: int | None = _key()
    goal: int | None = _ref("goals.id")
    wakeup: int | None = _ref("wakeups.id", nullable=True)
    revision: int = _int()
    subject: str = _text()
    passed: bool = Field(sa_column=sa.Column(sa.Boolean(create_constraint=False), nullable=False))
    exit_code: int | None = _int(None)
    sha256: str | None = _text(None)
    tail: int | None = _body()
    at: datetime | None = _time(nullable=False)


class ContextRow(SQLModel, table=True):
    __tablename__ = "contexts"
    __table_args__ = (sa.UniqueConstraint("wakeup", "n"),)
    id: int | None = _key()
    wakeup: int | None = _ref("wakeups.id")
    n: int = _int()
    sha256: str = _text()
    tokens: int = _int()
    encoding: str = _text()
    completion_phrases: int = _int()
    sections: list[dict[str, Any]] = _json()
    body: int | None = _body()
    messages: int | None = _body()


class TurnRow(SQLModel, table=True):
    __tablename__ = "turns"
    __table_args__ = (
        sa.UniqueConstraint("wakeup", "seq"),
        _words("purpose", Purpose),
        _words("state", TurnState),
        _words("stop_reason", StopReason),
    )
    id: int | None = _key()
    wakeup: int | None = _ref("wakeups.id")
    seq: int = _int()
    purpose: str = _word()
    state: str = _word()
    stop_reason: str = _word()
    stop_raw: str | None = _text(None)
    stop_native: str | None = _text(None)
    stop_detail: str = _text()
    provider: str = _text()
    model: str = _text()
    request_id: str | None = _text(None)
    movement: str = _text()
    started_at: datetime | None = _time(nullable=False)
    ended_at: datetime | None = _time()
    input: int = _int()
    cached: int = _int()
    cache_write: int = _int()
    output: int = _int()
    estimated: bool = Field(sa_column=sa.Column(sa.Boolean(create_constraint=False), nullable=False))
    repairs: list[dict[str, Any]] | None = Field(
        default=None, sa_column=sa.Column(JSON_OR_NULL, nullable=True)
    )
    reply: int | None = _body()
    results: int | None = _body()


class ToolCallRow(SQLModel, table=True):
    __tablename__ = "tool_calls"
    __table_args__ = (
        sa.UniqueConstraint("turn", "position"),
        sa.Index("ix_tool_calls_wakeup_id", "wakeup", "id"),
        _words("effect", Effect),
        _words("outcome", CallOutcome),
    )
    id: int | None = _key()
    wakeup: int | None = _ref("wakeups.id")
    turn: int | None = _ref("turns.id")
    position: int = _int()
    call_id: str = _text()
    tool: str = _text()
    effect: str | None = _word(nullable=True)
    args_sha: str = _text()
    brief: str = _text()
    idem_key: str = _text()
    outcome: str | None = _word(nullable=True)
    exit_code: int | None = _int(None)
    ms: int = _int()
    result_sha: str | None = _text(None)
    result_bytes: int = _int()
    redactions: int = _int()
    result: int | None = _body()


class EventRow(SQLModel, table=True):
    __tablename__ = "events"
    __table_args__ = (sa.Index("ix_events_goal_id", "goal", "id"),)
    id: int | None = _key()
    goal: int | None = _ref("goals.id", nullable=True)
    wakeup: int | None = _int(None)
    kind: str = _text()
    data: dict[str, Any] = _json()
    at: datetime | None = _time(nullable=False)


_tables = SQLModel.metadata.tables
goals = _tables["goals"]
goal_revisions = _tables["goal_revisions"]
requirements = _tables["requirements"]
deliverables = _tables["deliverables"]
wakeups = _tables["wakeups"]
work_items = _tables["work_items"]
checkpoints = _tables["checkpoints"]
inbox = _tables["inbox"]
checks = _tables["checks"]
contexts = _tables["contexts"]
turns = _tables["turns"]
tool_calls = _tables["tool_calls"]
bodies = _tables["bodies"]
events = _tables["events"]
