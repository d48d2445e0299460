"""What an ending means for people: a sentence, the command that goes on, and the exit code."""

from __future__ import annotations

from collections.abc import Mapping

from goalmode.domain.exits import EXIT_FACTS, ExitReason, GoalStatus
from goalmode.domain.text import one_line

MAX_DETAIL = 500
"""Characters of a detail in a line about an ending."""

_BUDGETS = {"turns": "turn", "wakeups": "wakeup", "tokens": "token", "cost": "cost", "active_seconds": "time"}

_BY_STATUS = {
    GoalStatus.ACTIVE: "goalmode run {id}",
    GoalStatus.WAITING_USER: "goalmode answer {id} TEXT",
    GoalStatus.PAUSED: "goalmode resume {id}",
    GoalStatus.BLOCKED: "goalmode resume {id}",
    GoalStatus.EXHAUSTED: "goalmode resume {id} --{limit}-budget +N",
    GoalStatus.DONE: "",
    GoalStatus.ABORTED: "",
}

STOPPED_CODE = EXIT_FACTS[ExitReason.USER_ABORTED].exit_code


def remedy(uid: str, status: GoalStatus, reason: ExitReason | None, facts: Mapping[str, object]) -> str:
    """The command that makes the goal run again; empty where there is none or none is needed."""
    sign_off = facts.get("sign_off")
    if status is GoalStatus.WAITING_USER and isinstance(sign_off, list):
        return " ".join([f"goalmode accept {uid}", *map(str, sign_off)])
    known = None if reason is None else EXIT_FACTS[reason]
    command = known.remedy if known is not None and known.status is status else _BY_STATUS[status]
    limit = str(facts.get("limit", ""))
    if "{limit}" in command and limit not in _BUDGETS:
        command = command.replace("--{limit}-budget +N", "--deadline TIME")
    return command.format(id=uid, limit=_BUDGETS.get(limit, ""))


def exit_code(status: GoalStatus, reason: ExitReason | None) -> int:
    """The exit code of a command that finds a goal as it is: its last ending's, unless a user stopped it since."""
    if status in (GoalStatus.PAUSED, GoalStatus.ABORTED):
        return STOPPED_CODE
    return 1 if reason is None else EXIT_FACTS[reason].exit_code


def told(reason: ExitReason, detail: str) -> str:
    """What happened, in one line with its facts."""
    sentence = f"{reason}: {EXIT_FACTS[reason].sentence}"
    return f"{sentence} ({one_line(detail, MAX_DETAIL)})" if detail else sentence
