"""What a server asks in the middle of a call, as a person reads it, and a person's answer as the server gets it."""

from __future__ import annotations

from typing import Any

import pytest
from mcp_types import ElicitRequestFormParams, ElicitRequestURLParams

from goalmode.tools.mcp_asking import Answers, Asked

SURE = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
TWO = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "of the branch"},
        "depth": {"type": "integer"},
        "kind": {"type": "string", "enum": ["soft", "hard"]},
    },
    "required": ["name"],
}


def form(schema: dict[str, Any], message: str = "Go on?") -> ElicitRequestFormParams:
    return ElicitRequestFormParams(message=message, requested_schema=schema)


def asked(**answers: str) -> Asked:
    return Asked("files", "delete", "a call", Answers(dict(answers)))


def session_of(question: Any) -> str:
    return asked().session(question)


@pytest.mark.parametrize(
    ("schema", "answer", "action", "content"),
    [
        (SURE, "yes", "accept", {"sure": True}),
        (SURE, " No ", "accept", {"sure": False}),
        (SURE, "是", "accept", {"sure": True}),
        (SURE, '{"sure": true}', "accept", {"sure": True}),
        (SURE, "decline", "decline", None),
        (SURE, "perhaps", "cancel", None),
        (SURE, '{"sure": "perhaps"}', "cancel", None),
        (SURE, '{"other": true}', "cancel", None),
        (SURE, "{}", "cancel", None),
        ({"properties": {"n": {"type": "integer"}}}, "3", "accept", {"n": 3}),
        ({"properties": {"n": {"type": "integer"}}}, "3.5", "cancel", None),
        ({"properties": {"n": {"type": "number"}}}, "3.5", "accept", {"n": 3.5}),
        ({"properties": {"n": {"type": "number"}}}, "many", "cancel", None),
        ({"properties": {"n": {"type": "string", "enum": ["a", "b"]}}}, "a", "accept", {"n": "a"}),
        ({"properties": {"n": {"type": "string", "enum": ["a", "b"]}}}, "c", "cancel", None),
        ({"properties": {"n": {"type": "array"}}}, '{"n": ["a", "b"]}', "accept", {"n": ["a", "b"]}),
        (TWO, '{"name": "x", "depth": 2}', "accept", {"name": "x", "depth": 2}),
        (TWO, '{"depth": 2}', "cancel", None),
        (TWO, "x", "cancel", None),
        ({}, "yes", "accept", {}),
        ({}, "no", "decline", None),
    ],
)
def test_an_answer_is_read_as_the_form_wants_it(
    schema: dict[str, Any], answer: str, action: str, content: Any
) -> None:
    """One that cannot be read is asked again, with what was said."""
    question = form(schema)
    asking = asked(**{session_of(question): answer})

    result = asking.answer(question)

    assert (result.action, result.content) == (action, content)
    assert (asking.open is None) is (action != "cancel")
    if asking.open is not None:
        assert f"The last answer could not be read: {answer.strip()}" in asking.open.action


def test_a_person_is_told_how_to_answer() -> None:
    """The server's words, then each field with its kind."""
    asking = asked()
    asking.answer(form(TWO, "Which branch?"))

    assert asking.open is not None
    assert asking.open.action == (
        "Which branch?\nAnswer with a JSON object of name (string): of the branch; depth (integer); "
        "kind (one of soft, hard); or decline."
    )
    assert asking.open.wait_reason == "the MCP server files asks in the middle of its tool delete"


def test_the_first_open_question_of_a_call_is_the_one_that_is_asked() -> None:
    """One at a time: the next is asked when the first is answered."""
    asking = asked()
    asking.answer(form(SURE, "First?"))
    asking.answer(form(SURE, "Second?"))

    assert asking.open is not None
    assert asking.open.action.startswith("First?")


def test_an_address_is_known_again_though_its_query_differs() -> None:
    """State and nonces are made anew each time; done is told as accepted."""
    first = ElicitRequestURLParams(message="Sign in.", url="https://id.example/a?state=1", elicitation_id="1")
    again = ElicitRequestURLParams(message="Sign in.", url="https://id.example/a?state=2", elicitation_id="2")

    assert session_of(first) == session_of(again)
    assert asked(**{session_of(first): "done"}).answer(again).action == "accept"


@pytest.mark.parametrize("other", [form(SURE, "Really?"), form(TWO)])
def test_another_question_has_another_session(other: ElicitRequestFormParams) -> None:
    """So no answer is given to what was not asked."""
    assert session_of(form(SURE)) != session_of(other)
    assert Asked("files", "delete", "other call", Answers()).session(form(SURE)) != session_of(form(SURE))
