"""The JSON action protocol: prompt in, object out, and from there on a call like any other."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goalmode.domain.messages import (
    Assistant,
    Message,
    Reply,
    Request,
    System,
    ToolCall,
    ToolResult,
    ToolSpec,
    User,
)
from goalmode.domain.signals import ErrorKind, StopReason
from goalmode.errors import ModelError, TemplateError
from goalmode.model.json_action import JsonActions, action_schema, read_action
from goalmode.model.scripted import ScriptedModel, Step, call, say
from goalmode.testing.steps import status, text
from tests.moments import a_moment

from .conftest import Asked

WRITE = ToolSpec(
    "write_file",
    "Create or replace a file.",
    {
        "type": "object",
        "properties": {"path": {"type": "string", "description": "Where."}, "content": {"type": "string"}},
        "required": ["path", "content"],
    },
)
COMPLETE = ToolSpec(
    "complete",
    "Claim the end.",
    {
        "type": "object",
        "properties": {
            "status": {"enum": ["success", "blocked"]},
            "evidence": {"type": "array", "items": {"type": "string"}},
            "more": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "required": ["status"],
    },
)
ACTION = '{"tool": "write_file", "arguments": {"path": "a", "content": "x"}}'


def talk(
    *steps: Step, messages: tuple[Message, ...] = (System("You work."), User("Go.")), lang: str = "en"
) -> Any:
    """The last reply, and every request that reached the model within."""
    inner = ScriptedModel(steps)

    async def run() -> Reply:
        model = JsonActions(inner, lang)
        reply = await model.complete(Request(messages, (WRITE, COMPLETE), 100))
        while len(inner.requests) < len(steps):
            reply = await model.complete(Request(messages, (WRITE, COMPLETE), 100))
        return reply

    return anyio.run(run), inner.requests


FORMS = {
    "plain": ACTION,
    "fenced": f"```json\n{ACTION}\n```",
    "prose around": f"I will write it.\n{ACTION}\nThen I look.",
    "a brace before": f"The set {{1, 2}} and {{x}}: {ACTION}",
    "another object before": f'{{"thought": "hm"}} {ACTION}',
    "two of them": f'{ACTION}\n{{"tool": "complete", "arguments": {{}}}}',
    "cut off after": f'{ACTION} {{"tool": "comp',
}


@pytest.mark.parametrize("said", FORMS.values(), ids=FORMS)
def test_an_action_is_a_call(said: str) -> None:
    """The first action object counts, plain, fenced or within prose."""
    reply, _ = talk(say(said))

    assert (reply.stop, len(reply.calls), reply.calls[0].name) == (StopReason.TOOL_USE, 1, "write_file")
    assert json.loads(reply.calls[0].arguments) == {"path": "a", "content": "x"}
    assert (reply.calls[0].id, reply.stop_raw) == ("call_1", "end_turn")


def test_prose_and_fence_around_an_action_are_told_apart() -> None:
    """What was said beside the action stays as text, without the fence."""
    assert read_action(f"Now:\n```json\n{ACTION}\n```\nDone.") == (
        ToolCall("", "write_file", '{"path": "a", "content": "x"}'),
        "Now:\n\nDone.",
    )


def test_a_reply_of_blank_lines_costs_no_more_than_its_length() -> None:
    """Constrained to JSON, a model may go on with white space until it is cut off."""
    with a_moment():
        found = read_action("\n" * 100_000 + ACTION + " " * 100_000)

    assert found is not None


@pytest.mark.parametrize(
    "said",
    [
        "",
        "All done.",
        "{}",
        '{"tool": 7, "arguments": {}}',
        '{"tool": "", "arguments": {}}',
        '{"name": "write_file"}',
        "[1, 2]",
        '{"tool": "write_file", "arguments": {"path": "a"',
        '{"outer": ' + ACTION + "}",
        "{" * 5000,
    ],
)
def test_anything_else_is_prose(said: str) -> None:
    """A reply without an action is an end of turn, however it is written."""
    reply, _ = talk(say(said))

    assert (StopReason.END_TURN, (), said) == (reply.stop, reply.calls, reply.text)


@pytest.mark.parametrize(
    ("arguments", "raw"),
    [
        ('"{\\"a\\": 1}"', '{"a": 1}'),
        ("[1]", "[1]"),
        ("null", "null"),
        ('{"a": "l1\nl2"}', '{"a": "l1\\nl2"}'),
    ],
)
def test_arguments_of_any_kind_reach_the_plan(arguments: str, raw: str) -> None:
    """What the arguments are is judged where native ones are; broken lines inside strings are mended."""
    reply, _ = talk(say(f'{{"tool": "write_file", "arguments": {arguments}}}'))

    assert raw == reply.calls[0].arguments


def test_an_action_without_arguments_has_none() -> None:
    """Left-out arguments are an empty object."""
    assert talk(say('{"tool": "complete"}'))[0].calls[0].arguments == "{}"


@pytest.mark.parametrize("stop", sorted(set(StopReason) - {"END_TURN", "STOP_SEQUENCE", "TOOL_USE"}))
def test_an_unfinished_reply_never_acts(stop: StopReason) -> None:
    """A cut, refused or failed reply stays what it is, even if its text parses (B84)."""
    reply, _ = talk(replace(say(ACTION, stop=stop), calls=call("complete").calls))

    assert (stop, ()) == (reply.stop, reply.calls)


def test_a_call_that_the_server_read_natively_is_kept() -> None:
    """Some servers turn the object into a tool call by themselves."""
    reply, _ = talk(call("complete", status="success"))

    assert (reply.stop, reply.calls[0].name) == (StopReason.TOOL_USE, "complete")


def test_the_prompt_names_each_tool_and_shows_the_form() -> None:
    """Instructions end the system message, short and concrete."""
    _, requests = talk(say("x"))

    said = requests[0].messages[0].text
    assert said.startswith(
        "You work.\n\nYou act only through tools. Answer with exactly one JSON object and nothing else.\n"
    )
    assert (
        "Tools:\n"
        "- write_file: Create or replace a file.\n"
        "  - path (string): Where.\n"
        "  - content (string)\n"
        "- complete: Claim the end.\n"
        '  - status ("success" | "blocked")\n'
        "  - evidence (list of string, optional)\n"
        "  - more (string, optional)\n"
        "\n"
        "Examples of answers to other goals:\n"
    ) in said
    assert [read_action(line) is not None for line in said.splitlines() if line.startswith("{")] == [True] * 3
    assert requests[0].tools == ()


def test_the_prompt_speaks_the_goals_language() -> None:
    """Chinese goals get Chinese instructions and results."""
    history = (
        User("做。"),
        Assistant("", (ToolCall("c", "write_file", "{}"),)),
        ToolResult("c", "write_file", "好"),
    )
    _, requests = talk(say("x"), messages=history, lang="zh")

    assert "每次只回答一个 JSON 对象" in requests[0].messages[0].text
    assert User("write_file 的结果：\n好") == requests[0].messages[-1]


def test_the_example_uses_a_tool_that_is_on_offer() -> None:
    """Without write_file the first tool is shown, with a value for each required argument."""
    inner = ScriptedModel([say("x")])
    anyio.run(JsonActions(inner, "en").complete, Request((User("Go."),), (COMPLETE,), 100))

    system = inner.requests[0].messages[0]
    assert isinstance(system, System)
    assert '{"tool": "complete", "arguments": {"status": "success"}}' in system.text


def test_a_conversation_becomes_plain_text() -> None:
    """Calls go back as the one object a reply may be, results as user messages; nothing in them is expanded (B71)."""
    history = (
        System("S"),
        User("Go."),
        Assistant("I write.", (ToolCall("c1", "write_file", '{"path": "{{ 7*7 }}"}'),)),
        ToolResult("c1", "write_file", "{{ 7*7 }} {% raw %} ${HOME}"),
        Assistant("Done."),
        User("Go on."),
    )
    _, requests = talk(say("x"), messages=history)

    assert requests[0].messages[1:] == (
        User("Go."),
        Assistant('{"tool": "write_file", "arguments": {"path": "{{ 7*7 }}"}}'),
        User("Result of write_file:\n{{ 7*7 }} {% raw %} ${HOME}"),
        Assistant("Done."),
        User("Go on."),
    )


def test_without_tools_nothing_is_explained_or_constrained() -> None:
    """A request that offers no tools goes through as it is."""
    inner = ScriptedModel([say("Hi.")])
    reply = anyio.run(JsonActions(inner, "en").complete, Request((User("Go."),), (), 100))

    assert (Request((User("Go."),), (), 100), "Hi.") == (inner.requests[0], reply.text)


def test_the_schema_allows_exactly_the_tools() -> None:
    """The server can hold the model to one object with a known name and that tool's arguments."""
    branches = action_schema((WRITE, COMPLETE))["anyOf"]

    assert isinstance(branches, list)
    assert [b["properties"]["tool"]["const"] for b in branches] == ["write_file", "complete"]
    assert WRITE.parameters == branches[0]["properties"]["arguments"]


