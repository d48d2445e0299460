"""A client session that answers without a network, for answers that no server on loopback could give."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, cast

import anyio

from goalmode.domain.messages import Request
from goalmode.domain.profile import ModelProfile
from goalmode.wiring import WIRES

Pieces = Callable[[], AsyncIterator[bytes]]


@dataclass
class Sent:
    """A request as it left us."""

    url: str
    body: bytes
    headers: Mapping[str, str]


@dataclass
class ScriptedSession:
    """Stands in for an `aiohttp.ClientSession`: every request gets the same answer.

    Args:
        pieces: of the answer's content.
    """

    pieces: Pieces
    kind: str = "text/event-stream"
    sent: list[Sent] = field(default_factory=list)
    closed: bool = False
    connector: None = None

    async def post(self, url: Any, *, data: bytes, headers: Mapping[str, str], **_more: Any) -> _Answer:
        self.sent.append(Sent(str(url), data, headers))
        return _Answer(_Content(self.pieces), {"content-type": self.kind})

    async def close(self) -> None:
        self.closed = True


@dataclass
class _Content:
    pieces: Pieces

    def at_eof(self) -> bool:
        return False

    def iter_any(self) -> AsyncIterator[bytes]:
        if not hasattr(self, "_left"):
            self._left = self.pieces()
        return self._left


@dataclass
class _Answer:
    content: _Content
    headers: Mapping[str, str]
    status: int = 200

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


def whole(content: bytes) -> Pieces:
    """An answer in one piece."""

    async def pieces() -> AsyncIterator[bytes]:
        yield content

    return pieces


def sent_to(wire: str, address: str, request: Request, answer: object) -> Sent:
    """A request as a session of the caller's carries it, which stays the caller's."""
    session: Any = ScriptedSession(whole(json.dumps(answer).encode()), "application/json")

    async def run() -> None:
        model = WIRES[wire](ModelProfile("m", wire, "m", address), "key-1", client=session)
        await model.complete(request)
        await model.aclose()

    anyio.run(run)
    assert not session.closed
    [sent] = session.sent
    return cast(Sent, sent)
