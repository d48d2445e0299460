"""The Anthropic wire against a real server on loopback: how replies, errors and cut streams come out."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import anyio
import pytest

from goalmode.domain.messages import Message, Reply, Request, ToolResult, Usage, User
from goalmode.domain.profile import ModelProfile
from goalmode.domain.signals import ErrorKind, StopReason
from goalmode.errors import ModelError
from goalmode.model.wire import assembly, exchange
from goalmode.model.wire.anthropic import AnthropicMessages
from goalmode.testing import Stub, steps
from goalmode.testing.steps import Completion, cut, echo, error_chunk, raw, status, text, tool, tools

from .conftest import Asked
from .scripted_session import ScriptedSession, sent_to

KEY = "canary-key-1234567890"
EVENTS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


@pytest.fixture
def send(ask: Callable[..., Asked]) -> Callable[..., Asked]:
    """`ask`, in this format."""

    def send(script: Any, *requests: Request, **options: Any) -> Asked:
        return ask(script, *requests, wire="anthropic", **options)

    return send


Send = Callable[..., Asked]


def test_text_and_calls_arrive_with_all_that_is_known_of_them(send: Send) -> None:
    """A streamed reply has its ending, usage, model and status."""
    step = tools([("shell", {"command": "ls"}), ("read_file", '{"path": "a"}')], "Looking. 你好")
    reply = send([replace(step, usage=steps.usage(1000, 50, cached=800))]).reply

    assert (reply.stop, reply.stop_raw, reply.text) == (StopReason.TOOL_USE, "tool_use", "Looking. 你好")
    assert [(c.name, c.arguments) for c in reply.calls] == [
        ("shell", '{"command": "ls"}'),
        ("read_file", '{"path": "a"}'),
    ]
    assert (reply.usage, reply.usage.tokens) == (Usage(1000, 800, 0, 50), 250)
    assert (reply.provider, reply.model, reply.http_status) == ("anthropic", "m", 200)


def test_key_and_version_are_in_the_formats_own_headers(send: Send) -> None:
    """The key goes into `x-api-key`, beside the version of the format."""
    headers = send([text("Hi.")], key=KEY).stub.requests[0].headers

    assert (headers["x-api-key"], headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "authorization" not in headers


def test_every_request_is_accepted_and_the_connection_kept(send: Send, connections: list[Any]) -> None:
    """Ten turns use one connection and break no rule."""
    asked = send([text("Hi.")], forever=True, times=10)

    assert asked.stub.rejected == []
    assert {o.stop for o in asked.outcomes if isinstance(o, Reply)} == {StopReason.END_TURN}
    assert len(connections) == 1


@pytest.mark.parametrize(
    ("step", "stop", "raw_word"),
    [
        (text("Half", finish="max_tokens"), StopReason.MAX_TOKENS, "max_tokens"),
        (tool("shell", {}, finish="max_tokens"), StopReason.MAX_TOKENS, "max_tokens"),
        (text("", refusal="I cannot."), StopReason.REFUSAL, "refusal"),
        (text("", finish="tool_use"), StopReason.MALFORMED_TOOL_CALL, "tool_use"),
        (tool("shell", {}, finish="end_turn"), StopReason.TOOL_USE, "end_turn"),
        (text("Wait", finish="pause_turn"), StopReason.PAUSE, "pause_turn"),
        (text("", finish="compaction"), StopReason.PAUSE, "compaction"),
        (text("x", finish="model_context_window_exceeded"), StopReason.CONTEXT_OVERFLOW, None),
        (text("x", finish="stop_sequence"), StopReason.STOP_SEQUENCE, "stop_sequence"),
        (text("x", finish="banana"), StopReason.UNKNOWN, "banana"),
        (tool("shell", {}, usage=steps.usage(10, 1000)), StopReason.MAX_TOKENS, "tool_use"),
        (text(""), StopReason.END_TURN, "end_turn"),
    ],
)
def test_endings_that_are_reported_are_replies(
    send: Send, step: Completion, stop: StopReason, raw_word: str | None
) -> None:
    """Whatever the provider reports is a reply with its word kept, never an exception (B83, B84, B89, B92, B94)."""
    reply = send([step]).reply

    assert (reply.stop, reply.stop_raw) == (stop, raw_word or step.finish)


def test_a_refusals_explanation_is_kept(send: Send) -> None:
    """What the classifier explains stays with the reply (B92)."""
    details = {"type": "refusal", "category": "bio", "explanation": "Not this."}

    assert send([text("", refusal="I cannot.")]).reply.stop_detail == "I cannot."
    assert (
        send([text("x", finish="refusal", extra={"stop_details": details})]).reply.stop_detail
        == "bio: Not this."
    )


CUTS = {
    "half the text": cut(text("A long sentence that never ends"), after_chars=10),
    "before a word": cut(text("A long sentence"), after_chars=0),
    "inside arguments": cut(tool("shell", {"command": "rm -rf build"}), after_chars=12),
    "in thinking": cut(text("x", reasoning="hm"), after_chars=0),
    "no stop reason": text("Looks complete.", finish=None),
    "no stop reason, no end": text("Looks complete.", finish=None, done=False),
    "nothing at all": raw(EVENTS),
    "no JSON": raw(EVENTS + b"event: ping\ndata: oops\n\n"),
    "half a body": raw(b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{"type": "mess'),
    "a body without an ending": status(
        200, {"type": "message", "content": [], "stop_reason": None}, {"content-type": "application/json"}
    ),
}


@pytest.mark.parametrize("step", CUTS.values(), ids=CUTS)
def test_a_reply_without_an_ending_is_a_cut_stream(send: Send, step: steps.Step) -> None:
    """However it comes about, what has no stop reason is no answer, and its cost is known (B17, B87)."""
    error = send([step]).error

    assert error.kind is ErrorKind.STREAM_CUT
    assert error.usage is not None
    assert error.usage.input > 0


def test_a_cut_reply_costs_what_arrived(send: Send) -> None:
    """The prompt was counted when the reply began; what was generated until the cut is estimated."""
    step = cut(text("x" * 900, usage=steps.usage(1000, 300, cached=800)), after_chars=600)

    assert send([step]).error.usage == Usage(1000, 800, 0, 200, estimated=True)


def test_the_last_event_is_the_end(request_: Request, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that keeps the connection open after its last event does not hold the reply up."""
    monkeypatch.setattr(exchange, "DRAIN_SECONDS", 0.01)
    ending = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    events = [{"type": "message_start", "message": {}}, ending, {"type": "message_stop"}]

    async def endless() -> AsyncIterator[bytes]:
        for event in events:
            yield b"data: " + json.dumps(event).encode() + b"\n\n"
        await anyio.sleep_forever()

    async def run() -> Reply:
        profile = ModelProfile("m", "anthropic", "m", "http://example.invalid/v1")
        session: Any = ScriptedSession(endless)
        return await AnthropicMessages(profile, None, client=session).complete(request_)

    assert anyio.run(run).stop is StopReason.END_TURN


