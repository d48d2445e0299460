"""Rows of another shape: known deviations get defaults, all others make one goal unreadable, by the field's name."""

from __future__ import annotations

import json
from typing import Any

import pytest

from goalmode.domain.budget import Limits
from goalmode.domain.goal import GoalSettings
from goalmode.domain.work import StatePatch, WorkState, apply
from goalmode.errors import StoreUnreadable
from goalmode.state import bodies, goals, snapshot
from goalmode.state.goals import Unreadable
from goalmode.state.store import Store
from tests.state.builders import claim, close, intent, new_goal, outcome, record, reply, rows


def rewrite(store: Store, column: str, **changes: Any) -> None:
    """Change fields of the first goal's JSON column; the value `...` removes one."""
    [stored] = rows(store, f"SELECT {column} FROM goals WHERE id = 1")
    value = json.loads(stored) | changes
    kept = {k: v for k, v in value.items() if v is not ...}
    rows(store, f"UPDATE goals SET {column} = ? WHERE id = 1", json.dumps(kept))


def problem(store: Store) -> str:
    """What is said of the first goal when it is loaded; a second goal beside it is as readable as before."""
    sound = new_goal(store, "Another goal.")
    with pytest.raises(StoreUnreadable) as caught:
        goals.get(store, 1)
    listed = goals.every(store)
    assert [goal.uid for goal in listed] == [sound.uid, rows(store, "SELECT uid FROM goals WHERE id = 1")[0]]
    assert listed[0] == sound
    assert listed[1] == Unreadable(listed[1].uid, str(caught.value))
    return str(caught.value)


MOVEMENT = {
    "name": "a",
    "instruction": "x",
    "instruction_template": "",
    "tools": None,
    "default_next": "ABORT",
    "end_turn": "nudge",
}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("turns", "10"),
        ("turns", 2.5),
        ("turns", -1),
        ("turns", True),
        ("wakeups", []),
        ("tokens", "many"),
        ("active_seconds", "3h"),
        pytest.param("active_seconds", float("nan"), marks=pytest.mark.sqlite),
        pytest.param("active_seconds", float("inf"), marks=pytest.mark.sqlite),
        ("deadline", "tomorrow"),
        ("deadline", "2030-01-01T00:00:00"),
        ("deadline", 5),
        ("deadline", "9999-12-31T23:59:59-05:00"),
    ],
)
def test_a_limit_that_is_no_number_is_never_unlimited(store: Store, field: str, value: object) -> None:
    """B25: the field is named, and the goal is not run."""
    new_goal(store, limits=Limits(turns=5, tokens=100))
    rewrite(store, "limits", **{field: value})

    assert f"limits.{field}" in problem(store)


