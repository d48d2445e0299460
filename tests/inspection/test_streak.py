"""What `why` gives as evidence for a streak: the wakeups that it counts, and that nothing came of them."""

from __future__ import annotations

from goalmode.domain.exits import Exit, ExitReason, GoalStatus
from goalmode.domain.goal import Goal
from goalmode.inspection.why import why
from goalmode.orchestrator.goals import resume_goal
from goalmode.state.store import Store
from tests.orchestrator.builders import begin, now, turn

R = ExitReason
STUCK = Exit(R.NO_PROGRESS, "the same call was made 10 times in a row")
PROSE = Exit(R.YIELDED, "no tool call at turn 4", {"waited": False})
WAITED = Exit(R.YIELDED, "asked to be woken", {"waited": True})
QUOTA = Exit(R.MAX_TURNS_EXCEEDED, "turn quota 2, used 2")


def wake(store: Store, goal: Goal, exit: Exit, result: str = "as ever") -> None:
    """One wakeup of one turn; nothing is new in it if the result is not."""
    wake = begin(store, goal, only_if_due=False)
    turn(wake, result=result)
    wake.close(exit)


def evidence(store: Store, goal: Goal) -> list[tuple[int, str, int]]:
    found = why(store, goal.id)
    assert len(found["streak_wakeups"]) == found["streak"]
    return [(w["wakeup"], w["exit_reason"], w["progress"]) for w in found["streak_wakeups"]]


def test_the_wakeups_of_a_streak_are_shown_with_what_came_of_them(store: Store, goal: Goal) -> None:
    """Number, ending, turns, progress by what it is of, and the detail; wakeups that do not count are left out."""
    wake(store, goal, QUOTA)
    for exit in (STUCK, WAITED, QUOTA, PROSE, STUCK):
        wake(store, goal, exit)

    assert now(store, goal).status is GoalStatus.BLOCKED
    assert evidence(store, goal) == [(2, "NO_PROGRESS", 0), (5, "YIELDED", 0), (6, "NO_PROGRESS", 0)]
    last = why(store, goal.id)["streak_wakeups"][-1]
    assert (last["turns"], last["detail"]) == (1, STUCK.detail)
    assert set(last["progress_by"].values()) == {0}


def test_a_spent_turn_quota_is_never_called_stuck(store: Store, goal: Goal) -> None:
    """9.6: however many wakeups end so with nothing new, the goal goes on, and none of them is evidence."""
    for _ in range(6):
        wake(store, goal, QUOTA)

    found = why(store, goal.id)
    assert (now(store, goal).status, found["streak"], found["streak_wakeups"]) == (GoalStatus.ACTIVE, 0, [])
    assert found["skip"] is None


def test_progress_begins_the_evidence_anew(store: Store, goal: Goal) -> None:
    """A bad ending with progress resets the streak, and is no part of the next one."""
    for exit, result in ((STUCK, "1"), (STUCK, "1"), (STUCK, "2"), (PROSE, "2")):
        wake(store, goal, exit, result)

    assert evidence(store, goal) == [(4, "YIELDED", 0)]
    chosen = why(store, goal.id, wakeup=3)["ending"]
    assert (chosen["progress"], chosen["progress_by"]["results"]) == (1, 1)


def test_a_resume_leaves_no_evidence_behind(store: Store, goal: Goal) -> None:
    """What was evidence before a person had a look is none for what follows."""
    wake(store, goal, QUOTA)
    for _ in range(3):
        wake(store, goal, STUCK)
    assert [number for number, _, _ in evidence(store, goal)] == [2, 3, 4]

    resume_goal(store, now(store, goal))
    assert evidence(store, goal) == []
    wake(store, goal, PROSE)

    assert evidence(store, goal) == [(5, "YIELDED", 0)]
