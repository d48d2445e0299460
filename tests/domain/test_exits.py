"""The closed list of endings and its facts."""

from __future__ import annotations

import pytest

from goalmode.domain.exits import EXIT_FACTS, ExitReason, GoalStatus, NextWakeup
from goalmode.domain.signals import BLOCKING, TRANSIENT, ErrorKind, exit_for_error

CODES = {
    "CURRENT_TASK_DONE": 0,
    "MAX_TURNS_EXCEEDED": 10,
    "YIELDED": 11,
    "EARLY_NO_TOOL": 12,
    "NO_PROGRESS": 13,
    "CONTEXT_OVERFLOW": 14,
    "OUTPUT_TRUNCATED": 15,
    "MODEL_REFUSED": 16,
    "BACKEND_ERROR": 20,
    "ENGINE_ERROR": 21,
    "INTERRUPTED": 22,
    "NEEDS_USER_INPUT": 30,
    "WAITING_HUMAN": 31,
    "TASK_BLOCKED": 32,
    "GOAL_BUDGET_EXHAUSTED": 40,
    "USER_ABORTED": 130,
}
"""The promise to scripts: these words and these codes never change."""


def test_every_reason_has_its_facts_and_its_promised_code() -> None:
    """B132: sixteen reasons, each with facts; the stored words and the exit codes are the promised ones."""
    assert {reason.value: EXIT_FACTS[reason].exit_code for reason in ExitReason} == CODES
    assert set(ExitReason) == set(EXIT_FACTS)


def test_exit_codes_are_distinct_and_only_success_is_zero() -> None:
    """No two endings share a code, none of them means usage (2) or a failing store (1)."""
    codes = [facts.exit_code for facts in EXIT_FACTS.values()]

    assert len(codes) == len(set(codes))
    assert [r for r, f in EXIT_FACTS.items() if f.exit_code == 0] == [ExitReason.CURRENT_TASK_DONE]
    assert not {1, 2} & set(codes)


def test_only_active_goals_have_a_next_wakeup() -> None:
    """A status that needs a person never schedules, and an active one always does."""
    schedules = {NextWakeup.NOW, NextWakeup.BACK_OFF, NextWakeup.AFTER_PROGRESS}

    for reason, facts in EXIT_FACTS.items():
        assert (facts.status is GoalStatus.ACTIVE) == (facts.next_wakeup in schedules), reason


@pytest.mark.parametrize("reason", ExitReason)
def test_every_reason_speaks(reason: ExitReason) -> None:
    """Each has a sentence, and a remedy that names the goal, unless the goal is done."""
    facts = EXIT_FACTS[reason]

    assert facts.sentence
    assert (reason is ExitReason.CURRENT_TASK_DONE) == ("{id}" not in facts.remedy)


def test_every_error_kind_has_an_ending() -> None:
    """`exit_for_error` is total, and no error of a provider is a success or the user's doing."""
    assert {kind: exit_for_error(kind) for kind in ErrorKind} == dict.fromkeys(
        ErrorKind, ExitReason.BACKEND_ERROR
    ) | {
        ErrorKind.POLICY: ExitReason.MODEL_REFUSED,
        ErrorKind.CONTEXT_OVERFLOW: ExitReason.CONTEXT_OVERFLOW,
        ErrorKind.REQUEST_TOO_LARGE: ExitReason.CONTEXT_OVERFLOW,
    }


def test_no_kind_is_both_worth_retrying_and_hopeless() -> None:
    """Transient kinds are asked again, blocking ones wait for a person."""
    assert not TRANSIENT & BLOCKING
