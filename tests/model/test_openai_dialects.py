"""What single chat servers want beyond the format: reasoning replayed, short ids, no user after a tool, and no
silently shortened prompt."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goalmode.domain.messages import (
    Assistant,
    Message,
    Reply,
    Request,
    System,
    ToolCall,
    ToolResult,
    Usage,
    User,
)
from goalmode.domain.profile import CallIds, ModelProfile
from goalmode.domain.signals import ErrorKind, StopReason
from goalmode.model.lint import lint
from goalmode.model.lint_dialects import lint_mistral, lint_reasoning
from goalmode.model.wire import openai_messages
from goalmode.model.wire.openai_dialects import SILENCE, adapted
from goalmode.model.wire.openai_stop import without_truncation
from goalmode.testing import steps
from goalmode.testing.steps import StubCall, text, tool, tools

from .conftest import Asked
from .test_classify import error, kind
from .test_messages import conversations

Ask = Callable[..., Asked]

PLAIN = ModelProfile("m", "openai", "m", "http://127.0.0.1/v1")
DEEPSEEK = replace(PLAIN, replay_reasoning=True)
MISTRAL = replace(PLAIN, call_ids=CallIds.MISTRAL, user_after_tool=False)


def sent(profile: ModelProfile, *messages: Message) -> list[dict[str, Any]]:
    body = openai_messages.body(Request(messages, (), 100), profile)
    found: list[dict[str, Any]] = json.loads(body)["messages"]
    return found


def called(*ids: str, thought: object = None) -> list[Message]:
    calls = tuple(ToolCall(i, "shell", "{}") for i in ids)
    extra = {} if thought is None else {"reasoning_content": thought}
    return [Assistant("", calls, extra), *(ToolResult(i, "shell", "ok") for i in ids)]


@pytest.mark.parametrize(("thought", "replayed"), [("hm", "hm"), ("", ""), (None, ""), (["odd"], "")])
def test_reasoning_goes_back_beside_calls_even_when_empty(thought: object, replayed: str) -> None:
    """DeepSeek and Kimi want reasoning_content beside every call, also where there was none."""
    messages = sent(DEEPSEEK, User("U"), *called("c", thought=thought))

    assert messages[1]["reasoning_content"] == replayed
    assert lint_reasoning(messages) == []


def test_reasoning_without_calls_goes_back_where_there_was_some() -> None:
    """A text keeps its reasoning; nothing is invented for one that had none."""
    some, none = (Assistant("A", (), extra) for extra in ({"reasoning_content": "hm"}, {}))

    assert sent(DEEPSEEK, User("U"), some)[1]["reasoning_content"] == "hm"
    assert "reasoning_content" not in sent(DEEPSEEK, User("U"), none)[1]


def test_reasoning_stays_here_without_the_flag() -> None:
    """Servers that never asked for it, and some that refuse it, do not get it."""
    assert "reasoning_content" not in sent(PLAIN, User("U"), *called("c", thought="hm"))[1]


def test_a_thinking_server_is_talked_to_for_many_turns(ask: Ask) -> None:
    """A server that refuses a call without reasoning_content takes the next request."""
    thinking = {"replay_reasoning": True, "also": lambda body: lint_reasoning(body["messages"])}
    first = ask([tool("shell", {}, reasoning="Hm.")], **thinking).reply
    more = Request((User("Go."), first.message(), ToolResult(first.calls[0].id, "shell", "ok")), (), 100)

    assert ask([text("Done.")], more, **thinking).reply.text == "Done."
    refused = ask([text("Done.")], more, also=thinking["also"]).error
    assert refused.kind is ErrorKind.PROTOCOL
    assert "reasoning_content" in refused.message


def test_mistral_gets_nine_letters_and_digits_on_both_sides() -> None:
    """Call and result carry the same short id; one of Mistral's own stays as it is."""
    messages = sent(MISTRAL, User("U"), *called("call_1", "D681PevKs"), *called("call_2"))
    calls = [c["id"] for m in messages for c in m.get("tool_calls", ())]

    assert calls == [m["tool_call_id"] for m in messages if m["role"] == "tool"]
    assert all(re.fullmatch("[A-Za-z0-9]{9}", i) for i in calls)
    assert (len(set(calls)), calls[1]) == (3, "D681PevKs")
    assert lint_mistral(messages) == []


def test_short_ids_do_not_change_as_the_conversation_grows() -> None:
    """What was sent before is sent again as it was, so that the prefix cache holds."""
    short = [User("U"), *called("call_1")]
    long = [*short, *called("call_2"), *called("call_3")]

    assert sent(MISTRAL, *long)[: len(short)] == sent(MISTRAL, *short)


def test_an_id_that_is_taken_is_not_given_twice() -> None:
    """A server's own id that equals one of ours is replaced, and its result with it."""
    [ours] = [c["id"] for m in sent(MISTRAL, User("U"), *called("call_1")) for c in m.get("tool_calls", ())]
    messages = sent(MISTRAL, User("U"), *called("call_1"), *called(ours))
    calls = [c["id"] for m in messages for c in m.get("tool_calls", ())]

    assert (calls[0], len(set(calls))) == (ours, 2)
    assert lint(messages) == lint_mistral(messages) == []


