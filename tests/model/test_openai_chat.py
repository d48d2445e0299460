"""The wire against a real server on loopback: how replies, errors and cut streams come out."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import anyio
import pytest
from yarl import URL

from goalmode.domain.messages import Request, ToolCall, Usage, User
from goalmode.domain.profile import ModelProfile
from goalmode.domain.signals import ErrorKind, StopReason
from goalmode.errors import ModelError
from goalmode.model.proxy import proxy_for
from goalmode.model.wire import assembly
from goalmode.model.wire.exchange import rough_tokens
from goalmode.model.wire.openai_chat import OpenAIChat
from goalmode.testing import steps
from goalmode.testing.steps import Completion, StubCall, cut, error_chunk, raw, status, text, tool, tools
from goalmode.testing.stub import Stub

from .conftest import Asked
from .scripted_session import sent_to

Ask = Callable[..., Asked]

EVENTS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
JSON = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n"


def events(*chunks: Any, end: bytes = b"data: [DONE]\n\n") -> steps.Raw:
    lines = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)
    return raw(EVENTS + lines + end)


def delta(finish: str | None = None, **fields: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]}


def test_text_and_calls_arrive_with_all_that_is_known_of_them(ask: Ask) -> None:
    """A streamed reply has its ending, usage, model and status."""
    step = tools([("shell", {"command": "ls"}), ("read_file", '{"path": "a"}')], "Looking. 你好")
    reply = ask([replace(step, usage=steps.usage(1000, 50, cached=800))]).reply

    assert (reply.stop, reply.stop_raw, reply.text) == (StopReason.TOOL_USE, "tool_calls", "Looking. 你好")
    assert [(c.name, c.arguments) for c in reply.calls] == [
        ("shell", '{"command": "ls"}'),
        ("read_file", '{"path": "a"}'),
    ]
    assert Usage(1000, 800, 0, 50) == reply.usage
    assert reply.usage.tokens == 250
    assert (reply.provider, reply.model, reply.http_status) == ("openai", "m", 200)


def test_every_request_is_accepted_and_the_connection_kept(ask: Ask, connections: list[Any]) -> None:
    """Ten turns use one connection and break no rule."""
    asked = ask([text("Hi.")], forever=True, times=10)

    assert asked.stub.rejected == []
    assert {StopReason.END_TURN} == {o.stop for o in asked.outcomes if not isinstance(o, ModelError)}
    assert len(connections) == 1


@pytest.mark.parametrize(
    ("step", "stop", "raw_word"),
    [
        (text("Half", finish="length"), StopReason.MAX_TOKENS, "length"),
        (tool("shell", {"command": "x"}, finish="length"), StopReason.MAX_TOKENS, "length"),
        (text("No.", finish="content_filter"), StopReason.CONTENT_FILTER, "content_filter"),
        (text("", refusal="I cannot."), StopReason.REFUSAL, "stop"),
        (text("", finish="tool_calls"), StopReason.MALFORMED_TOOL_CALL, "tool_calls"),
        (tool("shell", {}, finish="stop"), StopReason.TOOL_USE, "stop"),
        (text("Wait", finish="pause_turn"), StopReason.PAUSE, "pause_turn"),
        (text("x", finish="banana"), StopReason.UNKNOWN, "banana"),
        (text("x", extra={"native_finish_reason": "SAFETY"}), StopReason.CONTENT_FILTER, "stop"),
        (text("x", finish="abort"), StopReason.CANCELLED, "abort"),
        (text("x", finish="error"), StopReason.PROVIDER_ERROR, "error"),
        (
            tool("shell", {}, usage=steps.usage(10, 1000)),
            StopReason.MAX_TOKENS,
            "tool_calls",
        ),
        (text(""), StopReason.END_TURN, "stop"),
    ],
)
def test_endings_that_are_reported_are_replies(
    ask: Ask, step: Completion, stop: StopReason, raw_word: str
) -> None:
    """Whatever a provider reports is a reply with its word kept, never an exception (B83, B84, B89, B92, B94)."""
    reply = ask([step]).reply

    assert (stop, raw_word) == (reply.stop, reply.stop_raw)


def test_paused_text_is_kept(ask: Ask) -> None:
    """A paused turn's text goes on in the conversation (B94)."""
    assert ask([text("So far", finish="pause_turn")]).reply.message().text == "So far"


