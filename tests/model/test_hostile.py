"""Answers that no honest server gives, on OpenAI's wires: bounded memory and time, and a reason that says why."""

from __future__ import annotations

import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from goalmode.domain.messages import Reply, Request, ToolResult, User
from goalmode.domain.profile import ModelProfile
from goalmode.domain.signals import ErrorKind, StopReason
from goalmode.errors import ModelError
from goalmode.model import lint_responses, sse
from goalmode.model.lint import lint
from goalmode.model.wire import exchange, openai_messages, openai_reply, responses_messages
from goalmode.wiring import WIRES

from .scripted_session import ScriptedSession

MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class Wire:
    """How one format says a piece of text, a call, and the end."""

    name: str
    text: Callable[[str], dict[str, Any]]
    call: Callable[[int, str], list[dict[str, Any]]]
    end: Callable[[], list[dict[str, Any]]]


def _chat(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _chat_call(n: int, arguments: str) -> list[dict[str, Any]]:
    function = {"name": "shell", "arguments": arguments}
    return [_chat(tool_calls=[{"index": n, "id": f"c{n}", "function": function}])]


def _item(n: int, **item: Any) -> list[dict[str, Any]]:
    return [{"type": f"response.output_item.{w}", "output_index": n, "item": item} for w in ("added", "done")]


CHAT = Wire("openai", lambda said: _chat(content=said), _chat_call, lambda: [_chat("stop")])
RESPONSES = Wire(
    "openai-responses",
    lambda said: {"type": "response.output_text.delta", "output_index": 0, "delta": said},
    lambda n, arguments: _item(
        n + 1, type="function_call", id=f"fc_{n}", call_id=f"c{n}", name="shell", arguments=arguments
    ),
    lambda: [{"type": "response.completed", "response": {"status": "completed"}}],
)


@dataclass
class Server:
    """A provider that writes `answer`, and counts the pieces that were taken of it."""

    answer: Iterable[bytes]
    kind: str = "text/event-stream"
    taken: int = 0

    async def pieces(self) -> AsyncIterator[bytes]:
        for piece in self.answer:
            self.taken += 1
            yield piece
            await anyio.lowlevel.checkpoint()

    def ask(self, wire: Wire) -> Reply | ModelError:
        async def run() -> Reply | ModelError:
            profile = ModelProfile("m", wire.name, "m", "http://example.invalid/v1")
            session: Any = ScriptedSession(self.pieces, self.kind)
            model = WIRES[wire.name](profile, None, client=session, estimate=len)
            try:
                return await model.complete(Request((User("Go."),), (), 1000))
            except ModelError as error:
                return error

        return anyio.run(run)


def events(*said: Any) -> list[bytes]:
    return [b"data: " + json.dumps(event).encode() + b"\n\n" for event in said]


@pytest.fixture(params=[CHAT, RESPONSES], ids=lambda w: w.name)
def wire(request: pytest.FixtureRequest) -> Wire:
    made: Wire = request.param
    return made


def refused(server: Server, wire: Wire, kind: ErrorKind = ErrorKind.SERVER) -> ModelError:
    error = server.ask(wire)
    assert isinstance(error, ModelError), error
    assert error.kind is kind, error
    return error


def test_a_hundred_megabytes_of_text_are_not_gathered(wire: Wire) -> None:
    """Text is read up to its bound, and what was read is charged."""
    piece = events(wire.text("x" * MEGABYTE))[0]
    server = Server(itertools.repeat(piece, 100))
    error = refused(server, wire)

    assert server.taken <= 6
    assert "more than 4194304 characters" in error.message
    assert error.usage is not None
    assert error.usage.output > 4 * MEGABYTE


@pytest.mark.parametrize("kind", ["text/event-stream", "application/json"])
def test_a_hundred_megabytes_in_one_piece_are_not_gathered(wire: Wire, kind: str) -> None:
    """One event, or one body, is read up to its bound."""
    server = Server(itertools.chain([b'data: {"'], itertools.repeat(b"x" * MEGABYTE, 100)), kind)
    error = refused(server, wire)

    assert server.taken <= 11
    assert "in one piece" in error.message


@pytest.mark.long
def test_an_event_of_endless_lines_is_not_gathered(wire: Wire) -> None:
    """Many short lines without a blank one between them are one event, and bounded as one."""
    server = Server(itertools.repeat(b"data: x\n" * 100_000))
    error = refused(server, wire)

    assert server.taken <= 12
    assert "in one piece" in error.message


@pytest.mark.parametrize(
    "piece", [b": still here\n\n", b"data: {}\n\n", b"\n\n", b"event: ping\ndata: {}\n\n"]
)
def test_an_endless_stream_of_nothing_is_given_up(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, piece: bytes
) -> None:
    """A stream that says nothing and never ends is bounded as a whole."""
    monkeypatch.setattr(sse, "MAX_STREAM", 100_000)
    server = Server(itertools.repeat(piece * 100))
    refused(server, wire)

    assert server.taken * len(piece) * 100 <= 100_000 + 100 * len(piece)


def test_a_reply_that_never_falls_silent_has_a_last_hour(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    """However lively a stream is, its reply has to end some day."""
    monkeypatch.setattr(exchange, "LONGEST_REPLY_SECONDS", 0.05)
    error = refused(Server(itertools.repeat(b": still here\n\n")), wire, ErrorKind.TIMEOUT)

    assert "did not end within 0.05 seconds" in error.message


def test_five_thousand_calls_are_not_gathered(wire: Wire) -> None:
    """Calls are read up to their bound, streamed or whole."""
    calls = [e for n in range(5_000) for e in wire.call(n, "{}")]
    server = Server(events(*calls, *wire.end()))
    error = refused(server, wire)

    assert server.taken < 1_100
    assert "more than 512" in error.message


def test_bytes_that_are_no_utf_8_cost_a_character(wire: Wire) -> None:
    """Broken bytes and lone surrogates become replacement characters; the reply is whole."""
    start = [] if wire is CHAT else _item(0, type="message", id="msg_1", content=[])[:1]
    body = [*events(*start, wire.text("a@@b\ud800\x00c")), *events(*wire.end())]
    reply = Server([piece.replace(b"@@", b"\xff\xfe") for piece in body]).ask(wire)

    assert isinstance(reply, Reply), reply
    assert (reply.text, reply.stop) == ("a\ufffd\ufffdb\ufffd␀c", StopReason.END_TURN)


@pytest.mark.parametrize(
    "piece",
    [
        b"data: " + b"[" * 200_000 + b"\n\n",
        b'data: {"a":' * 10 + b"\n\n",
        b"data: " + b"1" * 10_000 + b"x\n\n",
    ],
    ids=["nested", "half", "a long number"],
)
def test_an_event_that_cannot_be_parsed_is_a_cut(wire: Wire, piece: bytes) -> None:
    """What is no JSON, or too deep to be read, ends the attempt."""
    refused(Server([piece, *events(*wire.end())]), wire, ErrorKind.STREAM_CUT)


ARGUMENTS = {
    "nested": "[" * 100_000 + "]" * 100_000,
    "nested object": '{"a":' * 50_000 + "1" + "}" * 50_000,
    "NaN": '{"a": NaN}',
    "infinite": '{"a": -Infinity}',
    "a long number": '{"a": ' + "9" * 10_000 + "}",
    "a surrogate": '{"a": "\\ud800"}',
    "NUL": '{"a": "\\u0000"}',
    "duplicate keys": '{"a": 1, "a": 2}',
    "a megabyte": json.dumps({"a": "x" * MEGABYTE}),
    "half": '{"a": ',
    "nothing": "",
}


@pytest.mark.parametrize("arguments", ARGUMENTS.values(), ids=ARGUMENTS)
def test_any_arguments_come_in_and_go_back_valid(wire: Wire, arguments: str) -> None:
    """Arguments reach the tool plan as the model wrote them, and the next request is one that any server takes."""
    reply = Server(events(*wire.call(0, arguments), *wire.end())).ask(wire)

    assert isinstance(reply, Reply), reply
    assert (reply.stop, len(reply.calls)) == (StopReason.TOOL_USE, 1)
    assert reply.calls[0].arguments == arguments
    messages = (User("Go."), reply.message(), ToolResult(reply.calls[0].id, "shell", "error"))
    if wire is CHAT:
        assert lint(json.loads(json.dumps(openai_messages.messages(messages)))) == []
    else:
        assert lint_responses.lint(json.loads(json.dumps(responses_messages.items(messages, "m")))) == []


@pytest.mark.long
def test_a_name_in_every_piece_is_not_parsed_at_every_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """A chat server that repeats the name with every piece of one call costs no time that grows with the square."""
    asked = 0

    def json_object(text: str) -> str | None:
        nonlocal asked
        asked += len(text)
        return None

    monkeypatch.setattr(openai_reply.strict_json, "json_object", json_object)
    pieces = itertools.repeat({"function": {"name": "shell", "arguments": "}"}}, 20_000)
    reply = Server(events(*(_chat(tool_calls=[piece]) for piece in pieces), *CHAT.end())).ask(CHAT)

    assert isinstance(reply, Reply), reply
    assert [len(c.arguments) for c in reply.calls] == [20_000]
    assert asked <= openai_reply.MAX_DOUBTS**2


def test_numbers_that_are_none_are_no_usage(wire: Wire) -> None:
    """NaN, infinite, negative and textual counts are not believed."""
    bad = {
        key: float("nan") for key in ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens")
    }
    last = wire.end()[-1]
    (last.get("response") or last)["usage"] = bad
    start = [] if wire is CHAT else _item(0, type="message", id="msg_1", content=[])[:1]
    reply = Server(events(*start, wire.text("Hi."), last)).ask(wire)

    assert isinstance(reply, Reply), reply
    assert reply.usage.estimated
    assert reply.usage.output == 3
