"""The table of endings, row by row: goal status, next wakeup, streak and failures after each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goalmode.domain.exits import EXIT_FACTS, STREAK_LIMIT, Exit, ExitReason, GoalStatus
from goalmode.domain.signals import BLOCKING, ErrorKind
from goalmode.orchestrator.after import (
    BACK_OFF_SECONDS,
    MAX_BACK_OFF_SECONDS,
    MAX_INTERRUPTIONS,
    QUOTA_WAIT,
    Standing,
    after,
    back_off,
)
from goalmode.state.closing import Aftermath

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(hours=5)
R, S = ExitReason, GoalStatus
COUNTED = [R.EARLY_NO_TOOL, R.NO_PROGRESS, R.CONTEXT_OVERFLOW, R.OUTPUT_TRUNCATED, R.YIELDED]


def then(
    reason: ExitReason, *, wake_at: datetime | None = None, detail: str = "why", **facts: Any
) -> Aftermath:
    """What follows an ending, with the standing's fields among the facts: streak, failures, turns, progressed."""
    own = {"streak": 0, "failures": 0, "turns": 3, "progressed": False, "jitter": 0.0}
    standing = Standing(**{k: facts.pop(k, v) for k, v in own.items()})
    return after(Exit(reason, detail, facts, wake_at), standing, NOW)


def seconds(found: Aftermath) -> float | None:
    return None if found.next_wakeup_at is None else (found.next_wakeup_at - NOW).total_seconds()


@pytest.mark.parametrize(
    ("reason", "status", "wait"),
    [
        (R.CURRENT_TASK_DONE, S.DONE, None),
        (R.MAX_TURNS_EXCEEDED, S.ACTIVE, 0),
        (R.YIELDED, S.ACTIVE, 30),
        (R.EARLY_NO_TOOL, S.ACTIVE, 30),
        (R.NO_PROGRESS, S.ACTIVE, 30),
        (R.CONTEXT_OVERFLOW, S.ACTIVE, 0),
        (R.OUTPUT_TRUNCATED, S.ACTIVE, 30),
        (R.MODEL_REFUSED, S.BLOCKED, None),
        (R.BACKEND_ERROR, S.ACTIVE, 30),
        (R.ENGINE_ERROR, S.BLOCKED, None),
        (R.INTERRUPTED, S.ACTIVE, 0),
        (R.NEEDS_USER_INPUT, S.WAITING_USER, None),
        (R.WAITING_HUMAN, S.WAITING_USER, None),
        (R.TASK_BLOCKED, S.BLOCKED, None),
        (R.GOAL_BUDGET_EXHAUSTED, S.EXHAUSTED, None),
        (R.USER_ABORTED, S.PAUSED, None),
    ],
)
def test_each_row_of_the_table(reason: ExitReason, status: GoalStatus, wait: float | None) -> None:
    """B14 B19: status and next wakeup of every reason, without progress and with nothing bad before."""
    found = then(reason)

    assert (found.status, seconds(found)) == (status, wait)
    assert found.status_detail == ("" if status is S.ACTIVE else "why")


@pytest.mark.parametrize("reason", R)
def test_what_counts_towards_the_streak(reason: ExitReason) -> None:
    """Five endings count, a yield only as prose; success starts anew; all others leave the streak as it was."""
    expected = 2 if reason in COUNTED else 0 if reason is R.CURRENT_TASK_DONE else 1

    assert then(reason, streak=1).streak == expected


@pytest.mark.parametrize("reason", COUNTED)
def test_the_third_bad_ending_in_a_row_blocks_with_the_evidence(reason: ExitReason) -> None:
    """Streak 2 goes on, streak 3 is BLOCKED, and the detail says what happened last."""
    assert then(reason, streak=1).status is S.ACTIVE

    found = then(reason, streak=2, detail="it said: all done")

    assert (found.status, found.next_wakeup_at, found.streak) == (S.BLOCKED, None, 3)
    assert f"3 wakeups in a row ended badly, the last one {reason}: it said: all done" == found.status_detail