@pytest.mark.parametrize(
    "step_usage", [None, steps.ABSENT, steps.usage(0, 0)], ids=["null", "absent", "zeros"]
)
def test_missing_usage_is_estimated(ask: Ask, step_usage: Any) -> None:
    """A reply without usable usage costs an estimate that says so (B28)."""
    usage = ask([text("x" * 300, usage=step_usage)]).reply.usage

    assert usage.estimated
    assert usage.output == 100
    assert usage.input > 50


def test_the_callers_own_estimate_is_used(request_: Request) -> None:
    """Counting tokens is the caller's; the wire only asks for it."""

    async def ask_() -> Usage:
        with Stub([text("abc", usage=None)]) as stub:
            profile = ModelProfile("m", "openai", "m", stub.base_url)
            model = OpenAIChat(profile, None, estimate=lambda said: 7 if said == "abc" else 11)
            reply = await model.complete(request_)
            await model.aclose()
            return reply.usage

    assert Usage(11, 0, 0, 7, estimated=True) == anyio.run(ask_)


def test_a_rough_estimate_is_not_below_the_truth_for_prose() -> None:
    """Without a counter a token is taken to be three bytes."""
    assert (rough_tokens("abcd"), rough_tokens("你好"), rough_tokens("")) == (2, 2, 0)


CUTS = {
    "half the text": cut(text("A long sentence that never ends"), after_chars=10),
    "before a word": cut(text("A long sentence"), after_chars=0),
    "inside arguments": cut(tool("shell", {"command": "rm -rf build"}), after_chars=12),
    "no finish reason": text("Looks complete.", finish=None),
    "no finish reason, no end": text("Looks complete.", finish=None, done=False),
    "the word null": text("Looks complete.", finish="null"),
    "an empty stream": events(),
    "nothing at all": raw(EVENTS),
    "half a chunk": raw(EVENTS + b'data: {"choices": [{"index": 0, "delta": {"cont'),
    "no JSON": raw(EVENTS + b"data: oops\n\n"),
    "an empty body": raw(JSON),
    "half a body": raw(JSON + b'{"choices": [{"mess'),
}


@pytest.mark.parametrize("step", CUTS.values(), ids=CUTS)
def test_a_reply_without_an_ending_is_a_cut_stream(ask: Ask, step: steps.Step) -> None:
    """However it comes about, what has no finish reason is no answer, and its cost is known (B17, B87)."""
    error = ask([step]).error

    assert error.kind is ErrorKind.STREAM_CUT
    assert error.usage is not None
    assert error.usage.input > 0


def test_a_cut_reply_costs_what_arrived(ask: Ask) -> None:
    """The estimate of a cut attempt grows with what was received."""
    some, more = (ask([cut(text("x" * 900), after_chars=n)]).error.usage for n in (300, 600))

    assert some is not None
    assert more is not None
    assert (some.output, more.output) == (100, 200)
    assert some.estimated


def test_a_missing_last_blank_line_is_no_cut(ask: Ask) -> None:
    """Servers that end on the last line without the blank one after it are understood."""
    assert ask([events(delta(content="Hi"), delta("stop"), end=b"data: [DONE]")]).reply.text == "Hi"
    last = b"data: " + json.dumps(delta("stop")).encode()
    assert ask([events(delta(content="Hi"), end=last)]).reply.stop is StopReason.END_TURN


def test_comments_and_other_line_ends_are_understood(ask: Ask) -> None:
    """Keep-alive comments, CRLF, and line separators inside strings do not break events."""
    body = json.dumps(delta("stop", content="a\u2028b\u0085c"), ensure_ascii=False).encode()

    assert (
        ask([raw(EVENTS + b": PROCESSING\r\n\r\ndata: " + body + b"\r\n\r\n")]).reply.text
        == "a\u2028b\u0085c"
    )


def test_bytes_that_are_no_utf_8_are_replaced(ask: Ask) -> None:
    """A broken byte costs one character, not the reply."""
    body = b'data: {"choices": [{"delta": {"content": "a\xff\xfeb\\ud800"}, "finish_reason": "stop"}]}\n\n'

    assert ask([raw(EVENTS + body)]).reply.text == "a��b�"


