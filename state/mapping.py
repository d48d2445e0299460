"""Between rows and domain values. A row of unknown shape is refused by name, never guessed at."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from math import inf
from typing import Any, TypeVar

import sqlalchemy as sa

from goalmode.domain.budget import Limits, Spent
from goalmode.domain.contract import (
    CheckKind,
    Deliverable,
    FileCheck,
    FileTest,
    ProtectedFile,
    Requirement,
    RequirementStatus,
)
from goalmode.domain.cost import Price
from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import ContextPolicy, Control, Goal, GoalSettings, Obstacle
from goalmode.domain.memory import SettlementState
from goalmode.domain.outside import ServerChoice
from goalmode.domain.sandbox import CHOICES
from goalmode.domain.work import Checkpoint, ItemKind, ItemStatus, Provenance, WorkItem, WorkState
from goalmode.domain.workflow import EndTurn, Movement, Workflow, faults
from goalmode.errors import StoreUnreadable
from goalmode.state.columns import time_of

VERSION = 1
"""Of the JSON values inside rows, in their field `v`."""

_SETTINGS: Mapping[str, Callable[[object], bool]] = {
    "model": lambda v: isinstance(v, str),
    "base_url": lambda v: isinstance(v, str),
    "api_key_env": lambda v: isinstance(v, str),
    "max_turns": lambda v: _is_count(v),
    "early_turns": lambda v: _is_count(v),
    "max_recoveries": lambda v: _is_count(v),
    "lang": lambda v: isinstance(v, str),
    "policy": lambda v: isinstance(v, str),
    "tools": lambda v: v is None or (isinstance(v, list) and all(isinstance(name, str) for name in v)),
    "context_tokens": lambda v: v is None or _is_count(v),
    "work_window": lambda v: v is None or _is_count(v),
    "until_budget": lambda v: isinstance(v, bool),
    "workflow": lambda v: isinstance(v, Mapping),
    "user_tools": lambda v: isinstance(v, bool),
    "autonomous": lambda v: isinstance(v, bool),
    "check_seconds": lambda v: isinstance(v, int | float) and not isinstance(v, bool) and v > 0,
    "mcp": lambda v: v is None or (isinstance(v, list) and all(map(_is_server, v))),
    "sandbox": lambda v: v in ("", *CHOICES),
    "network": lambda v: isinstance(v, bool),
}
"""What each field of the stored settings may be."""

T = TypeVar("T")


def limits_to_json(limits: Limits) -> dict[str, Any]:
    deadline = limits.deadline.isoformat() if limits.deadline else None
    return {"v": VERSION, **asdict(limits), "deadline": deadline}


def price_to_json(price: Price) -> dict[str, Any]:
    return {"v": VERSION, **asdict(price)}


def limits_from_json(uid: str, value: object) -> Limits:
    data = _object(uid, "limits", value)
    seconds = _number(uid, data, "limits.active_seconds", int | float)
    return Limits(
        turns=_number(uid, data, "limits.turns", int),
        wakeups=_number(uid, data, "limits.wakeups", int),
        tokens=_number(uid, data, "limits.tokens", int),
        active_seconds=None if seconds is None else float(seconds),
        deadline=_time(uid, data.get("deadline")),
        cost_micro=_number(uid, data, "limits.cost_micro", int),
    )


def settings_to_json(settings: GoalSettings) -> dict[str, Any]:
    return {"v": VERSION, **asdict(settings)}


def settings_from_json(uid: str, value: object) -> GoalSettings:
    data = _object(uid, "settings", value)
    given = {f.name: data[f.name] for f in fields(GoalSettings) if f.name in data}
    for name, found in given.items():
        if not _SETTINGS[name](found):
            raise StoreUnreadable(f"goal {uid}: settings.{name} is {found!r}, which is of another type")
    if "policy" in given:
        given["policy"] = word(uid, "settings.policy", ContextPolicy, given["policy"])
    if given.get("tools") is not None:
        given["tools"] = tuple(given["tools"])
    if given.get("mcp") is not None:
        given["mcp"] = tuple(ServerChoice(one["name"], one["address"]) for one in given["mcp"])
    if "workflow" in given:
        given["workflow"] = _workflow(uid, given["workflow"])
    return GoalSettings(**given)


def _is_server(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(value.get(key), str) for key in ("name", "address"))


def _workflow(uid: str, value: Mapping[str, Any]) -> Workflow:
    try:
        movements = tuple(map(_movement, value["movements"]))
        made = Workflow(_text(value["name"]), _text(value["start"]), movements)
    except (KeyError, TypeError, ValueError) as error:
        raise StoreUnreadable(f"goal {uid}: settings.workflow is not one: {error!r}") from None
    fault = next(faults(made), None)
    if fault is not None:
        raise StoreUnreadable(f"goal {uid}: settings.workflow: {fault.field} is {fault.value!r}")
    return made


def _movement(value: Mapping[str, Any]) -> Movement:
    """Raises KeyError, TypeError or ValueError where a field is missing or of another type."""
    tools = value["tools"]
    return Movement(
        name=_text(value["name"]),
        instruction=_text(value["instruction"]),
        instruction_template=_text(value["instruction_template"]),
        tools=None if tools is None else tuple(map(_text, tools)),
        default_next=_text(value["default_next"]),
        end_turn=EndTurn(value["end_turn"]),
        verifies=_flag(value.get("verifies", False)),
    )


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{value!r} is neither true nor false")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def goal_from_rows(
    row: sa.Row[Any],
    requirements: Sequence[sa.Row[Any]],
    deliverables: Sequence[sa.Row[Any]],
    protected: Sequence[sa.Row[Any]],
    inbox_head: int,
) -> Goal:
    uid = str(row.uid)
    settings = settings_from_json(uid, row.settings)
    if row.movement not in settings.workflow.names:
        raise StoreUnreadable(
            f"goal {uid}: movement is {row.movement!r}, one of {', '.join(settings.workflow.names)} was expected"
        )
    return Goal(
        id=row.id,
        uid=uid,
        objective=row.objective,
        workspace=row.workspace,
        revision=row.revision,
        limits_revision=row.limits_rev,
        wrapped_limits_revision=row.wrapped_limits_rev,
        requirements=tuple(_requirement(uid, r) for r in requirements),
        deliverables=tuple(Deliverable(d.path, d.sha_seen, d.sha_verified) for d in deliverables),
        limits=limits_from_json(uid, row.limits),
        spent=spent_from_row(uid, row._asdict()),
        settings=settings,
        status=word(uid, "status", GoalStatus, row.status),
        status_detail=row.status_detail,
        control=word(uid, "control", Control, row.control),
        fence=row.fence,
        inbox_head=inbox_head,
        next_wakeup_at=row.next_wakeup_at,
        wake_reason=row.wake_reason,
        host_label=row.host_label,
        movement=row.movement,
        streak=_count(uid, "streak", row.streak),
        failures=_count(uid, "failures", row.failures),
        created_at=row.created_at,
        updated_at=row.updated_at,
        protected=tuple(ProtectedFile(p.path, p.sha256, p.named_by, p.accepted_at) for p in protected),
        obstacles=obstacles_from_json(uid, row.obstacles),
        stretch_from=_count(uid, "stretch_from", row.stretch_from),
        settlement=word(uid, "settlement", SettlementState, row.settlement),
    )


def spent_from_row(uid: str, row: Mapping[str, Any]) -> Spent:
    """A goal's totals."""
    return Spent(
        turns=_count(uid, "spent_turns", row["spent_turns"]),
        wakeups=_count(uid, "spent_wakeups", row["spent_wakeups"]),
        input_tokens=_count(uid, "spent_input", row["spent_input"]),
        cached_input_tokens=_count(uid, "spent_cached", row["spent_cached"]),
        cache_write_tokens=_count(uid, "spent_cache_write", row["spent_cache_write"]),
        output_tokens=_count(uid, "spent_output", row["spent_output"]),
        active_seconds=_count(uid, "spent_active_ms", row["spent_active_ms"]) / 1000,
        cost_micro=_count(uid, "spent_cost_micro", row["spent_cost_micro"]),
    )


