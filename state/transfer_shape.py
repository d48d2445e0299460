"""The shape of a goal in a file: which columns of which tables, nested as they belong together.

What belongs to a store and a machine is not in it: row ids, the schedule, leases, fences' owners.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from goalmode.domain.exits import GoalStatus
from goalmode.state import tables as t

FORMAT = "goalmode goal"
VERSION = 1

OVER = (GoalStatus.DONE, GoalStatus.ABORTED)
"""Statuses that a goal keeps in another store. In any other it is paused: nothing runs there by itself."""


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one table.

    Attributes:
        name: the key under which they stand.
        own: the columns that are in the file, as they are stored.
        bodies: columns that name a body; in the file the text itself.
        places: columns that name a row of the store; in the file its number within the goal, None for none.
        unique: the column by which a row is known among its siblings; None: by its place.
        required: nullable columns that a row of a goal that nobody runs has.
        parts: rows that belong to a row of this one.
    """

    name: str
    table: sa.Table
    own: tuple[str, ...]
    bodies: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    unique: str | None = None
    required: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.own, *self.places, *self.bodies, *(part.name for part in self.parts))


def _part(name: str, table: sa.Table, own: str, **more: Any) -> Part:
    return Part(name, table, tuple(own.split()), **more)


_CALLS = _part(
    "tool_calls",
    t.tool_calls,
    "position call_id tool effect args_sha brief outcome exit_code ms result_sha result_bytes redactions",
    bodies=("result",),
    unique="position",
    required=("outcome",),
)
_TURNS = _part(
    "model_calls",
    t.turns,
    "seq purpose state stop_reason stop_raw stop_native stop_detail provider model request_id movement started_at "
    "ended_at input cached cache_write output estimated cost_micro price repairs",
    bodies=("reply", "results"),
    unique="seq",
    parts=(_CALLS,),
)
_CONTEXTS = _part(
    "contexts",
    t.contexts,
    "n sha256 tokens encoding completion_phrases sections",
    bodies=("body", "messages"),
    unique="n",
)
WAKEUPS = _part(
    "wakeups",
    t.wakeups,
    "seq fence owner revision exit_reason exit_detail exit_facts turns tokens recoveries rejections progress "
    "progress_by settlement_attempts sandbox started_at ended_at",
    places=("inbox_seen",),
    unique="seq",
    required=("exit_reason",),
    parts=(_CONTEXTS, _TURNS),
)
INBOX = _part("inbox", t.inbox, "kind text question at", places=("superseded_by",))
CHECKS = _part(
    "checks", t.checks, "revision subject passed exit_code sha256 at", bodies=("tail",), places=("wakeup",)
)
WAKE_SOURCES = _part(
    "wake_sources",
    t.wake_sources,
    "number kind spec status due_at ceiling_at created_at fired_at",
    unique="number",
)
GOAL = _part(
    "goal",
    t.goals,
    "objective workspace revision limits_rev wrapped_limits_rev limits settings movement fence spent_turns "
    "spent_wakeups spent_input spent_cached spent_cache_write spent_output spent_active_ms spent_cost_micro "
    "stretch_from settlement streak failures obstacles created_at updated_at",
    parts=(
        _part("revisions", t.goal_revisions, "revision contract author at", unique="revision"),
        _part(
            "requirements",
            t.requirements,
            "position revision text command status checked_at kind file basis",
            unique="position",
        ),
        _part(
            "deliverables",
            t.deliverables,
            "position revision path sha_seen sha_verified checked_at",
            unique="position",
        ),
        _part(
            "protected_files",
            t.protected_files,
            "position path sha256 named_by accepted_at",
            unique="position",
        ),
        _part(
            "work_items",
            t.work_items,
            "number kind status text evidence provenance wakeup count rests_on",
            unique="number",
        ),
        _part("checkpoints", t.checkpoints, "wakeup body at"),
        INBOX,
        _part(
            "questions",
            t.questions,
            "number wakeup kind status text why options default default_at session_id answer answered_by asked_at "
            "answered_at",
            unique="number",
        ),
        WAKE_SOURCES,
        WAKEUPS,
        CHECKS,
        _part("events", t.events, "wakeup kind data at"),
    ),
)
"""A goal, whole. Parts are written in this order."""
