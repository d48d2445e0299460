"""One goal, whole: its contract as it stands in the workspace, what it has used up, and every wakeup."""

from __future__ import annotations

from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from goalmode.domain.goal import Goal
from goalmode.domain.work import WorkState
from goalmode.inspection import wake_sources
from goalmode.inspection.contract import contract
from goalmode.inspection.questions import described
from goalmode.inspection.seen import iso, runs, shown_detail, shown_reason, shown_status
from goalmode.state import goals, questions, reading, snapshot, spend
from goalmode.state.reading import WakeupSeen
from goalmode.state.store import Store
from goalmode.tools.named import hash_of
from goalmode.tools.paths import Workspace


def show(store: Store, goal_id: int) -> dict[str, Any]:
    """Everything there is to know of a goal but its turns and its contexts.

    Raises:
        StoreUnreadable: a row has a shape we do not know.
    """
    with store.reading() as connection:
        goal = goals.read(connection, goal_id)
        work = snapshot.work_state(connection, goal)
        last = reading.last_checks(connection, goal_id, goal.revision)
        wakeups = reading.wakeups(connection, goal_id)
        checks, said = reading.checks(connection, goal_id), reading.inbox(connection, goal_id)
        spends = spend.by_purpose(connection, goal_id)
        asked = questions.of_goal(connection, goal)
    work = _as_seen(goal, work)
    running = next((w for w in wakeups if runs(store, w)), None)
    found = {
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
        "wake_sources": wake_sources.of_goal(store, goal, running=running is not None),
        "settlement": goal.settlement.value,
        "stretch_turns": goal.stretch_turns,
        "streak": goal.streak,
        "failures": goal.failures,
        "limits": {**asdict(goal.limits), "deadline": iso(goal.limits.deadline)},
        "spent": {"tokens": goal.spent.tokens, **asdict(goal.spent)},
        "spend_by_purpose": {
            one.purpose: {"calls": one.calls, "tokens": one.tokens, "cost_micro": one.cost_micro}
            for one in spends
        },
        "settings": _settings(goal),
        **contract(goal, last),
        "obstacles": [
            {"id": o.id, "text": o.text, "requirement": o.requirement, "wakeups": list(o.wakeups)}
            for o in goal.obstacles
        ],
        "checkpoint": {
            **asdict(work.checkpoint),
            "found": list(work.found),
            "written": list(work.written),
        },
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
                "rests_on": [path for path, _ in item.rests_on],
                "changed": list(item.changed),
            }
            for item in work.items
        ],
        "wakeups": [_wakeup(store, wakeup) for wakeup in wakeups],
        "checks": [{**asdict(check), "at": iso(check.at)} for check in checks],
        "questions": [described(question) for question in asked],
        "inbox": [{**asdict(entry), "at": iso(entry.at)} for entry in said],
        "revisions": [
            {**row["contract"], "revision": row["revision"], "author": row["author"], "at": iso(row["at"])}
            for row in goals.revisions(store, goal)
        ],
        "created_at": iso(goal.created_at),
        "updated_at": iso(goal.updated_at),
    }
    return dict(store.clean_json(found))


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


def _as_seen(goal: Goal, work: WorkState) -> WorkState:
    """The work beside its files, where there are any to look at."""
    if not Path(goal.workspace).is_dir():
        return work
    return work.as_seen(cache(partial(hash_of, Workspace(Path(goal.workspace)))))


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
        "progress_by": dict(wakeup.progress_by),
        "context_tokens": wakeup.context_tokens,
        "context_sha256": wakeup.context_sha256,
        "completion_phrases": wakeup.completion_phrases,
        "started_at": iso(wakeup.started_at),
        "ended_at": iso(wakeup.ended_at),
    }