def test_mistral_hears_the_user_only_after_an_assistant() -> None:
    """Between a tool's result and the user's next word stands a reply that says nothing."""
    messages = sent(MISTRAL, User("U"), *called("c"), User("Go on."), User("Now."))

    assert [m["role"] for m in messages] == ["user", "assistant", "tool", "assistant", "user"]
    assert (messages[3]["content"], messages[4]["content"]) == (SILENCE, "Go on.\n\nNow.")


def test_a_mistral_server_is_talked_to(ask: Ask) -> None:
    """A server with Mistral's rules takes calls under useless ids, and the user's word after them."""
    rules = {
        "call_ids": CallIds.MISTRAL,
        "user_after_tool": False,
        "also": lambda body: lint_mistral(body["messages"]),
    }
    twins = tools([StubCall("shell", "{}", id=i) for i in ("", "x", "x", "Ab3dEf6hI")])
    first = ask([twins], **rules).reply
    results = (ToolResult(c.id, c.name, "ok") for c in first.calls)
    more = Request((User("Go."), first.message(), *results, User("And?")), (), 100)

    asked = ask([text("Done.")], more, **rules)
    assert (asked.reply.text, asked.stub.rejected) == ("Done.", [])
    assert ask([text("Done.")], more, also=rules["also"]).error.kind is ErrorKind.PROTOCOL


@settings(max_examples=200, deadline=None)
@given(conversations(), st.booleans(), st.booleans())
def test_every_conversation_fits_every_server(
    messages: list[Message], reasoning: bool, mistral: bool
) -> None:
    """Whatever a conversation holds, it is valid by the format's rules and by the server's own."""
    profile = replace(MISTRAL if mistral else PLAIN, replay_reasoning=reasoning)
    made = sent(profile, *messages)

    assert lint(made) == []
    assert not mistral or lint_mistral(made) == []
    assert not reasoning or lint_reasoning(made) == []


def test_adapting_changes_nothing_that_was_given() -> None:
    """The messages given are left as they are; a profile without flags gives them back."""
    messages = openai_messages.messages([User("U"), *called("call_1"), User("V")])
    before = copy.deepcopy(messages)

    adapted(messages, MISTRAL)

    assert messages == before == adapted(messages, PLAIN)


@pytest.mark.parametrize("found", [lint_mistral, lint_reasoning])
def test_the_servers_refusals_are_known(found: Callable[[list[dict[str, Any]]], list[str]]) -> None:
    """Each rule of these servers is told in their words, and understood as a fault of the conversation."""
    violations = found(sent(PLAIN, User("U"), *called("call_1"), User("V")))

    assert violations
    assert {ErrorKind.PROTOCOL} == {kind(400, error(said)) for said in violations}


def reply(input: int, *, stop: StopReason = StopReason.END_TURN, estimated: bool = False) -> Reply:
    return Reply(stop, "Done.", usage=Usage(input, 0, 0, 5, estimated))


TRUNCATED = {
    "filled to the brim": (reply(4095), 4500, True),
    "filled to the brim with calls": (reply(4095, stop=StopReason.TOOL_USE), 4500, True),
    "far less than was sent": (reply(2000), 9000, True),
    "all of it": (reply(3000), 3500, False),
    "a frugal tokenizer": (reply(2000), 3900, False),
    "a wasteful tokenizer": (reply(3000), 1500, False),
    "nothing reported": (reply(9000, estimated=True), 9000, False),
}


@pytest.mark.parametrize(("given_", "own", "is_truncated"), TRUNCATED.values(), ids=TRUNCATED)
def test_a_prompt_that_was_silently_cut_is_an_overflow(given_: Reply, own: int, is_truncated: bool) -> None:
    """A prompt that fills the window, or is far smaller than what was sent, has lost its head."""
    found = without_truncation(given_, own_tokens=own, window=4096)

    assert (found.stop is StopReason.CONTEXT_OVERFLOW) is is_truncated
    assert found == given_ or (found.usage, found.text) == (given_.usage, given_.text)
    assert is_truncated is ("4096" in found.stop_detail)


def test_ollama_is_caught_only_with_the_flag(ask: Ask) -> None:
    """The flag of the profile decides whether a prompt's reported size is doubted."""
    step = text("All done.", usage=steps.usage(4095, 3))
    window = {"window": 4096, "max_output": 100, "context_tokens": 1000}

    caught = ask([step], silent_truncation=True, **window).reply
    assert (caught.stop, caught.stop_raw) == (StopReason.CONTEXT_OVERFLOW, "stop")
    assert ask([step], **window).reply.stop is StopReason.END_TURN
    whole = text("All done.", usage=steps.usage(200, 3))
    long = Request((System("S"), User("word " * 2000)), (), 100)
    assert ask([whole], long, silent_truncation=True, **window).reply.stop is StopReason.CONTEXT_OVERFLOW
