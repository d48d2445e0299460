"""Why a goal is where it is: how its last wakeup ended, on what evidence, and what would make it run again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from goalmode.domain.exits import EXIT_FACTS, STREAK_LIMIT, GoalStatus, SkipReason
from goalmode.domain.goal import Goal
from goalmode.domain.questions import Question, QuestionKind
from goalmode.errors import BadInput
from goalmode.inspection import wake_sources
from goalmode.inspection.endings import remedy, told
from goalmode.inspection.questions import described
from goalmode.inspection.seen import iso, known_reason, runs, shown_detail, shown_reason, shown_status
from goalmode.inspection.streak import streak
from goalmode.orchestrator.wake import Skip, refusal
from goalmode.state import goals, questions, reading
from goalmode.state.reading import CheckSeen, WakeupSeen
from goalmode.state.store import Store

RECENT = 5
"""Endings shown beside the last one."""


def why(store: Store, goal_id: int, *, wakeup: int | None = None) -> dict[str, Any]:
    """The facts behind a goal's state, or behind one of its wakeups.

    Raises:
        BadInput: there is no such wakeup. StoreUnreadable: a row has a shape we do not know.
    """
    with store.reading() as connection:
        goal = goals.read(connection, goal_id)
        seen = reading.wakeups(connection, goal_id)
        checks = reading.checks(connection, goal_id)
        waiting = questions.open_of(connection, goal)
    last = seen[-1] if seen else None
    goal = replace(goal, status=shown_status(store, goal, last))
    chosen = next((w for w in seen if w.seq == wakeup), None) if wakeup else last
    if wakeup and chosen is None:
        have = f"1 to {len(seen)}" if seen else "there are none yet"
        raise BadInput("wakeup", str(wakeup), f"the number of a wakeup of goal {goal.uid}: {have}")
    running = next((w for w in seen if runs(store, w)), None)
    skip = _leased(running) if running is not None else refusal(store, goal)
    return {
        "id": goal.uid,
        "status": goal.status.value,
        "status_reason": goal.status_detail,
        "running": running is not None,
        "owner": None if running is None else running.lease.owner.name,
        "ending": None if chosen is None else _ending(store, goal, chosen, checks),
        "recent": [
            {"wakeup": w.seq, "exit_reason": shown_reason(store, w), "turns": w.turns} for w in seen[-RECENT:]
        ],
        "streak": goal.streak,
        "streak_limit": STREAK_LIMIT,
        "streak_wakeups": streak(goal, seen),
        "failures": goal.failures,
        "next_wakeup_at": iso(goal.next_wakeup_at),
        "wake_reason": goal.wake_reason,
        "wake_sources": wake_sources.of_goal(store, goal, only_open=True, running=running is not None),
        "skip": None if skip is None else {"reason": skip.reason.value, "detail": skip.detail},
        "questions": [described(question) for question in waiting],
        "remedy": _remedy(store, goal, last, waiting),
        "contract_protected": False,
    }


def _leased(running: WakeupSeen) -> Skip:
    return Skip(SkipReason.LEASED, f"{running.lease.owner.name} runs wakeup {running.seq} of it")


def _ending(store: Store, goal: Goal, wakeup: WakeupSeen, checks: list[CheckSeen]) -> dict[str, Any]:
    word, detail = shown_reason(store, wakeup), shown_detail(store, wakeup)
    newest = {check.subject: check for check in checks if check.wakeup == wakeup.seq}
    reason = None if word is None else known_reason(goal, wakeup, word)
    return {
        "wakeup": wakeup.seq,
        "exit_reason": word,
        "exit_detail": detail,
        "exit_code": None if reason is None else EXIT_FACTS[reason].exit_code,
        "sentence": "it runs" if reason is None else told(reason, detail),
        "facts": dict(wakeup.exit_facts),
        "turns": wakeup.turns,
        "recoveries": wakeup.recoveries,
        "rejections": wakeup.rejections,
        "progress": wakeup.progress,
        "progress_by": dict(wakeup.progress_by),
        "ended_at": iso(wakeup.ended_at),
        "checks": [
            {"subject": c.subject, "passed": c.passed, "exit_code": c.exit_code, "tail": c.tail}
            for c in newest.values()
        ],
    }


def _remedy(store: Store, goal: Goal, last: WakeupSeen | None, waiting: Sequence[Question]) -> str:
    asks = bool(waiting) and waiting[-1].asking.kind is not QuestionKind.SIGN_OFF
    if goal.status is GoalStatus.WAITING_USER and asks and len(waiting) > 1:
        return f"goalmode answer {goal.uid} {waiting[-1].label} TEXT"
    word = None if last is None else shown_reason(store, last)
    if last is None or word is None:
        return remedy(goal.uid, goal.status, None, {}) if last is None else ""
    if goal.status is GoalStatus.DONE:
        return f"goalmode edit {goal.uid}"
    return remedy(goal.uid, goal.status, known_reason(goal, last, word), last.exit_facts)