def _requirement(uid: str, row: sa.Row[Any]) -> Requirement:
    kind = word(uid, "requirement.kind", CheckKind, row.kind)
    return Requirement(
        f"R{row.position}",
        row.text,
        row.command if kind is CheckKind.COMMAND else None,
        file_check_from_json(uid, row.file) if kind is CheckKind.FILE else None,
        kind is CheckKind.HUMAN,
        word(uid, "requirement.status", RequirementStatus, row.status),
        row.checked_at,
        row.basis,
    )


def file_check_to_json(check: FileCheck | None) -> dict[str, Any] | None:
    return None if check is None else {"v": VERSION, **asdict(check)}


def file_check_from_json(uid: str, value: object) -> FileCheck:
    data = _object(uid, "requirement.file", value)
    test = word(uid, "requirement.file.test", FileTest, str(data.get("test")))
    return FileCheck(test, str(data.get("path", "")), str(data.get("value", "")))


def obstacles_to_json(obstacles: Sequence[Obstacle]) -> dict[str, Any]:
    return {"v": VERSION, "items": [asdict(obstacle) for obstacle in obstacles]}


def obstacles_from_json(uid: str, value: object) -> tuple[Obstacle, ...]:
    data = _object(uid, "obstacles", value)
    try:
        return tuple(
            Obstacle(_text(o["id"]), _text(o["text"]), _text(o["requirement"]), tuple(map(int, o["wakeups"])))
            for o in data.get("items", ())
        )
    except (KeyError, TypeError, ValueError) as error:
        raise StoreUnreadable(f"goal {uid}: obstacles are of another shape: {error!r}") from None


