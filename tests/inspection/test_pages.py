"""Lists of many: a page costs the same however many there are, and what is unreadable hides nothing else."""

from __future__ import annotations

import pytest

from goalmode.domain.goal import Goal
from goalmode.inspection.listing import UNREADABLE, listing
from goalmode.inspection.questions import open_everywhere
from goalmode.inspection.timeline import timeline, wakeups
from goalmode.state import goals
from goalmode.state.store import Store
from tests.orchestrator.builders import GO_ON, begin, turn
from tests.state.builders import rows

COLUMNS = (
    "objective, workspace, revision, limits_rev, wrapped_limits_rev, limits, settings, status, status_detail, control,"
    " fence, wake_reason, host_label, movement, spent_turns, spent_wakeups, spent_input, spent_cached,"
    " spent_cache_write, spent_output, spent_active_ms, streak, failures, obstacles, created_at, updated_at"
)


@pytest.mark.sqlite
def test_a_list_of_ten_thousand_goals_is_paged(
    store: Store, goal: Goal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the goals of the page are read."""
    series = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)"
    rows(store, f"INSERT INTO goals (uid, {COLUMNS}) {series} SELECT 'g' || i, {COLUMNS} FROM goals, n")
    read: list[int] = []
    real = goals.read
    monkeypatch.setattr(goals, "read", lambda connection, one: read.append(one) or real(connection, one))

    assert [row["id"] for row in listing(store, limit=3, offset=9_998)] == ["g2", "g1", goal.uid]
    assert len(read) == 3


def test_pages_of_wakeups_meet(store: Store, goal: Goal) -> None:
    """Newest first by the page, oldest first on it; none twice and none left out."""
    for number in range(5):
        wake = begin(store, goal, only_if_due=False)
        for _ in range(number % 2 + 1):
            turn(wake, prefix=f"{number}-{_}-")
        wake.close(GO_ON)

    pages = [timeline(store, goal.id, limit=2, offset=n)["wakeups"] for n in (0, 2, 4, 6)]

    assert [[w["seq"] for w in page] for page in pages] == [[4, 5], [2, 3], [1], []]
    assert [(w["seq"], w["turns"], w["calls"]) for w in wakeups(store, goal.id, limit=2)] == [
        (4, 2, 2),
        (5, 1, 1),
    ]
    assert timeline(store, goal.id, limit=2)["wakeups_in_all"] == 5


@pytest.mark.sqlite
def test_one_unreadable_question_hides_no_other(store: Store, goal: Goal) -> None:
    """B144: it is marked with what is wrong, under its goal; the others are listed as usual."""
    columns = 'kind, status, text, why, options, "default", session_id, answer, answered_by, asked_at'
    values = "'input', 'open', 'Which?', '', '[]', '', '', '', '', '2030-01-01 00:00:00'"
    for number in (1, 2):
        rows(
            store,
            f"INSERT INTO questions (goal, number, wakeup, {columns}) VALUES (1, {number}, 1, {values})",
        )
    rows(store, "UPDATE questions SET answered_by = 'cat' WHERE number = 2")

    good, bad = open_everywhere(store)

    assert (good["id"], good["status"]) == ("Q1", "open")
    assert (bad["goal"], bad["status"]) == (goal.uid, UNREADABLE)
    assert "question.answered_by is 'cat'" in bad["text"]