def test_a_stop_reason_is_enough(send: Send) -> None:
    """A stream that breaks off after the stop reason holds the whole reply."""
    assert send([text("Hi.", done=False)]).reply.text == "Hi."


def test_silence_is_a_timeout(send: Send) -> None:
    """A server that says nothing for too long has failed."""
    error = send([steps.stall(text("late"), 60.0)], timeout_seconds=0.2).error

    assert (error.kind, error.usage) == (ErrorKind.TIMEOUT, None)


ERRORS = {
    "event": (
        error_chunk({"type": "overloaded_error", "message": "Overloaded"}, "Half"),
        ErrorKind.OVERLOADED,
    ),
    "event with a code": (
        error_chunk({"type": "rate_limit_error", "details": {"error_code": "enforced_spend_limit_reached"}}),
        ErrorKind.QUOTA,
    ),
    "529": (
        status(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        ErrorKind.OVERLOADED,
    ),
    "body": (status(200, {"type": "error", "error": {"type": "api_error"}}), ErrorKind.SERVER),
    "413": (
        status(413, {"type": "error", "error": {"type": "request_too_large"}}),
        ErrorKind.REQUEST_TOO_LARGE,
    ),
    "html": (status(200, "<html>", {"content-type": "text/html"}), ErrorKind.SERVER),
}


@pytest.mark.parametrize(("step", "kind"), ERRORS.values(), ids=ERRORS)
def test_errors_are_found_wherever_they_are(send: Send, step: steps.Step, kind: ErrorKind) -> None:
    """An error event comes with HTTP 200; it is an error of its own kind all the same (B61, B98)."""
    assert send([step]).error.kind is kind


@pytest.mark.parametrize(
    ("step", "bound"),
    [
        (tools([("shell", "{}")] * 5_000), "512 tool calls"),
        (text("x" * 2_000), "1000 characters"),
        (text("x", reasoning="x" * 2_000), "1000 characters"),
        (tool("shell", {"command": "x" * 2_000}), "1000 characters"),
    ],
    ids=["calls", "text", "thinking", "arguments"],
)
def test_a_reply_beyond_its_bounds_is_given_up(
    send: Send, monkeypatch: pytest.MonkeyPatch, step: Completion, bound: str
) -> None:
    """A flood is the server's error, told with the bound that it passed."""
    if "characters" in bound:
        monkeypatch.setattr(assembly, "MAX_CHARACTERS", 1_000)

    error = send([step]).error

    assert (error.kind, bound in error.message) == (ErrorKind.SERVER, True), error.message


def test_bytes_that_are_no_utf_8_are_replaced(send: Send) -> None:
    """A broken byte costs one character, not the reply."""
    events = (
        b'data: {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "a\xff"}}\n\n'
        b'data: {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}\n\n'
    )

    assert send([raw(EVENTS + events)]).reply.text == "a�"


def test_a_server_that_does_not_stream_is_understood(send: Send) -> None:
    """One JSON body in answer to a request for a stream is a whole reply, with its request's name."""
    message = {
        "type": "message",
        "model": "claude-x",
        "content": [{"type": "text", "text": "Hi"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 9, "output_tokens": 2, "cache_creation_input_tokens": 3},
    }
    headers = {"content-type": "application/json", "request-id": "req_7"}
    reply = send([status(200, message, headers)]).reply

    assert (reply.text, reply.usage, reply.model) == ("Hi", Usage(12, 0, 3, 2), "claude-x")
    assert reply.request_id == "req_7"


def test_thinking_is_replayed_byte_for_byte(send: Send, request_: Request) -> None:
    """Signed thoughts go back as they came while the conversation goes on: the strict provider checks them."""
    script = [
        tool("shell", {"n": n}, text=f"Step {n}.", reasoning=f"  thought\n{n} 你好\t") for n in range(4)
    ] + [text("So far", finish="pause_turn", reasoning="searching"), text("Done.", reasoning="found")]

    def follow(conversation: list[Message], reply: Reply) -> None:
        conversation.append(reply.message())
        conversation += [ToolResult(call.id, call.name, "ok") for call in reply.calls]

    async def run(stub: Stub) -> list[Message]:
        model = AnthropicMessages(ModelProfile("m", "anthropic", "m", stub.base_url), None)
        conversation = list(request_.messages)
        for _ in script:
            follow(conversation, await model.complete(replace(request_, messages=tuple(conversation))))
        conversation.append(User("One more."))
        changed = [User("Something else."), *conversation[2:]]
        with pytest.raises(ModelError) as caught:
            await model.complete(replace(request_, messages=tuple(changed)))
        assert caught.value.kind is ErrorKind.SIGNATURE
        await model.aclose()
        return conversation

    with Stub(script) as stub:
        conversation = anyio.run(run, stub)

    assert [message for message in stub.rejected if "bound to a different" not in message] == []
    sent = [b for m in stub.requests[-2].body["messages"] for b in m["content"] if b["type"] == "thinking"]
    assert [b["thinking"] for b in sent] == [f"  thought\n{n} 你好\t" for n in range(4)] + ["searching"]
    kept = [b for m in conversation if (e := getattr(m, "extra", None)) for b in e["anthropic"]]
    assert sent == [b for b in kept if b["type"] == "thinking"][:-1]


@pytest.mark.parametrize("secrets", [[KEY], [KEY, "canary-pass", "canary-query"]], ids=["key", "url"])
@pytest.mark.parametrize(
    "step",
    [
        echo(422),
        status(500, f"x-api-key: {KEY}"),
        status(401, {"type": "error", "error": {"type": KEY, "message": f"bad key {KEY}"}}),
        error_chunk({"type": "api_error", "message": f"{KEY} canary-pass canary-query"}, "Half"),
        cut(text("x"), 0),
    ],
    ids=["echo", "text", "fields", "event", "cut"],
)
def test_no_key_is_in_an_error(send: Send, step: steps.Step, secrets: list[str]) -> None:
    """Message, facts and representation are free of keys, wherever the provider repeats them (B117)."""

    def url(base: str) -> str:
        in_url = base.replace("http://", "http://me:canary-pass@") + "?key=canary-query"
        return in_url if len(secrets) > 1 else base

    error = send([step], key=KEY, url=url).error

    everything = "".join([str(error), repr(error), *(str(getattr(error, name)) for name in vars(error))])
    assert [secret for secret in secrets if secret in everything] == []
    assert "127.0.0.1" in error.message


def test_nothing_is_logged_about_the_request(send: Send, caplog: pytest.LogCaptureFixture) -> None:
    """With the most verbose logging neither key nor prompt is written (B115)."""
    caplog.set_level(logging.DEBUG)

    send([text("Hi.")], Request((User("a canary prompt"),), (), 10), key=KEY)

    assert caplog.records
    assert "canary" not in caplog.text


def test_a_given_client_is_used_and_left_open(request_: Request) -> None:
    """A session of the caller's carries the request to the format's path."""
    answer = {"type": "message", "content": [], "stop_reason": "end_turn"}

    sent = sent_to("anthropic", "http://example.invalid/v1", request_, answer)

    assert sent.url == "http://example.invalid/v1/messages"
    assert json.loads(sent.body)["max_tokens"] == request_.max_output