def test_a_refused_schema_is_not_sent_again() -> None:
    """A server without `response_format` refuses once; the reply comes without it, and later requests too."""
    refusal = ModelError(ErrorKind.BAD_REQUEST, "response_format is not supported", status=400)
    _, requests = talk(refusal, say("a"), say("b"))

    assert [r.schema is not None for r in requests] == [True, False, False]


def test_a_schema_is_not_blamed_for_another_fault() -> None:
    """If the request fails without the schema too, that error counts and the schema is tried again."""
    bad = ModelError(ErrorKind.BAD_REQUEST, "no such model", status=400)
    inner = ScriptedModel([bad, bad, say(ACTION)])
    model = JsonActions(inner, "en")
    request = Request((User("Go."),), (WRITE,), 100)

    with pytest.raises(ModelError):
        anyio.run(model.complete, request)
    anyio.run(model.complete, request)

    assert [r.schema is not None for r in inner.requests] == [True, False, True]


@pytest.mark.parametrize("kind", sorted(set(ErrorKind) - {"BAD_REQUEST"}))
def test_other_errors_are_not_the_schemas(kind: ErrorKind) -> None:
    """Only a bad request is asked again without the schema."""
    with pytest.raises(ModelError):
        talk(ModelError(kind, "x", status=400))


