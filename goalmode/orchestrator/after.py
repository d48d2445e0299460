"""What an ending does to its goal: status, next wakeup, streak. Pure: (exit, goal's counts, now) -> aftermath."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from goalmode.domain.exits import EXIT_FACTS, STREAK_LIMIT, Exit, ExitReason, GoalStatus, NextWakeup
from goalmode.domain.goal import Control
from goalmode.domain.signals import BLOCKING, ErrorKind
from goalmode.domain.wake import ASKED_TIME, BACK_OFF, QUOTA_RESET
from goalmode.state.closing import Aftermath

BACK_OFF_SECONDS = 30.0
"""First back-off; doubled with each bad ending or failure in a row."""

MAX_BACK_OFF_SECONDS = 1800.0

QUOTA_WAIT = timedelta(hours=1)
"""Wait after a spent quota whose reset time is not known."""

MAX_INTERRUPTIONS = 5
"""Interruptions in a row, none with a committed turn, after which the goal is blocked."""

PROMPT_INTERRUPTIONS = 2
"""Interruptions in a row that are followed by a wakeup at once; later ones wait."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What `after` needs to know of the goal and of the wakeup that ended.

    Attributes:
        turns: the wakeup's committed turns.
        progressed: whether the wakeup changed the state: files, verified items, new results.
        jitter: from [0, 1); spreads the wakeups of goals that failed together.
    """

    streak: int
    failures: int
    turns: int
    progressed: bool
    jitter: float = 0.0


def after(exit: Exit, standing: Standing, now: datetime) -> Aftermath:
    """The goal's status and next wakeup after `exit`."""
    facts = EXIT_FACTS[exit.reason]
    streak = _streak(exit, standing)
    failures = _failures(exit, standing)
    if streak > standing.streak and streak >= STREAK_LIMIT:
        detail = f"{streak} wakeups in a row ended badly, the last one {exit.reason}: {exit.detail}"
        return Aftermath(GoalStatus.BLOCKED, detail, None, "", streak, failures)

    blocked = _blocked(exit, failures)
    if blocked:
        return Aftermath(GoalStatus.BLOCKED, blocked, None, "", streak, failures)

    status = facts.status
    if exit.reason is ExitReason.USER_ABORTED and exit.facts.get("control") == Control.ABORT:
        status = GoalStatus.ABORTED
    wake_at, why = _next_wakeup(exit, standing, streak, failures, now)
    detail = "" if status is GoalStatus.ACTIVE else exit.detail
    return Aftermath(status, detail, wake_at, why, streak, failures)


def back_off(count: int, jitter: float) -> timedelta:
    """30 s doubled by the count of bad endings in a row, spread by up to a quarter, at most 30 min."""
    seconds = BACK_OFF_SECONDS * 2 ** min(max(count, 1) - 1, 10)
    return timedelta(seconds=min(MAX_BACK_OFF_SECONDS, seconds * (1 + 0.25 * jitter)))


def counts(reason: ExitReason, facts: Mapping[str, object]) -> bool:
    """Whether an ending without progress adds one to the streak of bad endings."""
    prose = reason is ExitReason.YIELDED and not facts.get("waited")
    return EXIT_FACTS[reason].counts or prose


def _streak(exit: Exit, standing: Standing) -> int:
    if standing.progressed or exit.reason is ExitReason.CURRENT_TASK_DONE:
        return 0
    return standing.streak + int(counts(exit.reason, exit.facts))


def _failures(exit: Exit, standing: Standing) -> int:
    if exit.reason not in (ExitReason.BACKEND_ERROR, ExitReason.INTERRUPTED) or exit.facts.get("requested"):
        return 0
    if exit.reason is ExitReason.INTERRUPTED and standing.turns:
        return 0
    return 1 if standing.turns else standing.failures + 1


def _blocked(exit: Exit, failures: int) -> str:
    """Why the goal is blocked although the facts table says it stays active; empty if it is not."""
    kind = exit.facts.get("kind")
    if exit.reason is ExitReason.BACKEND_ERROR and kind in BLOCKING:
        return exit.detail
    if exit.reason is ExitReason.INTERRUPTED and failures >= MAX_INTERRUPTIONS:
        return f"the process ended {failures} times in a row before a turn was done"
    return ""


def _next_wakeup(
    exit: Exit, standing: Standing, streak: int, failures: int, now: datetime
) -> tuple[datetime | None, str]:
    rule = EXIT_FACTS[exit.reason].next_wakeup
    if exit.reason is ExitReason.BACKEND_ERROR and exit.facts.get("kind") == ErrorKind.QUOTA:
        return (exit.wake_at, QUOTA_RESET) if exit.wake_at else (now + QUOTA_WAIT, "quota")
    if exit.wake_at is not None:
        return exit.wake_at, ASKED_TIME
    if exit.reason is ExitReason.INTERRUPTED and failures > PROMPT_INTERRUPTIONS:
        return now + back_off(failures - PROMPT_INTERRUPTIONS, standing.jitter), BACK_OFF
    match rule:
        case NextWakeup.NOW:
            return now, exit.reason.value
        case NextWakeup.AFTER_PROGRESS if standing.progressed:
            return now, exit.reason.value
        case NextWakeup.BACK_OFF | NextWakeup.AFTER_PROGRESS:
            return now + back_off(failures or streak, standing.jitter), BACK_OFF
        case _:
            return None, ""
