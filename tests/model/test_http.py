"""Connections and what goes wrong with them, below any wire format."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import aiohttp
import anyio
import pytest
from aiohttp.http import RawResponseMessage
from multidict import CIMultiDict, CIMultiDictProxy

from goalmode.domain.messages import Request, User
from goalmode.domain.profile import ModelProfile
from goalmode.domain.redact import MARK
from goalmode.domain.signals import ErrorKind
from goalmode.errors import ModelError
from goalmode.model import http
from goalmode.model.connector import connector_of
from goalmode.model.wire.openai_chat import OpenAIChat
from goalmode.testing.steps import raw, status, text

from .conftest import Asked

Ask = Callable[..., Asked]

SECRETS = ("ab%2fcd%2fef%61ghsecret", "ab/cd/efaghsecret", "tok3nWITHOUTname")


@pytest.mark.parametrize("answer", [b"NONSENSE\r\n\r\n", b"HTTP/1.1 200 OK\r\nbad header\r\n\r\n", b""])
@pytest.mark.parametrize("query", [f"?code={SECRETS[0]}", f"?{SECRETS[2]}", ""])
def test_nothing_of_an_address_is_told(ask: Ask, answer: bytes, query: str) -> None:
    """Whatever a library says of an answer that is none, and wherever in the address a token is."""
    error = ask([raw(answer)], url=lambda base: f"{base}{query}").error

    assert error.kind is ErrorKind.CONNECTION
    assert "127.0.0.1" in error.message
    assert [secret for secret in SECRETS if secret in error.message] == []


@pytest.mark.parametrize(("lines", "kind"), [(129, "RATE_LIMIT"), (512, "RATE_LIMIT"), (513, "CONNECTION")])
def test_an_answer_may_have_many_header_lines(ask: Ask, lines: int, kind: str) -> None:
    """Gateways add their own; endless ones are refused."""
    head = "".join(f"x-gateway-{n}: 1\r\n" for n in range(lines - 1))
    answer = f"HTTP/1.1 429 Too Many\r\ncontent-length: 0\r\n{head}\r\n"

    assert ask([raw(answer.encode())]).error.kind is ErrorKind[kind]


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("c2VjcmV0LXdvcmQ=", f"{MARK}= a-b-c-d a%2Db-c-d"),
        ("version=a-b-c-d", f"c2VjcmV0LXdvcmQ= {MARK} a%2Db-c-d"),
        ("x=1&version=a%2Db-c-d", f"c2VjcmV0LXdvcmQ= {MARK} {MARK}"),
        ("", "c2VjcmV0LXdvcmQ= a-b-c-d a%2Db-c-d"),
    ],
)
def test_no_value_of_a_query_is_repeated_from_an_answer(ask: Ask, query: str, told: str) -> None:
    """Whatever it is called, as it is written and as it is meant."""
    said = status(400, "c2VjcmV0LXdvcmQ= a-b-c-d a%2Db-c-d")

    assert ask([said], url=lambda base: f"{base}?{query}").error.message.endswith(f": {told}")


def _ask_at(address: str, said: str = "Go.", **profile: Any) -> ModelError:
    async def ask() -> None:
        model = OpenAIChat(ModelProfile("m", "openai", "m", address, **profile), None)
        try:
            await model.complete(Request((User(said),), (), 10))
        finally:
            await model.aclose()

    with pytest.raises(ModelError) as caught:
        anyio.run(ask)
    return caught.value


def test_a_host_that_no_server_can_have_is_the_users_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    """However late it shows."""

    def none(*_: object, **__: object) -> None:
        raise UnicodeError("label too long")

    monkeypatch.setattr(socket, "getaddrinfo", none)

    for host in ("xn--", "x" * 70 + ".invalid", "provider.invalid"):
        assert _ask_at(f"http://{host}/v1").kind is ErrorKind.BAD_REQUEST


def test_a_server_that_does_not_read_is_a_timeout() -> None:
    """Megabytes that are not taken are silence too."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = "http://{}:{}/v1".format(*server.getsockname()[:2])
        error = _ask_at(address, "x" * 30_000_000, timeout_seconds=0.05)

    assert error.kind is ErrorKind.TIMEOUT
    assert "the request was not taken within 0.15 seconds" in error.message


_HEAD: Any = RawResponseMessage(
    aiohttp.HttpVersion11, 200, "OK", CIMultiDictProxy(CIMultiDict()), (), False, None, False, False
)
BEGUN = aiohttp.ServerDisconnectedError(_HEAD)


def test_a_connection_that_does_not_come_about_is_told_as_such() -> None:
    """A server whose queue is full answers nobody."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as server:
        address = server.getsockname()[:2]
        with socket.create_connection(address):
            error = _ask_at("http://{}:{}/v1".format(*address), timeout_seconds=0.2)

    assert error.kind is ErrorKind.TIMEOUT
    assert "0.2 seconds" in error.message


@pytest.mark.parametrize(
    ("lost", "after", "opens", "sent"),
    [
        (aiohttp.ServerDisconnectedError(), 0.2, False, 2),
        (aiohttp.ClientOSError(104, "reset"), 0.0, False, 2),
        (aiohttp.ServerDisconnectedError(), 0.3, False, 1),
        (aiohttp.ServerDisconnectedError(), 0.0, True, 1),
        (BEGUN, 0.0, False, 1),
        (aiohttp.ServerTimeoutError(), 0.0, False, 1),
    ],
    ids=["closed", "reset", "closed late", "a new connection", "half an answer", "silence"],
)
def test_only_what_was_not_seen_is_sent_again(
    monkeypatch: pytest.MonkeyPatch, clock: Any, lost: Exception, after: float, opens: bool, sent: int
) -> None:
    """A kept connection that the server had closed: it breaks at once, and before any answer."""
    tries: list[str] = []

    async def fails(client: aiohttp.ClientSession, path: str, body: bytes) -> None:
        tries.append(path)
        clock.slept.append(after)
        connector = connector_of(client)
        assert connector is not None
        connector.opened += opens
        raise lost

    async def send() -> None:
        one = http.Http("http://127.0.0.1/v1", None, timeout_seconds=1, clock=clock)
        monkeypatch.setattr(one, "_send_once", fails)
        try:
            await one._send("/x", b"{}")
        finally:
            await one.aclose()

    with pytest.raises(type(lost)):
        anyio.run(send)
    assert len(tries) == sent


def test_a_request_of_megabytes_arrives_whole(ask: Ask) -> None:
    """Written in pieces, and without a word of the library's about it."""
    long: Any = Request((User("x" * 3_000_000),), (), 10)

    asked = ask([text("Hi.")], long)
    assert asked.reply.text == "Hi."
    assert len(asked.stub.requests[0].raw) > 3_000_000