def test_an_unknown_language_is_a_template_error() -> None:
    """There is no falling back to another language."""
    with pytest.raises(TemplateError, match="xx/json_actions"):
        JsonActions(ScriptedModel([]), "xx")


def test_ids_do_not_repeat_over_turns() -> None:
    """Each action gets an id that is new in the conversation."""
    history = (
        User("Go."),
        Assistant("", (ToolCall("call_2", "write_file", "{}"),)),
        ToolResult("call_2", "write_file", ""),
    )
    reply, _ = talk(say(ACTION), messages=history)

    assert reply.calls[0].id not in {"", "call_2"}


def test_over_the_wire_it_is_an_ordinary_conversation(ask: Callable[..., Asked]) -> None:
    """A strict server accepts it: no tools, a response format, and on refusal none."""
    refused = status(400, {"error": {"message": "response_format is not supported"}})
    asked = ask([refused, text(ACTION)], wrap=lambda model: JsonActions(model, "en"))

    assert (asked.reply.calls[0].name, asked.stub.rejected) == ("write_file", [])
    assert ["response_format" in seen.body for seen in asked.stub.requests] == [True, False]
    assert all("tools" not in seen.body for seen in asked.stub.requests)


_WORDS = st.text(st.characters(exclude_characters="␀", exclude_categories=["Cs"]))  # what NUL is shown as


@given(st.text(st.characters()), st.dictionaries(_WORDS, _WORDS, max_size=3), st.text())
def test_any_action_survives_any_surroundings_without_braces(
    before: str, arguments: dict[str, str], after: str
) -> None:
    """Prose without an opening brace never hides or changes an action."""
    action = json.dumps({"tool": "t", "arguments": arguments})
    found = read_action(before.replace("{", "") + action + after)

    assert found is not None
    assert arguments == {
        k.replace("␀", "\0"): v.replace("␀", "\0") for k, v in json.loads(found[0].arguments).items()
    }
