"""The Responses wire against a real server on loopback: how replies, errors and cut streams come out."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from typing import Any

import aiohttp
import anyio
import pytest

from goalmode.domain.messages import Reply, Request, System, ToolResult, Usage, User
from goalmode.domain.profile import ModelProfile
from goalmode.domain.signals import ErrorKind, StopReason
from goalmode.errors import ModelError
from goalmode.model.json_action import JsonActions
from goalmode.model.wire import exchange
from goalmode.model.wire.openai_responses import OpenAIResponses
from goalmode.model.wire.responses_messages import EXTRA
from goalmode.testing import steps
from goalmode.testing.steps import Completion, StubCall, cut, error_chunk, raw, status, text, tool, tools
from goalmode.testing.stub import Stub

from .conftest import Asked
from .scripted_session import ScriptedSession
from .test_openai_chat import EVENTS, JSON

Ask = Callable[..., Asked]

S, K = StopReason, ErrorKind


@pytest.fixture
def respond(ask: Ask) -> Ask:
    return partial(ask, wire="openai-responses")


async def _break() -> None:
    raise aiohttp.ClientPayloadError("gone")


def events(*sent: Any) -> steps.Raw:
    return raw(EVENTS + b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in sent))


def test_text_and_calls_arrive_with_all_that_is_known_of_them(respond: Ask) -> None:
    """A streamed reply has its ending, usage, model and status."""
    step = tools([("shell", {"command": "ls"}), ("read_file", '{"path": "a"}')], "Looking. 你好")
    asked = respond([replace(step, usage=steps.usage(1000, 50, cached=800))])
    reply = asked.reply

    assert (reply.stop, reply.stop_raw, reply.text) == (S.TOOL_USE, "completed", "Looking. 你好")
    assert [(c.name, c.arguments) for c in reply.calls] == [
        ("shell", '{"command": "ls"}'),
        ("read_file", '{"path": "a"}'),
    ]
    assert Usage(1000, 800, 0, 50) == reply.usage
    assert (reply.provider, reply.model, reply.http_status) == ("openai-responses", "m", 200)
    assert asked.stub.rejected == []


@pytest.mark.parametrize(
    ("step", "stop", "word"),
    [
        (text("Hi."), S.END_TURN, "completed"),
        (text(""), S.END_TURN, "completed"),
        (tool("shell", {}), S.TOOL_USE, "completed"),
        (text("Half", finish="length"), S.MAX_TOKENS, "incomplete/max_output_tokens"),
        (tool("shell", {"a": 1}, finish="length"), S.MAX_TOKENS, "incomplete/max_output_tokens"),
        (text("Half", finish="max_messages"), S.MAX_TOKENS, "incomplete/max_messages"),
        (text("No.", finish="content_filter"), S.CONTENT_FILTER, "incomplete/content_filter"),
        (text("Wait", finish="steered"), S.PAUSE, "incomplete/steered"),
        (text("", refusal="I cannot."), S.REFUSAL, "completed"),
        (text("Some", refusal="then no."), S.REFUSAL, "completed"),
        (text("x", finish="cancelled"), S.CANCELLED, "cancelled"),
        (text("", finish="queued"), S.PAUSE, "queued"),
        (text("", finish="in_progress"), S.PAUSE, "in_progress"),
        (text("x", finish="banana"), S.UNKNOWN, "banana"),
        (text("x", extra={"status": "failed", "error": None}), S.PROVIDER_ERROR, "failed"),
    ],
)
def test_endings_that_are_reported_are_replies(
    respond: Ask, step: Completion, stop: StopReason, word: str
) -> None:
    """Whatever OpenAI reports is a reply with its word kept, never an exception."""
    reply = respond([step]).reply

    assert (stop, word) == (reply.stop, reply.stop_raw)


def test_a_refusal_has_its_words(respond: Ask) -> None:
    """A refusal's explanation is the reply's detail."""
    assert respond([text("", refusal="I cannot.")]).reply.stop_detail == "I cannot."


CUTS = {
    "half the text": cut(text("A long sentence that never ends"), after_chars=10),
    "before a word": cut(text("A long sentence"), after_chars=0),
    "inside arguments": cut(tool("shell", {"command": "rm -rf build"}), after_chars=12),
    "after a whole call": cut(tool("shell", {}), after_chars=2),
    "no last event": text("Looks complete.", done=False),
    "no reason": text("Looks complete.", finish=None),
    "an empty stream": events(),
    "nothing at all": raw(EVENTS),
    "half an event": raw(EVENTS + b'data: {"type": "response.output_text.del'),
    "no JSON": raw(EVENTS + b"data: oops\n\n"),
    "chat's end": raw(EVENTS + b"data: [DONE]\n\n"),
    "an empty body": raw(JSON),
    "half a body": raw(JSON + b'{"object": "respon'),
}


@pytest.mark.parametrize("step", CUTS.values(), ids=CUTS)
def test_a_reply_without_an_ending_is_a_cut_stream(respond: Ask, step: steps.Step) -> None:
    """However it comes about, what has no last event is no answer, and its cost is known (B17, B87)."""
    error = respond([step]).error

    assert error.kind is K.STREAM_CUT
    assert error.usage is not None
    assert error.usage.input > 0


LAST = {"type": "response.completed", "response": {"status": "completed", "output": []}}


def test_what_follows_the_last_event_is_not_read(respond: Ask) -> None:
    """After the last event the reply is whole, whatever else comes."""
    assert respond([events(LAST, "oops", {"type": "error", "message": "x"})]).reply.stop is S.END_TURN


@pytest.mark.parametrize("then", [anyio.sleep_forever, _break], ids=["silence", "a broken connection"])
def test_what_the_connection_does_after_the_last_event_does_not_matter(
    request_: Request, monkeypatch: pytest.MonkeyPatch, then: Callable[[], Any]
) -> None:
    """A server that keeps the connection open, or breaks it off, after the last event has answered."""
    monkeypatch.setattr(exchange, "DRAIN_SECONDS", 0.01)

    async def pieces() -> AsyncIterator[bytes]:
        yield b"data: " + json.dumps(LAST).encode() + b"\n\n"
        await then()

    async def run() -> Reply:
        profile = ModelProfile("m", "openai-responses", "m", "http://example.invalid/v1")
        session: Any = ScriptedSession(pieces)
        return await OpenAIResponses(profile, None, client=session).complete(request_)

    assert anyio.run(run).stop is S.END_TURN


ERRORS = {
    "event": (error_chunk({"message": "x", "code": "server_error"}, "Half"), K.SERVER),
    "overloaded": (error_chunk({"message": "Overloaded", "type": "overloaded_error"}, "Half"), K.OVERLOADED),
    "overflow": (
        error_chunk({"message": "Your input exceeds the context window of this model.", "code": None}),
        K.CONTEXT_OVERFLOW,
    ),
    "failed": (text("Half", finish="failed"), K.SERVER),
    "failed by policy": (
        text("", finish="failed", extra={"error": {"code": "bio_policy", "message": "x"}}),
        K.POLICY,
    ),
    "failed for good": (
        text("", finish="failed", extra={"error": {"code": "data_residency_mismatch", "message": "x"}}),
        K.BAD_REQUEST,
    ),
    "failed for now": (
        text("", finish="failed", extra={"error": {"code": "rate_limit_exceeded", "message": "x"}}),
        K.RATE_LIMIT,
    ),
    "body": (status(200, {"error": {"message": "x", "code": "context_length_exceeded"}}), K.CONTEXT_OVERFLOW),
    "page": (status(200, "<html>", {"content-type": "text/html"}), K.SERVER),
    "400": (status(400, {"error": {"code": "context_length_exceeded"}}), K.CONTEXT_OVERFLOW),
    "401": (status(401, {"error": {"code": "invalid_api_key", "message": "x"}}), K.AUTH),
    "404": (status(404, {"error": {"code": "model_not_found", "message": "x"}}), K.NOT_FOUND),
    "429": (status(429, {"error": {"code": "insufficient_quota", "message": "x"}}), K.QUOTA),
    "seal": (status(400, {"error": {"code": "invalid_encrypted_content", "message": "x"}}), K.SIGNATURE),
}


@pytest.mark.parametrize(("step", "kind"), ERRORS.values(), ids=ERRORS)
def test_errors_are_found_wherever_they_are(respond: Ask, step: steps.Step, kind: ErrorKind) -> None:
    """Status, body, event or failed response: an error is an error of its own kind (B61, B98)."""
    assert kind is respond([step]).error.kind


def test_a_failed_response_costs_what_it_says(respond: Ask) -> None:
    """What a failed response used is charged as reported, not estimated."""
    assert respond([text("", finish="failed", usage=steps.usage(90, 7))]).error.usage == Usage(90, 0, 0, 7)


@pytest.mark.parametrize("after", [None, 4])
def test_silence_is_a_timeout(respond: Ask, after: int | None) -> None:
    """A server that says nothing for too long has failed, before the first word or after."""
    step = steps.stall(text("Hello there"), threading.Event(), after_chars=after)
    error = respond([step], timeout_seconds=0.2).error

    assert error.kind is K.TIMEOUT
    assert (error.usage is not None) is (after is not None)


def test_a_server_that_does_not_stream_is_understood(respond: Ask) -> None:
    """One JSON body in answer to a request for a stream is a whole reply."""
    output = [{"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}]
    body = {
        "object": "response",
        "status": "completed",
        "output": output,
        "usage": {"input_tokens": 9, "output_tokens": 2},
    }
    reply = respond([status(200, body)]).reply

    assert (reply.text, reply.usage, reply.stop) == ("Hi", Usage(9, 0, 0, 2), S.END_TURN)


def test_reasoning_goes_back_until_the_conversation_ends() -> None:
    """Encrypted reasoning is replayed in front of the calls it led to, turn after turn, and the server takes it."""

    def rule(body: Any, number: int) -> steps.Step:
        return tools(
            [("shell", {"n": number}), ("shell", {"n": -number})], f"Turn {number}.", reasoning="Hm."
        )

    async def talk(stub: Stub) -> list[Any]:
        model = OpenAIResponses(ModelProfile("m", "openai-responses", "m", stub.base_url), None)
        conversation: list[Any] = [System("You work."), User("Go on.")]
        for _ in range(3):
            reply = await model.complete(Request(tuple(conversation), (), 500))
            conversation += [reply.message(), *(ToolResult(c.id, c.name, "ok") for c in reply.calls)]
        await model.aclose()
        return conversation

    with Stub(rule) as stub:
        anyio.run(talk, stub)

    assert stub.rejected == []
    sent = stub.requests[2].body["input"]
    assert [item["type"] for item in sent][2:] == [
        "reasoning",
        "message",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
    ] * 2
    assert [item["id"] for item in sent if item["type"] == "reasoning"] == ["rs_0", "rs_1"]


def test_reasoning_of_another_model_is_not_sent(respond: Ask) -> None:
    """The conversation goes on with another model as text and calls: nothing sealed, and no item ids."""
    [first] = respond([tool("shell", {}, reasoning="Hm.")]).outcomes
    assert not isinstance(first, ModelError)
    message = replace(first.message(), extra={EXTRA: {**_extra(first), "model": "another"}})
    more = Request((User("Go."), message, ToolResult(first.calls[0].id, "shell", "ok")), (), 100)

    asked = respond([text("Done.")], more)

    assert asked.stub.rejected == []
    assert [item["type"] for item in asked.stub.requests[0].body["input"]] == [
        "message",
        "function_call",
        "function_call_output",
    ]


def _extra(reply: Any) -> dict[str, Any]:
    found: dict[str, Any] = reply.extra[EXTRA]
    return found


NO_REASONING = status(
    400,
    {
        "error": {
            "message": "Encrypted content is not supported with this model.",
            "type": "invalid_request_error",
            "param": "include",
            "code": None,
        }
    },
)


def test_a_model_that_does_not_reason_is_asked_without(respond: Ask) -> None:
    """A model that refuses to be asked for reasoning is asked again without, once and for all."""
    asked = respond([NO_REASONING, text("Hi."), text("Ho.")], times=2)

    assert [getattr(o, "text", o) for o in asked.outcomes] == ["Hi.", "Ho."]
    assert ["include" in seen.body for seen in asked.stub.requests] == [True, False, False]


def test_other_refusals_are_not_tried_again(respond: Ask) -> None:
    """Only that refusal is answered by leaving something out; a second one is the error it is."""
    other = status(400, {"error": {"message": "Unsupported parameter: 'temperature'"}})

    assert respond([other, text("x")]).error.kind is K.BAD_REQUEST
    assert respond([NO_REASONING, NO_REASONING]).error.kind is K.BAD_REQUEST


def test_ids_are_unique_over_the_whole_conversation(respond: Ask) -> None:
    """A model that names each call `x`, or not at all, gets a conversation any server accepts (B80)."""
    twins = [StubCall("shell", "{}", id="x"), StubCall("shell", "{}", id="x"), StubCall("shell", "{}", id="")]

    assert [c.id for c in respond([tools(twins)]).reply.calls] == ["x", "call_1", "call_2"]


def test_the_json_action_protocol_works_over_it(respond: Ask) -> None:
    """A model without native calls is held to the schema by `text.format`, and its object is a call."""
    action = text('{"tool": "shell", "arguments": {"command": "ls"}}')
    asked = respond([action], wrap=JsonActions)

    assert [(c.name, c.arguments) for c in asked.reply.calls] == [("shell", '{"command": "ls"}')]
    body = asked.stub.requests[0].body
    assert body["text"]["format"]["type"] == "json_schema"
    assert "tools" not in body


def test_the_key_is_a_bearer_token(respond: Ask) -> None:
    """The key travels as OpenAI wants it."""
    asked = respond([text("Hi.")], key="sk-1")

    assert asked.stub.requests[0].headers["authorization"] == "Bearer sk-1"
    assert asked.stub.requests[0].path == "/v1/responses"