@pytest.mark.parametrize("text", ["12", "unlimited", '"text"', "[]", "{", "null"])
@pytest.mark.sqlite
def test_a_column_that_holds_no_object_is_named(store: Store, text: str) -> None:
    """B25: text instead of the whole JSON value."""
    new_goal(store)
    rows(store, "UPDATE goals SET limits = ? WHERE id = 1", text)

    assert "limits is" in problem(store)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("max_turns", "180"),
        ("max_turns", None),
        ("early_turns", 1.5),
        ("policy", "remember"),
        ("tools", "shell"),
        ("tools", [1]),
        ("context_tokens", "4k"),
        ("work_window", "4k"),
        ("until_budget", "yes"),
        ("lang", 1),
        ("workflow", "polish"),
        ("workflow", {}),
        ("workflow", {"name": "w", "start": "a", "movements": []}),
        ("workflow", {"name": "w", "start": "a", "movements": [{"name": "a"}]}),
        ("workflow", {"name": "w", "start": "a", "movements": [MOVEMENT | {"tools": [1]}]}),
        ("workflow", {"name": "w", "start": "a", "movements": [MOVEMENT | {"end_turn": "sing"}]}),
        ("workflow", {"name": "w", "start": "a", "movements": [MOVEMENT | {"default_next": "b"}]}),
        ("workflow", {"name": "w", "start": "a", "movements": [MOVEMENT | {"verifies": "yes"}]}),
    ],
)
def test_a_setting_of_another_type_is_named(store: Store, field: str, value: object) -> None:
    """B144: a number as text, an unknown word, a text where a list belongs."""
    new_goal(store)
    rewrite(store, "settings", **{field: value})

    assert f"settings.{field}" in problem(store)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("status", "SLEEPING"),
        ("control", "hold"),
        ("spent_turns", "many"),
        ("spent_input", -5),
        ("streak", 1.5),
        ("movement", "nowhere"),
        ("created_at", "yesterday"),
        ("next_wakeup_at", "soon"),
    ],
)
@pytest.mark.sqlite
def test_an_unknown_word_or_number_in_a_column_is_named(store: Store, column: str, value: object) -> None:
    """B144: words of a newer goalmode, numbers that are none, times that are none."""
    new_goal(store)
    rows(store, "PRAGMA ignore_check_constraints = ON")
    with store.writing() as connection:
        connection.exec_driver_sql("PRAGMA ignore_check_constraints = ON")
        connection.exec_driver_sql(f"UPDATE goals SET {column} = ? WHERE id = 1", (value,))

    assert str(value) in problem(store)


def test_missing_fields_get_their_defaults(store: Store) -> None:
    """B144: a limit that is not there is not set; a setting that is not there is the usual one."""
    new_goal(store, limits=Limits(turns=5, tokens=9), settings=GoalSettings(max_turns=7, lang="zh"))
    rewrite(store, "limits", tokens=...)
    rewrite(store, "settings", max_turns=..., v=...)

    goal = goals.get(store, 1)

    assert goal.limits == Limits(turns=5)
    assert goal.settings == GoalSettings(lang="zh")


def test_unknown_extra_fields_survive_a_write(store: Store) -> None:
    """B144: what a newer goalmode put there is still there after this one raised a limit."""
    goal = new_goal(store, limits=Limits(turns=5))
    rewrite(store, "limits", energy=3)
    rewrite(store, "settings", mood="calm")

    goals.make_due(store, goal, now=store.clock.now(), reason="resumed", limits=Limits(turns=9))

    assert goals.get(store, 1).limits == Limits(turns=9)
    [(limits, settings)] = rows(store, "SELECT limits, settings FROM goals")
    assert (json.loads(limits)["energy"], json.loads(settings)["mood"]) == (3, "calm")


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("UPDATE work_items SET kind = 'idea'", "work_item.kind"),
        ("UPDATE tool_calls SET outcome = 'maybe'", "tool_call.outcome"),
        ("UPDATE wakeups SET exit_reason = 'BORED'", "exit_reason"),
        ("UPDATE checkpoints SET body = 'torn'", "checkpoint"),
    ],
)
@pytest.mark.sqlite
def test_an_unknown_shape_in_the_history_is_named(store: Store, statement: str, name: str) -> None:
    """B144: the goal is listed, and waking it says which field is not understood."""

    goal = new_goal(store)
    claimed = claim(store, goal)
    work = apply(WorkState(), StatePatch(key_info="k", done=("a",)), wakeup=1)
    outcome(store, claimed, intent(store, claimed, reply("save")), record("c0"), work=work)
    close(store, claimed)
    with store.writing() as connection:
        connection.exec_driver_sql("PRAGMA ignore_check_constraints = ON")
        connection.exec_driver_sql(statement)

    with pytest.raises(StoreUnreadable, match=name):
        snapshot.snapshot(store, goal.id, now=store.clock.now())
    assert goals.every(store) == [goals.get(store, goal.id)]


def test_a_pruned_body_leaves_an_empty_text(store: Store) -> None:
    """Bodies may go; the rows that point to them stay readable."""

    with store.reading() as connection:
        assert bodies.get_one(connection, 4711) == ""
        assert bodies.get_one(connection, None) == ""