def item_from_row(uid: str, row: sa.Row[Any]) -> WorkItem:
    return WorkItem(
        number=row.number,
        kind=word(uid, "work_item.kind", ItemKind, row.kind),
        status=word(uid, "work_item.status", ItemStatus, row.status),
        text=row.text,
        evidence=row.evidence,
        provenance=word(uid, "work_item.provenance", Provenance, row.provenance),
        wakeup=row.wakeup,
        count=row._mapping["count"],
        rests_on=tuple((str(path), str(sha)) for path, sha in row.rests_on or ()),
    )


def item_to_row(item: WorkItem, clean: Callable[[str], str]) -> dict[str, Any]:
    """Its columns. `clean` makes of a text what may be stored."""
    return {
        "number": item.number,
        "kind": item.kind,
        "status": item.status,
        "text": clean(item.text),
        "evidence": clean(item.evidence),
        "provenance": item.provenance,
        "wakeup": item.wakeup,
        "count": item.count,
        "rests_on": [[clean(path), clean(sha)] for path, sha in item.rests_on] or None,
    }


def checkpoint_to_json(work: WorkState) -> dict[str, Any]:
    """All of a work state but its items."""
    return {
        "v": VERSION,
        "key_info": work.checkpoint.key_info,
        "summary": work.checkpoint.summary,
        "next_steps": list(work.checkpoint.next_steps),
        "provenance": work.checkpoint.provenance,
        "found": list(work.found),
        "written": list(work.written),
    }


def checkpoint_from_json(uid: str, wakeup: int, value: object) -> WorkState:
    """A work state without items."""
    data = _object(uid, "checkpoint", value)
    checkpoint = Checkpoint(
        str(data.get("key_info", "")),
        str(data.get("summary", "")),
        tuple(map(str, data.get("next_steps", ()))),
        wakeup,
        word(uid, "checkpoint.provenance", Provenance, data.get("provenance", Provenance.MODEL)),
    )
    found, written = (tuple(map(str, data.get(name, ()))) for name in ("found", "written"))
    return WorkState((), checkpoint, found, written)


def _object(uid: str, name: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise StoreUnreadable(f"goal {uid}: {name} is {value!r}, an object was expected")
    return value


def _number(uid: str, data: Mapping[str, Any], name: str, kind: Any) -> Any:
    """A limit that is there but no number must never read as "unlimited"."""
    value = data.get(name.rpartition(".")[2])
    if value is not None and (not isinstance(value, kind) or isinstance(value, bool) or not 0 <= value < inf):
        raise StoreUnreadable(f"goal {uid}: {name} is {value!r}, a number was expected")
    return value


def _count(uid: str, name: str, value: object) -> int:
    if not isinstance(value, int) or not _is_count(value):
        raise StoreUnreadable(f"goal {uid}: {name} is {value!r}, a whole number was expected")
    return value


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def word(uid: str, name: str, words: Callable[[str], T], value: str) -> T:
    """`value` as a member of a closed list."""
    try:
        return words(value)
    except ValueError:
        raise StoreUnreadable(f"goal {uid}: {name} is {value!r}, which this goalmode does not know") from None


def _time(uid: str, value: object) -> datetime | None:
    time = time_of(value)
    if time is None and value is not None:
        raise StoreUnreadable(
            f"goal {uid}: limits.deadline is {value!r}, a time with its offset was expected"
        )
    return time
