"""What the journal keeps of a conversation, and of the repairs it needed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from goalmode.domain.messages import Assistant, Fix, FixKind, Message, ToolCall, ToolResult, User
from goalmode.errors import StoreUnreadable
from goalmode.state import reading_turns
from goalmode.state.journal import MAX_REPAIRS
from goalmode.state.said import messages_from_json, messages_to_json, reply_from_json, reply_to_json
from goalmode.state.store import Store
from tests.state.builders import claim, intent, new_goal, reply, rows

WHY = Fix(FixKind.CLOSED, 3, "shell (call_3) had no result")


def test_a_reply_and_what_followed_come_back_as_they_were() -> None:
    """Texts, calls and results; what a provider wanted back untouched stays with its wakeup."""
    said = Assistant("Hm.", (ToolCall("a", "shell", "{"),), {"thinking": "signed"})
    followed: list[Message] = [ToolResult("a", "shell", "ok"), User("Go on.")]

    assert reply_from_json(json.dumps(reply_to_json(said))) == replace(said, extra={})
    assert messages_from_json(json.dumps(messages_to_json(followed))) == tuple(followed)


def test_nothing_stored_is_nothing_said() -> None:
    """A body that was pruned reads as an empty text."""
    assert (reply_from_json(""), messages_from_json("")) == (Assistant(""), ())


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("{", "no JSON"),
        ("[]", r"\[\]"),
        ("7", "7"),
        ('{"text": 7}', "text is 7"),
        ('{"calls": {}}', "list of objects"),
        ('{"calls": [7]}', r"\[7\]"),
        ('{"calls": [{"id": "a", "name": "b"}]}', "arguments is None"),
        ("[" * 100_000, "no JSON"),
    ],
)
def test_a_reply_of_another_shape_is_named(text: str, named: str) -> None:
    """B144: never a KeyError, whatever a row holds."""
    with pytest.raises(StoreUnreadable, match=named):
        reply_from_json(text)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("{}", "another shape"),
        ('["a"]', "list of objects"),
        ('[{"role": "tool", "id": 7, "name": "a", "text": "b"}]', "id is 7"),
        ("[{}]", "text is None"),
    ],
)
def test_messages_of_another_shape_are_named(text: str, named: str) -> None:
    """B144: the field, and what it holds."""
    with pytest.raises(StoreUnreadable, match=named):
        messages_from_json(text)


def test_repairs_are_stored_with_the_turn(store: Store) -> None:
    """What was repaired in the conversation that a reply answers, and why; most turns have none."""
    goal = new_goal(store)
    claimed = claim(store, goal)
    intent(store, claimed, reply(), seq=1)
    intent(store, claimed, replace(reply(), fixes=(WHY,)), seq=2)

    with store.reading() as connection:
        plain, repaired = reading_turns.turns(connection, goal.id)

    assert (plain.repairs, rows(store, "SELECT repairs FROM turns WHERE seq = 1")) == ([], [None])
    assert repaired.repairs == [{"kind": "closed", "message": 3, "why": WHY.why}]


def test_so_many_repairs_and_no_more_are_stored(store: Store) -> None:
    """A conversation that is all wrong does not blow up its turn's row."""
    goal = new_goal(store)
    intent(store, claim(store, goal), replace(reply(), fixes=(WHY,) * (MAX_REPAIRS + 7)))

    with store.reading() as connection:
        [turn] = reading_turns.turns(connection, goal.id)

    assert len(turn.repairs) == MAX_REPAIRS
    assert turn.repairs[-1]["why"].endswith("(and 7 repairs more)")