@pytest.mark.parametrize(
    "content_type", ["application/json", "application/problem+json", "text/event-stream"]
)
def test_a_server_that_does_not_stream_is_understood(ask: Ask, content_type: str) -> None:
    """One JSON body in answer to a request for a stream is a whole reply."""
    completion = {
        "choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}],
        "usage": steps.usage(9, 2),
    }
    body = json.dumps(completion)
    if content_type == "text/event-stream":
        body = f"data: {body}\n\n"
    reply = ask([status(200, body, {"content-type": content_type})]).reply

    assert ("Hi", Usage(9, 0, 0, 2)) == (reply.text, reply.usage)


def test_a_page_is_no_reply(ask: Ask) -> None:
    """A 200 with HTML is an error of the server's that names what it sent."""
    error = ask([status(200, "<html>", {"content-type": "text/html"})]).error

    assert error.kind is ErrorKind.SERVER
    assert "text/html" in error.message


ERRORS = {
    "chunk": (
        error_chunk({"message": "Overloaded", "type": "overloaded_error"}, "Half"),
        ErrorKind.OVERLOADED,
    ),
    "first chunk": (events({"error": {"message": "no", "code": "insufficient_quota"}}), ErrorKind.QUOTA),
    "choice": (
        events({"choices": [{"error": {"code": 502, "message": "down"}, "finish_reason": "error"}]}),
        ErrorKind.SERVER,
    ),
    "event": (raw(EVENTS + b'event: error\ndata: {"message": "x", "code": 429}\n\n'), ErrorKind.RATE_LIMIT),
    "body": (
        status(200, {"error": {"message": "x", "code": "context_length_exceeded"}}),
        ErrorKind.CONTEXT_OVERFLOW,
    ),
    "list": (status(200, "[]", {"content-type": "application/json"}), ErrorKind.STREAM_CUT),
    "400": (status(400, {"error": {"code": "context_length_exceeded"}}), ErrorKind.CONTEXT_OVERFLOW),
    "401": (status(401, {"error": {"code": "invalid_api_key", "message": "x"}}), ErrorKind.AUTH),
    "429": (status(429, "slow down", {"retry-after": "2"}), ErrorKind.RATE_LIMIT),
    "redirect": (status(307, "", {"location": "http://127.0.0.1:1/"}), ErrorKind.BAD_REQUEST),
}


@pytest.mark.parametrize(("step", "kind"), ERRORS.values(), ids=ERRORS)
def test_errors_are_found_wherever_they_are(ask: Ask, step: steps.Step, kind: ErrorKind) -> None:
    """Status, body, chunk, choice or event: an error is an error of its own kind (B61, B98)."""
    assert kind is ask([step]).error.kind


def test_a_refused_request_costs_nothing(ask: Ask) -> None:
    """Only what began to stream is charged (B96)."""
    assert ask([status(429, "slow", {"retry-after": "2", "x-should-retry": "false"})]).error.usage is None
    assert ask([error_chunk({"message": "x"}, "Half")]).error.usage is not None


def test_what_the_provider_asks_is_on_the_error(ask: Ask, clock: Any) -> None:
    """Wait, reset and the server's own verdict on retrying are facts of the error (B96, B100)."""
    headers = {"retry-after": "2", "x-should-retry": "false"}
    error = ask([status(429, {"error": {"code": "slow_down", "message": "Easy."}}, headers)]).error

    assert (
        error.status,
        error.raw_type,
        error.retry_after,
        error.should_retry,
    ) == (429, "slow_down", 2.0, False)
    assert error.reset_at is not None
    assert (error.reset_at - clock.now()).total_seconds() == 2.0


def test_a_refused_connection_is_a_connection_error(ask: Ask) -> None:
    """Nobody listening is an error without status or cost."""
    error = ask([], url=lambda base: "http://127.0.0.1:9/v1").error

    assert (error.kind, error.status, error.usage) == (ErrorKind.CONNECTION, None, None)
    assert "127.0.0.1:9" in error.message


@pytest.mark.parametrize("after", [None, 4])
def test_silence_is_a_timeout(ask: Ask, after: int | None) -> None:
    """A server that says nothing for too long has failed, before the first word or after."""
    step = steps.stall(text("Hello there"), threading.Event(), after_chars=after)
    error = ask([step], timeout_seconds=0.2).error

    assert error.kind is ErrorKind.TIMEOUT
    assert (error.usage is not None) is (after is not None)


