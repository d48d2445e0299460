"""What an ending means: the command that goes on, and the exit code."""

from __future__ import annotations

import pytest

from goalmode.cli.main import PLACES
from goalmode.domain.exits import EXIT_FACTS, ExitReason, GoalStatus
from goalmode.inspection.endings import exit_code, remedy


@pytest.mark.parametrize("reason", ExitReason)
def test_every_remedy_is_a_command_that_there_is(reason: ExitReason) -> None:
    """Each ending but success names a command of ours, complete with the goal's id."""
    command = remedy("abc", EXIT_FACTS[reason].status, reason, {"limit": "turns"})

    if reason is ExitReason.CURRENT_TASK_DONE:
        assert command == ""
        return
    program, name, uid, *_ = command.split()
    assert (program, uid, name in PLACES) == ("goalmode", "abc", True)
    assert "{" not in command


@pytest.mark.parametrize(
    ("limit", "option"),
    [
        ("turns", "--turn-budget +N"),
        ("wakeups", "--wakeup-budget +N"),
        ("tokens", "--token-budget +N"),
        ("cost", "--cost-budget +N"),
        ("active_seconds", "--time-budget +N"),
        ("deadline", "--deadline TIME"),
    ],
)
def test_each_limit_names_its_own_option(limit: str, option: str) -> None:
    """A spent limit is answered with the option that raises just that."""
    command = remedy("abc", GoalStatus.EXHAUSTED, ExitReason.GOAL_BUDGET_EXHAUSTED, {"limit": limit})

    assert command == f"goalmode resume abc {option}"


@pytest.mark.parametrize(
    ("status", "reason", "command"),
    [
        (GoalStatus.BLOCKED, ExitReason.EARLY_NO_TOOL, "goalmode resume abc"),
        (GoalStatus.PAUSED, ExitReason.MAX_TURNS_EXCEEDED, "goalmode resume abc"),
        (GoalStatus.ACTIVE, ExitReason.CURRENT_TASK_DONE, "goalmode run abc"),
        (GoalStatus.ACTIVE, None, "goalmode run abc"),
        (GoalStatus.ABORTED, ExitReason.USER_ABORTED, ""),
    ],
)
def test_the_status_decides_where_it_is_not_the_usual_one(
    status: GoalStatus, reason: ExitReason | None, command: str
) -> None:
    """A goal that was blocked or stopped since needs a resume, whatever its last ending was."""
    assert remedy("abc", status, reason, {}) == command


@pytest.mark.parametrize(
    ("status", "reason", "code"),
    [
        (GoalStatus.DONE, ExitReason.CURRENT_TASK_DONE, 0),
        (GoalStatus.BLOCKED, ExitReason.EARLY_NO_TOOL, 12),
        (GoalStatus.WAITING_USER, ExitReason.NEEDS_USER_INPUT, 30),
        (GoalStatus.PAUSED, ExitReason.MAX_TURNS_EXCEEDED, 130),
        (GoalStatus.PAUSED, None, 130),
        (GoalStatus.ABORTED, None, 130),
        (GoalStatus.BLOCKED, None, 1),
    ],
)
def test_the_exit_code_of_a_goal_as_it_is(status: GoalStatus, reason: ExitReason | None, code: int) -> None:
    """It is that of the last ending, unless a user stopped the goal since."""
    assert exit_code(status, reason) == code
