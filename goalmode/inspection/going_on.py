"""What would make a goal run again: in words, beside the command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Goal
from goalmode.domain.questions import Question


def needs(
    goal: Goal, facts: Mapping[str, object], waiting: Sequence[Question], *, running: bool, due: bool
) -> str:
    """One sentence.

    Args:
        goal: with the status that is shown.
        facts: of its last ending.
        waiting: its open questions.
        due: it would be woken now.
    """
    if running:
        return "it runs; nothing is needed"
    match goal.status:
        case GoalStatus.ACTIVE if due:
            return "it is due: `goalmode serve` wakes it, or a command does"
        case GoalStatus.ACTIVE:
            at = (
                ""
                if goal.next_wakeup_at is None
                else f" at {goal.next_wakeup_at.isoformat(timespec='seconds')}"
            )
            return f"it is due{at} ({goal.wake_reason}): `goalmode serve` wakes it then, or a command waits for it"
        case GoalStatus.WAITING_USER:
            return _answer(waiting)
        case GoalStatus.PAUSED:
            return "a user lets it go on"
        case GoalStatus.BLOCKED:
            return "a user has a look at what blocks it, and lets it go on"
        case GoalStatus.EXHAUSTED:
            return f"a user raises the limit that is reached{_limit(facts)}"
        case GoalStatus.DONE:
            return "a user changes what it asks for, which reopens it"
        case GoalStatus.ABORTED:
            return "nothing: it can only be read"


def limit_of(facts: Mapping[str, object]) -> dict[str, object] | None:
    """The limit that an ending was due to, with its value and what was used of it; None if it was due to none."""
    if "limit" not in facts:
        return None
    return {name: facts.get(name) for name in ("limit", "value", "used")}


def _answer(waiting: Sequence[Question]) -> str:
    named = [q.label for q in waiting]
    if not named:
        return "a user says what it waits for"
    whose = "an answer to " + " or ".join(named)
    defaults = [q.asking.default_at for q in waiting if q.asking.default_at is not None]
    return (
        f"{whose}; the default stands from {min(defaults).isoformat(timespec='seconds')}"
        if defaults
        else whose
    )


def _limit(facts: Mapping[str, object]) -> str:
    found = limit_of(facts)
    return "" if found is None else f": {found['limit']} {found['value']}, used {found['used']}"