def test_an_endless_reply_is_given_up(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reply beyond its bound is the server's error."""
    monkeypatch.setattr(assembly, "MAX_CHARACTERS", 100)

    error = ask([text("x" * 200)]).error

    assert (error.kind, "more than 100 characters" in error.message) == (ErrorKind.SERVER, True)


@pytest.mark.parametrize("head", [EVENTS + b"data: ", JSON])
def test_an_endless_line_is_given_up(ask: Ask, monkeypatch: pytest.MonkeyPatch, head: bytes) -> None:
    """A line beyond its bound is not gathered in memory."""
    monkeypatch.setattr("goalmode.model.http.MAX_BODY", 1000)
    monkeypatch.setattr("goalmode.model.sse.MAX_EVENT", 1000)

    assert ask([raw(head + b"x" * 5000)]).error.kind is ErrorKind.SERVER


def test_a_given_client_is_used_and_left_open(request_: Request) -> None:
    """A session of the caller's carries the request, with the address's query as it was written."""
    answer = {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}

    sent = sent_to("openai", "http://example.invalid/v1?api-version=1%202", request_, answer)

    assert sent.url == "http://example.invalid/v1/chat/completions?api-version=1%202"
    assert sent.headers["authorization"] == "Bearer key-1"


def test_one_model_serves_several_event_loops(request_: Request) -> None:
    """Connections of a loop that ended are not used in the next."""
    with Stub([text("Hi.")], forever=True) as stub:
        model = OpenAIChat(ModelProfile("m", "openai", "m", stub.base_url), None)

        async def run() -> str:
            reply = await model.complete(request_)
            await model.aclose()
            return reply.text

        assert [anyio.run(run), anyio.run(run)] == ["Hi.", "Hi."]


def test_a_proxy_of_the_environment_is_used(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """For other machines than this one, unless the environment says otherwise."""

    def behind(base: str) -> str:
        monkeypatch.setenv("http_proxy", base.removesuffix("/v1"))
        return "http://provider.invalid/v1"

    asked = ask([text("Hi.")], url=behind)
    assert asked.stub.requests[0].path == "http://provider.invalid/v1/chat/completions"
    assert ask([text("Hi.")], url=lambda base: base).reply.text == "Hi."

    monkeypatch.setenv("no_proxy", "provider.invalid")
    assert proxy_for(URL("http://provider.invalid/v1")) is None


def test_a_kept_connection_that_was_closed_is_replaced_at_once(ask: Ask) -> None:
    """A server that hangs up on an idle connection is asked on a new one; one that hangs up on that is an error."""
    hang_up = raw(b"")
    asked = ask([text("one"), hang_up, text("two"), hang_up, hang_up], times=3)

    assert [getattr(o, "text", None) for o in asked.outcomes] == ["one", "two", None]
    assert [o.kind for o in asked.outcomes if isinstance(o, ModelError)] == [ErrorKind.CONNECTION]
    assert ask([hang_up, text("x")]).error.kind is ErrorKind.CONNECTION


def test_ids_are_unique_over_the_whole_conversation(ask: Ask) -> None:
    """A model that names each call `x` gets a conversation any server accepts (B80)."""
    twins = tools(
        [StubCall("shell", "{}", id="x"), StubCall("shell", "{}", id="x"), StubCall("shell", "{}", id=None)]
    )

    reply = ask([twins]).reply

    assert [
        ToolCall("x", "shell", "{}"),
        ToolCall("call_1", "shell", "{}"),
        ToolCall("call_2", "shell", "{}"),
    ] == list(reply.calls)


def test_nothing_is_logged_about_the_request(ask: Ask, caplog: pytest.LogCaptureFixture) -> None:
    """With the most verbose logging neither key nor prompt is written (B115)."""
    caplog.set_level(logging.DEBUG)

    ask(
        [text("Hi.")],
        Request((User("a canary prompt"),), (), 10),
        key="sk-canary-key",
        url=lambda base: base.replace("http://", "http://user:canary-password@") + "?api_key=canary-query",
    )

    assert caplog.records
    assert "canary" not in caplog.text