@pytest.mark.parametrize("reason", COUNTED)
def test_progress_resets_the_streak(reason: ExitReason) -> None:
    """A wakeup that changed the state is not the third bad one, however it ended."""
    found = then(reason, streak=2, progressed=True)

    assert (found.status, found.streak) == (S.ACTIVE, 0)


def test_a_streak_that_is_not_added_to_never_blocks() -> None:
    """An ending that does not count has its own status, whatever is stored as the streak."""
    assert then(R.CURRENT_TASK_DONE, streak=STREAK_LIMIT).status is S.DONE
    assert then(R.MAX_TURNS_EXCEEDED, streak=STREAK_LIMIT).status is S.ACTIVE


def test_a_spent_turn_quota_is_never_called_stuck() -> None:
    """9.6: MAX_TURNS_EXCEEDED goes on now, without progress too."""
    found = then(R.MAX_TURNS_EXCEEDED, streak=2)

    assert (found.status, seconds(found), found.streak) == (S.ACTIVE, 0, 2)


def test_a_yield_goes_on_at_once_after_progress() -> None:
    """Without progress it backs off."""
    assert seconds(then(R.YIELDED, progressed=True)) == 0


def test_a_wait_is_woken_at_the_asked_time_and_does_not_count() -> None:
    """`wait` is no prose: the streak stays, and the model's time is kept."""
    found = then(R.YIELDED, streak=2, waited=True, wake_at=LATER)

    assert (found.status, found.next_wakeup_at, found.wake_reason, found.streak) == (
        S.ACTIVE,
        LATER,
        "asked time",
        2,
    )


@pytest.mark.parametrize("kind", ErrorKind)
def test_backend_errors_neither_count_nor_reset(kind: ErrorKind) -> None:
    """Whatever the kind: the streak stays; kinds that no waiting cures block, all others back off."""
    found = then(R.BACKEND_ERROR, streak=2, kind=kind.value)

    assert found.streak == 2
    assert found.status is (S.BLOCKED if kind in BLOCKING else S.ACTIVE)
    if kind is ErrorKind.QUOTA:
        assert seconds(found) == QUOTA_WAIT.total_seconds()
    elif kind not in BLOCKING:
        assert seconds(found) == BACK_OFF_SECONDS


def test_the_four_client_errors_block() -> None:
    """AUTH, PERMISSION, NOT_FOUND and BAD_REQUEST are a person's to fix; so are PROTOCOL and SIGNATURE."""
    words = {"AUTH", "PERMISSION", "NOT_FOUND", "BAD_REQUEST", "PROTOCOL", "SIGNATURE"}

    assert {kind.value for kind in BLOCKING} == words


def test_a_spent_quota_waits_for_its_reset() -> None:
    """Its known reset time, else an hour."""
    found = then(R.BACKEND_ERROR, kind="QUOTA", wake_at=LATER)

    assert (found.next_wakeup_at, found.wake_reason) == (LATER, "quota reset")


def test_failures_in_a_row_double_the_back_off() -> None:
    """B17: 30 s, 1 min, 2 min, … at most half an hour; a failure after committed turns is the first again."""
    waits = [seconds(then(R.BACKEND_ERROR, failures=n, turns=0)) for n in range(8)]

    assert waits == [30, 60, 120, 240, 480, 960, 1800, 1800]
    assert seconds(then(R.BACKEND_ERROR, failures=6, turns=1)) == 30


def test_the_streak_doubles_the_back_off() -> None:
    """The second bad ending in a row waits twice as long."""
    assert [seconds(then(R.NO_PROGRESS, streak=n)) for n in range(2)] == [30, 60]


