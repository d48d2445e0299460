"""One goal: its contract as it stands in the workspace, what it has used up, its work and its newest wakeups."""

from __future__ import annotations

from collections.abc import Sequence
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
from goalmode.inspection.seen import Shown, iso, shown, status_of
from goalmode.state import goals, questions, reading, snapshot, spend
from goalmode.state.reading import WakeupSeen
from goalmode.state.spend import Spend
from goalmode.state.store import Store
from goalmode.tools.named import hash_of
from goalmode.tools.paths import Workspace

WAKEUPS = 50
"""The newest wakeups; the older ones are in the timeline."""

Found = dict[str, Any]


def show(store: Store, goal_id: int) -> Found:
    """What there is to know of a goal but its turns, its contexts and its older wakeups.

    Raises:
        StoreUnreadable: a row has a shape we do not know.
    """
    with store.reading() as connection:
        goal = goals.read(connection, goal_id)
        work = snapshot.work_state(connection, goal)
        last = reading.last_checks(connection, goal_id, goal.revision)
        wakeups = reading.wakeups(connection, goal_id, newest=WAKEUPS)
        checks, said = reading.checks(connection, goal_id), reading.inbox(connection, goal_id)
        spends = spend.by_purpose(connection, goal_id)
        asked = questions.of_goal(connection, goal)
    standing = [shown(store, wakeup) for wakeup in wakeups]
    newest = wakeups[-1] if wakeups else None
    running = bool(standing) and standing[-1].running
    found = {
        **_standing(goal, newest, running=running),
        **_asked_for(goal),
        **_going_on(store, goal, running=running),
        **_spent(goal, spends),
        "settings": _settings(goal),
        **contract(goal, last),
        **_work(goal, _as_seen(goal, work)),
        "wakeups_in_all": 0 if newest is None else newest.seq,
        "wakeups": [_wakeup(wakeup, how) for wakeup, how in zip(wakeups, standing, strict=True)],
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


def _standing(goal: Goal, newest: WakeupSeen | None, *, running: bool) -> Found:
    """Which goal it is, and how it stands."""
    return {
        "id": goal.uid,
        "status": status_of(goal, newest, running=running).value,
        "status_reason": goal.status_detail,
        "running": running,
        "owner": newest.lease.owner.name if newest is not None and running else None,
    }


def _asked_for(goal: Goal) -> Found:
    """What it is to reach, where, and by which rules."""
    return {
        "objective": goal.objective,
        "objective_revision": goal.revision,
        "policy": goal.settings.policy.value,
        "movement": goal.movement,
        "workspace": goal.workspace,
        "host": goal.host_label,
    }


def _going_on(store: Store, goal: Goal, *, running: bool) -> Found:
    """What wakes it, and what its endings have come to."""
    return {
        "next_wakeup_at": iso(goal.next_wakeup_at),
        "wake_reason": goal.wake_reason,
        "wake_sources": wake_sources.of_goal(store, goal, running=running),
        "settlement": goal.settlement.value,
        "stretch_turns": goal.stretch_turns,
        "streak": goal.streak,
        "failures": goal.failures,
    }


def _spent(goal: Goal, spends: Sequence[Spend]) -> Found:
    """What it may use up, what it has used up, and on what."""
    return {
        "limits": {**asdict(goal.limits), "deadline": iso(goal.limits.deadline)},
        "spent": {"tokens": goal.spent.tokens, **asdict(goal.spent)},
        "spend_by_purpose": {
            one.purpose: {"calls": one.calls, "tokens": one.tokens, "cost_micro": one.cost_micro}
            for one in spends
        },
    }


def _work(goal: Goal, work: WorkState) -> Found:
    """What stands in its way, what was saved last, and what was done, is to be verified, or failed."""
    return {
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


def _as_seen(goal: Goal, work: WorkState) -> WorkState:
    """The work beside its files, where there are any to look at."""
    if not Path(goal.workspace).is_dir():
        return work
    return work.as_seen(cache(partial(hash_of, Workspace(Path(goal.workspace)))))


def _wakeup(wakeup: WakeupSeen, how: Shown) -> dict[str, Any]:
    return {
        "seq": wakeup.seq,
        "running": how.running,
        "owner": wakeup.lease.owner.name,
        "exit_reason": how.exit_reason,
        "exit_detail": how.exit_detail,
        "exit_facts": dict(wakeup.exit_facts),
        "sandbox": wakeup.sandbox,
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
