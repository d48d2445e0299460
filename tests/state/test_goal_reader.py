"""A goal that is read again and again is always the goal as it is stored."""

from __future__ import annotations

import pytest

from goalmode.domain.contract import ProtectedFile, Requirement
from goalmode.errors import StoreUnreadable, UnknownGoal
from goalmode.state import goals, notes
from goalmode.state.goal_reader import GoalReader
from goalmode.state.store import Store
from goalmode.testing import ManualClock
from tests.state.builders import claim, new_goal, rows, take_turn

CHANGES = (
    "UPDATE goals SET control = 'pause'",
    "UPDATE goals SET revision = 2, objective = 'Write another one.'",
    "UPDATE goals SET limits_rev = 7, movement = movement",
    "UPDATE goals SET spent_turns = 12, spent_active_ms = 1500",
    "UPDATE goals SET spent_cost_micro = 3, updated_at = created_at",
    "UPDATE requirements SET status = 'passed', basis = 'seen'",
    "UPDATE deliverables SET sha_verified = 'ab'",
    "UPDATE protected_files SET sha256 = 'cd'",
    "DELETE FROM deliverables",
)


def test_whatever_changes_is_seen(store: Store) -> None:
    """By whom ever, and in which of a goal's tables."""
    goal = new_goal(store, requirements=(Requirement("R1", "done"),), deliverables=("a.md", "b.md"))
    with store.writing() as connection:
        goals.write_protected(connection, goal.id, (ProtectedFile("t.py", "ab", "user", goal.created_at),))
    reader = GoalReader(goal.id)
    seen = [goal]

    for change in (None, *CHANGES):
        if change is not None:
            rows(store, change)
        with store.reading() as connection:
            found = reader.read(connection)
            assert found == goals.read(connection, goal.id) == reader.read(connection)
        if change is not None:
            assert found != seen[-1], change
        seen.append(found)


def test_what_turns_change_is_all_that_they_make_read(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Totals and times of turns; a note is read as soon as it is there."""
    goal = new_goal(store)
    claimed = claim(store, goal)
    reader = GoalReader(goal.id)
    read, whole = goals.read, []
    monkeypatch.setattr(goals, "read", lambda *given: whole.append(given) or read(*given))

    for turn in range(1, 4):
        clock.advance(1)
        take_turn(store, claimed, seq=turn)
        with store.reading() as connection:
            found = reader.read(connection)
            assert found == read(connection, goal.id)
        assert (found.spent.turns, len(whole)) == (turn, 1)

    with store.writing() as connection:
        notes.post(store, connection, goal.id, "note", "Also in English.", clock.now())
    with store.reading() as connection:
        assert reader.read(connection).inbox_head > goal.inbox_head
    assert len(whole) == 2


def test_a_total_that_is_none_and_a_goal_that_is_gone_are_told(store: Store) -> None:
    """As everywhere else."""
    goal = new_goal(store)
    reader = GoalReader(goal.id)
    with store.reading() as connection:
        reader.read(connection)

    if store.path is not None:
        rows(store, "UPDATE goals SET spent_input = 'many'")
        with store.reading() as connection, pytest.raises(StoreUnreadable, match="spent_input"):
            reader.read(connection)
    rows(store, "DELETE FROM goals")
    with store.reading() as connection, pytest.raises(UnknownGoal):
        reader.read(connection)