@given(st.integers(-3, 10_000), st.floats(0, 1, exclude_max=True))
def test_back_off_is_bounded(count: int, jitter: float) -> None:
    """Never below 30 s or above half an hour, and jitter adds at most a quarter."""
    plain, spread = back_off(count, 0.0).total_seconds(), back_off(count, jitter).total_seconds()

    assert BACK_OFF_SECONDS <= plain <= spread <= min(MAX_BACK_OFF_SECONDS, plain * 1.25)


def test_goals_that_failed_together_do_not_come_back_together() -> None:
    """Jitter spreads them over a quarter of the wait."""
    assert [back_off(2, jitter).total_seconds() for jitter in (0.0, 0.5, 0.8)] == [60, 67.5, 72]


def test_interruptions_go_on_at_once_then_back_off_then_block() -> None:
    """B50: two without a committed outcome are followed at once, the next two wait, the fifth in a row blocks."""
    found = [then(R.INTERRUPTED, failures=n, turns=0) for n in range(5)]

    assert [seconds(f) for f in found] == [0, 0, 30, 60, None]
    assert [f.failures for f in found] == [1, 2, 3, 4, MAX_INTERRUPTIONS]
    assert found[-1].status is S.BLOCKED
    assert "the process ended 5 times in a row" in found[-1].status_detail


def test_an_interruption_after_a_committed_outcome_starts_anew() -> None:
    """A process that gets something done between its deaths is never blocked for them."""
    found = then(R.INTERRUPTED, failures=4, turns=1)

    assert (found.status, found.failures, seconds(found)) == (S.ACTIVE, 0, 0)


def test_an_asked_for_interruption_does_not_count() -> None:
    """SIGTERM and the shutdown of a service are not the fifth death in a row."""
    found = then(R.INTERRUPTED, failures=4, turns=0, requested=True)

    assert (found.status, found.failures, seconds(found)) == (S.ACTIVE, 0, 0)


def test_pause_and_abort_differ() -> None:
    """B118: Ctrl-C and `pause` leave the goal PAUSED, `abort` ends it for ever; neither is scheduled."""
    assert then(R.USER_ABORTED, control="pause").status is S.PAUSED
    assert then(R.USER_ABORTED, control="abort").status is S.ABORTED


_exits = st.builds(
    lambda reason, kind, waited, requested: Exit(
        reason, "why", {"kind": kind, "waited": waited, "requested": requested}
    ),
    st.sampled_from(R),
    st.none() | st.sampled_from(ErrorKind),
    st.booleans(),
    st.booleans(),
)


@given(st.lists(st.tuples(_exits, st.integers(0, 2), st.booleans()), max_size=25))
def test_any_sequence_of_wakeups_keeps_the_rules(history: list[tuple[Exit, int, bool]]) -> None:
    """Counts stay in range; an active goal is always scheduled and no other ever is; BLOCKED only by a rule."""
    streak = failures = 0
    bad: list[bool] = []
    for exit, turns, progressed in history:
        found = after(exit, Standing(streak, failures, turns, progressed), NOW)
        prose = exit.reason is R.YIELDED and not exit.facts["waited"]
        if progressed or exit.reason is R.CURRENT_TASK_DONE:
            bad = []
        elif EXIT_FACTS[exit.reason].counts or prose:
            bad.append(True)

        assert found.streak == len(bad)
        assert 0 <= found.failures <= failures + 1
        assert (found.next_wakeup_at is not None) == (found.status is S.ACTIVE)
        if found.status is S.BLOCKED:
            assert (
                EXIT_FACTS[exit.reason].status is S.BLOCKED
                or found.streak >= STREAK_LIMIT
                or (exit.reason is R.BACKEND_ERROR and exit.facts["kind"] in BLOCKING)
                or (exit.reason is R.INTERRUPTED and found.failures >= MAX_INTERRUPTIONS)
            )
            assert found.status_detail
        streak, failures = found.streak, found.failures
        if found.status is not S.ACTIVE:  # A resume is needed, and resets both.
            streak, failures, bad = 0, 0, []
