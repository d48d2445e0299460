"""A goal over time: its wakeups with what they used up and came to, and what happened before, between and in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from goalmode.inspection.seen import Shown, iso, looks, shown, status_of
from goalmode.state import goals, reading
from goalmode.state import timeline as rows
from goalmode.state.reading import WakeupSeen
from goalmode.state.store import Store
from goalmode.state.timeline import Happening, Work

WAKEUPS = 50
"""Wakeups on one page."""


def timeline(store: Store, goal_id: int, *, limit: int = WAKEUPS, offset: int = 0) -> dict[str, Any]:
    """A page of wakeups, oldest first, with what happened in its time.

    Args:
        limit: wakeups on the page. offset: so many of the newest are left out.

    Raises:
        StoreUnreadable: a row has a shape we do not know.
    """
    with store.reading() as connection:
        goal = goals.read(connection, goal_id)
        last = reading.last_wakeup(connection, goal_id)
        page = reading.wakeups(connection, goal_id, newest=limit + 1, skip=offset)
        beyond = reading.wakeups(connection, goal_id, newest=1, skip=offset - 1) if offset else []
        before, seen = page[:-limit], page[-limit:]
        since = seen[0].started_at if before and seen else None
        until = beyond[0].started_at if beyond else None
        happened = rows.happenings(connection, goal_id, since=since, until=until)
        work = rows.work(connection, [w.id for w in seen])
    how = looks(store, (*seen, *([] if last is None else [last])))
    running = last is not None and how[last.id].running
    found = {
        "id": goal.uid,
        "status": status_of(goal, last, running=running).value,
        "running": running,
        "created_at": iso(goal.created_at),
        "wakeups_in_all": 0 if last is None else last.seq,
        "wakeups": [_wakeup(w, how[w.id], work.get(w.id, ())) for w in seen],
        "happenings": [_happening(one, seen) for one in happened],
    }
    return dict(store.clean_json(found))


def wakeups(store: Store, goal_id: int, *, limit: int = WAKEUPS, offset: int = 0) -> list[dict[str, Any]]:
    """The newest wakeups, oldest first, each with what it used up.

    Args:
        limit: so many. offset: so many of the newest are left out.
    """
    with store.reading() as connection:
        seen = reading.wakeups(connection, goal_id, newest=limit, skip=offset)
        work = rows.work(connection, [w.id for w in seen])
    return [store.clean_json(_wakeup(w, shown(store, w), work.get(w.id, ()))) for w in seen]


def _wakeup(wakeup: WakeupSeen, how: Shown, work: Sequence[Work]) -> dict[str, Any]:
    return {
        "seq": wakeup.seq,
        "running": how.running,
        "exit_reason": how.exit_reason,
        "exit_detail": how.exit_detail,
        "movements": [one.movement for one in work],
        "turns": wakeup.turns,
        "calls": sum(one.calls for one in work),
        "tokens": wakeup.tokens,
        "cost_micro": sum(one.cost_micro for one in work),
        "recoveries": wakeup.recoveries,
        "rejections": wakeup.rejections,
        "progress": wakeup.progress,
        "progress_by": dict(wakeup.progress_by),
        "context_tokens": wakeup.context_tokens,
        "started_at": iso(wakeup.started_at),
        "ended_at": iso(wakeup.ended_at),
    }


def _happening(one: Happening, seen: Sequence[WakeupSeen]) -> dict[str, Any]:
    """With the wakeup in whose time it was; None: between two of them."""
    in_it = [w.seq for w in seen if w.started_at <= one.at and (w.ended_at is None or one.at <= w.ended_at)]
    return {
        "at": iso(one.at),
        "kind": one.kind,
        "wakeup": in_it[-1] if in_it else None,
        "text": _text(one.kind, one.data),
        "data": dict(one.data),
    }


def _text(kind: str, data: Mapping[str, Any]) -> str:
    """What happened, in words."""
    match kind:
        case "transition":
            why = f": {data.get('reason')}" if data.get("reason") else ""
            forced = ", forced" if data.get("forced") else ""
            return f"{data.get('from')} -> {data.get('to')}{forced}{why}"
        case "limits" | "settings":
            given = {k: v for k, v in data.items() if v is not None and k != "workflow"}
            return ", ".join(f"{name} {value}" for name, value in given.items()) if kind == "limits" else ""
        case "scheduled" | "unscheduled" | "wake_source":
            return " ".join(
                filter(None, [str(data.get("source", "")), str(data.get("what", data.get("reason", "")))])
            )
        case "accepted":
            return str(data.get("requirement", data.get("file", "")))
        case "fenced":
            return f"{data.get('owner')} was late"
        case "asked" | "answer" if data.get("question"):
            return f"Q{data['question']}: {data['text']}"
        case "checkpoint":
            return "saved"
        case _:
            return str(data.get("text", ""))
