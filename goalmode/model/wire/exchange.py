"""One call over HTTP in any wire format: send the body, put the answer together, know what it cost.

How it ended is read in this order: transport, error body, the provider's word, refusal field, table, content.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Any, ClassVar

import aiohttp
import anyio

from goalmode.domain.clock import Clock, SystemClock
from goalmode.domain.messages import Reply, Request
from goalmode.domain.profile import ModelProfile
from goalmode.domain.signals import ErrorKind, StopReason
from goalmode.errors import ModelError, charge
from goalmode.model import strict_json
from goalmode.model.http import Http, bearer, whole
from goalmode.model.ids import used_ids
from goalmode.model.sse import Events, StreamTooLong
from goalmode.model.wire.assembly import Assembly, ErrorInside, Estimate, TooLarge

DRAIN_SECONDS = 0.25
"""How long the end of a finished stream is waited for, so that the connection can be used again."""

DONE = "[DONE]"
"""The last event of formats that end with a word of their own."""

LONGEST_REPLY_SECONDS = 3_600.0
"""A reply that never falls silent and never ends is given up, so that no server can hold a wakeup for ever."""


def rough_tokens(text: str) -> int:
    """A high guess without a vocabulary: prose and code in English or Chinese need less than a token per 3 bytes."""
    return math.ceil(len(text.encode("utf-8", "replace")) / 3)


class HttpModel:
    """A model behind one endpoint; its wire format is the subclass.

    Args:
        estimate: counts the tokens of a text, for answers that come without usage.
        client: an aiohttp session of yours, with limits of your own; it is not closed by `aclose`.
    """

    provider: ClassVar[str]
    path: ClassVar[str]
    headers: ClassVar[Mapping[str, str]] = MappingProxyType({})

    def __init__(
        self,
        profile: ModelProfile,
        api_key: str | None,
        *,
        estimate: Estimate = rough_tokens,
        client: aiohttp.ClientSession | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._profile, self._estimate = profile, estimate
        self._http = Http(
            profile.base_url,
            api_key,
            timeout_seconds=profile.timeout_seconds,
            clock=clock or SystemClock(),
            client=client,
            key=self.key,
            headers=self.headers,
        )

    @staticmethod
    def key(api_key: str) -> Mapping[str, str]:
        """The headers that carry a key."""
        return bearer(api_key)

    async def aclose(self) -> None:
        """Close the connections to the provider."""
        await self._http.aclose()

    async def _exchange(self, body: bytes, request: Request, assembly: Assembly) -> Reply:
        reply = await exchange(self._http, self.path, body, request, assembly, self._estimate)
        return replace(reply, provider=self.provider, model=reply.model or self._profile.name)


async def exchange(
    http: Http, path: str, body: bytes, request: Request, assembly: Assembly, estimate: Estimate
) -> Reply:
    """Post `body`, which is `request` in the format of `assembly`, and return the whole reply. Nothing is retried.

    Raises:
        ModelError: see `goalmode.model.port.Model`; its usage is what the answer cost once it had begun.
    """
    try:
        with anyio.fail_after(LONGEST_REPLY_SECONDS):
            async with http.post(path, body) as response:
                await _read(http, response, assembly)
    except TimeoutError:
        said = f"the answer did not end within {LONGEST_REPLY_SECONDS:g} seconds"
        error = http.error(ErrorKind.TIMEOUT, said, began=assembly.began)
        error.usage = assembly.counted(estimate, body) if assembly.began else None
        raise error from None
    except ModelError as error:
        if assembly.began or error.kind is ErrorKind.STREAM_CUT:
            error.usage = assembly.counted(estimate, body)
        raise
    except anyio.get_cancelled_exc_class() as cancelled:
        if assembly.began:
            charge(cancelled, assembly.counted(estimate, body))
        raise
    reply = assembly.reply(
        used_ids=used_ids(request.messages),
        usage=assembly.counted(estimate, body),
        max_output=request.max_output,
    )
    theirs = response.headers
    named = theirs.get("x-request-id") or theirs.get("request-id")
    return replace(reply, request_id=named, http_status=response.status)


async def _read(http: Http, response: aiohttp.ClientResponse, assembly: Assembly) -> None:
    """Read the answer to its end.

    Raises:
        ModelError: it holds an error, is too large, or ended before the provider said why.
    """
    kind = response.headers.get("content-type", "text/event-stream").partition(";")[0].strip().lower()
    try:
        if kind == "text/event-stream":
            await _read_stream(http, response, assembly)
        elif kind.endswith("json"):
            assembly.absorb(_parsed(http, (await whole(response)).decode("utf-8", "replace")))
        else:
            raise http.error(ErrorKind.SERVER, f"answered with {kind!r}, not with a completion")
    except ErrorInside as inside:
        said = strict_json.dumps(inside.error)
        raise http.failure(response.status, said, response.headers) from None
    except (TooLarge, StreamTooLong) as bound:
        raise http.error(ErrorKind.SERVER, f"the reply has {bound}") from None
    if assembly.stop is StopReason.MISSING:
        raise http.error(ErrorKind.STREAM_CUT, "the answer ended without saying why")


async def _read_stream(http: Http, response: aiohttp.ClientResponse, assembly: Assembly) -> None:
    events = Events()
    async for piece in response.content.iter_any():
        if _absorb(http, events.feed(piece), assembly):
            await _drain(response)
            return
    _absorb(http, events.end(), assembly)


def _absorb(http: Http, events: list[str], assembly: Assembly) -> bool:
    """Whether the reply has ended with these events: what may come behind its end is no part of it."""
    for data in events:
        if data == DONE:
            return True
        assembly.absorb(_parsed(http, data))
        if assembly.ended:
            return True
    return False


async def _drain(response: aiohttp.ClientResponse) -> None:
    """Read on, so that the connection can be used again; what may come or break there is no longer ours."""
    if response.content.at_eof():
        return
    with suppress(aiohttp.ClientError, OSError), anyio.move_on_after(DRAIN_SECONDS):
        async for _ in response.content.iter_any():
            pass


def _parsed(http: Http, data: str) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        raise http.error(ErrorKind.STREAM_CUT, "the answer holds a piece that is not JSON") from None
