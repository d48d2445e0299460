"""Why a goal is where it is: how its last wakeup ended, on what evidence, and what would make it run again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from goalmode.domain.exits import EXIT_FACTS, STREAK_LIMIT, GoalStatus, SkipReason
from goalmode.domain.goal import Goal
from goalmode.domain.questions import Question, QuestionKind
from goalmode.domain.sandbox import SandboxMode
from goalmode.errors import BadInput
from goalmode.inspection import wake_sources
from goalmode.inspection.endings import remedy, told
from goalmode.inspection.going_on import limit_of, needs
from goalmode.inspection.questions import described
from goalmode.inspection.seen import Shown, iso, known_reason, looks, status_of
from goalmode.inspection.streak import streak
from goalmode.inspection.turns import reply_of
from goalmode.orchestrator.skip import Skip, refusal
from goalmode.state import goals, outside, questions, reading, reading_turns
from goalmode.state.reading import CheckSeen, WakeupSeen
from goalmode.state.reading_turns import TurnSeen
from goalmode.state.store import Store

RECENT = 5
"""Endings shown beside the last one."""

LOOKED_AT = 500
"""Wakeups, the newest, among which the evidence for a streak is looked for."""


def why(store: Store, goal_id: int, *, wakeup: int | None = None) -> dict[str, Any]:
    """The facts behind a goal's state, or behind one of its wakeups.

    Raises:
        BadInput: there is no such wakeup. StoreUnreadable: a row has a shape we do not know.
    """
    with store.reading() as connection:
        goal = goals.read(connection, goal_id)
        seen = reading.wakeups(connection, goal_id, newest=LOOKED_AT)
        last = seen[-1] if seen else None
        named = [] if wakeup is None else reading.wakeups(connection, goal_id, numbers=[wakeup])
        chosen = last if wakeup is None else next(iter(named), None)
        checks = [] if chosen is None else reading.checks_of(connection, goal_id, chosen.id)
        turns = (
            []
            if chosen is None
            else reading_turns.turns(connection, goal_id, wakeup=chosen.seq, limit=1, newest=True)
        )
        servers = [] if chosen is None else [_ran(s) for s in outside.servers_of(connection, chosen.id)]
        waiting = questions.open_of(connection, goal)
    if wakeup is not None and chosen is None:
        have = "there are none yet" if last is None else f"1 to {last.seq}"
        raise BadInput("wakeup", str(wakeup), f"the number of a wakeup of goal {goal.uid}: {have}")
    how = looks(store, (*seen, *named))
    running = next((w for w in seen if how[w.id].running), None)
    goal = replace(goal, status=status_of(goal, last, running=running is not None))
    skip = _leased(running) if running is not None else refusal(store, goal)
    facts = {} if last is None else last.exit_facts
    found = {
        "id": goal.uid,
        "status": goal.status.value,
        "status_reason": goal.status_detail,
        "running": running is not None,
        "owner": None if running is None else running.lease.owner.name,
        "ending": None
        if chosen is None
        else {**_ending(goal, chosen, how[chosen.id], checks, next(iter(turns), None)), "servers": servers},
        "recent": [
            {"wakeup": w.seq, "exit_reason": how[w.id].exit_reason, "turns": w.turns} for w in seen[-RECENT:]
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
        "needs": needs(goal, facts, waiting, running=running is not None, due=skip is None),
        "remedy": _remedy(goal, last, None if last is None else how[last.id].exit_reason, waiting),
        "sandbox": None if chosen is None else chosen.sandbox,
        "network": goal.settings.network,
        "contract_protected": chosen is not None
        and chosen.sandbox != SandboxMode.NONE
        and not any(server["ran"] for server in servers),
    }
    return dict(store.clean_json(found))


def _ran(server: Mapping[str, Any]) -> dict[str, Any]:
    """A server of a wakeup. Of an older one it is not known whether a program of it ran: it did, unless it failed."""
    return {**server, "ran": bool(server.get("ran", not server.get("problem")))}


def _leased(running: WakeupSeen) -> Skip:
    return Skip(SkipReason.LEASED, f"{running.lease.owner.name} runs wakeup {running.seq} of it")


def _ending(
    goal: Goal, wakeup: WakeupSeen, how: Shown, checks: Sequence[CheckSeen], turn: TurnSeen | None
) -> dict[str, Any]:
    word, detail = how.exit_reason, how.exit_detail
    newest = {check.subject: check for check in checks}
    reason = None if word is None else known_reason(goal, wakeup, word)
    return {
        "wakeup": wakeup.seq,
        "exit_reason": word,
        "exit_detail": detail,
        "exit_code": None if reason is None else EXIT_FACTS[reason].exit_code,
        "sentence": "it runs" if reason is None else told(reason, detail),
        "facts": dict(wakeup.exit_facts),
        "limit": limit_of(wakeup.exit_facts),
        "turns": wakeup.turns,
        "last_turn": None if turn is None else _turn(turn),
        "recoveries": wakeup.recoveries,
        "max_recoveries": goal.settings.max_recoveries,
        "early_turns": goal.settings.early_turns,
        "rejections": wakeup.rejections,
        "progress": wakeup.progress,
        "progress_by": dict(wakeup.progress_by),
        "ended_at": iso(wakeup.ended_at),
        "checks": [
            {"subject": c.subject, "passed": c.passed, "exit_code": c.exit_code, "tail": c.tail}
            for c in newest.values()
        ],
    }


def _turn(turn: TurnSeen) -> dict[str, Any]:
    """The model call that an ending followed."""
    return {
        **reply_of(turn),
        "calls": [{"tool": c.tool, "brief": c.brief, "outcome": c.outcome} for c in turn.calls],
    }


def _remedy(goal: Goal, last: WakeupSeen | None, word: str | None, waiting: Sequence[Question]) -> str:
    asks = bool(waiting) and waiting[-1].asking.kind is not QuestionKind.SIGN_OFF
    if goal.status is GoalStatus.WAITING_USER and asks and len(waiting) > 1:
        return f"goalmode answer {goal.uid} {waiting[-1].label} TEXT"
    if last is None or word is None:
        return remedy(goal.uid, goal.status, None, {}) if last is None else ""
    if goal.status is GoalStatus.DONE:
        return f"goalmode edit {goal.uid}"
    return remedy(goal.uid, goal.status, known_reason(goal, last, word), last.exit_facts)
