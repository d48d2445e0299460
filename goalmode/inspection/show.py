"""One goal, whole: its contract as it stands in the workspace, what it has used up, and every wakeup."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from goalmode.domain.goal import Goal
from goalmode.inspection.seen import iso, runs, shown_detail, shown_reason, shown_status
from goalmode.settle import files
from goalmode.state import goals, reading, snapshot
from goalmode.state.reading import WakeupSeen
from goalmode.state.store import Store
from goalmode.tools.paths import Workspace


def show(store: Store, goal_id: int) -> dict[str, Any]:
    """Everything there is to know of a goal but its turns and its contexts.

    Raises:
        StoreUnreadable: a row has a shape we do not know.
    """
    with store.reading() as connection:
        goal = goals.read(connection, goal_id)
        work = snapshot.work_state(connection, goal)
        wakeups = reading.wakeups(connection, goal_id)
        checks, said = reading.checks(connection, goal_id), reading.inbox(connection, goal_id)
    running = next((w for w in wakeups if runs(store, w)), None)
    return {
        "id": goal.uid,
        "status": shown_status(store, goal, wakeups[-1] if wakeups else None).value,
        "status_reason": goal.status_detail,
        "running": running is not None,
        "owner": None if running is None else running.lease.owner.name,
        "objective": goal.objective,
        "objective_revision": goal.revision,
        "policy": goal.settings.policy.value,
        "movement": goal.movement,
        "workspace": goal.workspace,
        "host": goal.host_label,
        "next_wakeup_at": iso(goal.next_wakeup_at),
        "wake_reason": goal.wake_reason,
        "streak": goal.streak,
        "failures": goal.failures,
        "limits": {**asdict(goal.limits), "deadline": iso(goal.limits.deadline)},
        "spent": {"tokens": goal.spent.tokens, **asdict(goal.spent)},
        "settings": _settings(goal),
        "requirements": [
            {"id": r.id, "text": r.text, "check": r.check, "status": r.status.value}
            for r in goal.requirements
        ],
        "deliverables": _deliverables(goal),
        "checkpoint": {**asdict(work.checkpoint), "found": list(work.found)},
        "work_items": [
            {
                "id": item.label,
                "kind": item.kind.value,
                "text": item.text,
                "status": item.status.value,
                "evidence": item.evidence,
                "provenance": item.provenance.value,
                "wakeup": item.wakeup,
                "count": item.count,
            }
            for item in work.items
        ],
        "wakeups": [_wakeup(store, wakeup) for wakeup in wakeups],
        "checks": [{**asdict(check), "at": iso(check.at)} for check in checks],
        "inbox": [{**asdict(entry), "at": iso(entry.at)} for entry in said],
        "revisions": [
            {**row["contract"], "revision": row["revision"], "author": row["author"], "at": iso(row["at"])}
            for row in goals.revisions(store, goal)
        ],
        "created_at": iso(goal.created_at),
        "updated_at": iso(goal.updated_at),
    }


def _settings(goal: Goal) -> dict[str, Any]:
    """How it is pursued; of an address only what lets nobody in."""
    settings = goal.settings
    return {**asdict(settings), "policy": settings.policy.value, "base_url": public(settings.base_url)}


def public(url: str) -> str:
    """A URL without user name, password and query."""
    if not url:
        return ""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _deliverables(goal: Goal) -> list[dict[str, Any]]:
    """The contract's files as they are just now."""
    seen = files.observe(Workspace(Path(goal.workspace)), goal.deliverables)
    return [
        {
            "path": now.path,
            "exists": now.exists,
            "size": now.size,
            "sha256": now.sha256,
            "verified_sha256": stored.sha_verified,
            "verified": now.verified,
            "problem": now.problem,
            "hint": now.hint,
        }
        for now, stored in zip(seen, goal.deliverables, strict=True)
    ]


def _wakeup(store: Store, wakeup: WakeupSeen) -> dict[str, Any]:
    running = runs(store, wakeup)
    return {
        "seq": wakeup.seq,
        "running": running,
        "owner": wakeup.lease.owner.name,
        "exit_reason": shown_reason(store, wakeup),
        "exit_detail": shown_detail(store, wakeup),
        "exit_facts": dict(wakeup.exit_facts),
        "turns": wakeup.turns,
        "tokens": wakeup.tokens,
        "recoveries": wakeup.recoveries,
        "rejections": wakeup.rejections,
        "progress": wakeup.progress,
        "context_tokens": wakeup.context_tokens,
        "context_sha256": wakeup.context_sha256,
        "completion_phrases": wakeup.completion_phrases,
        "started_at": iso(wakeup.started_at),
        "ended_at": iso(wakeup.ended_at),
    }
