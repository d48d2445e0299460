"""OpenAI chat completions, and the many servers that speak the same: one streamed call, a whole reply back.

How it ended is read in this order: transport, error body, the provider's word, refusal field, table, content.
"""

from __future__ import annotations

import json
import math
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import anyio
import httpx

from goalmode.domain.clock import Clock, SystemClock
from goalmode.domain.messages import Reply, Request
from goalmode.domain.profile import ModelProfile
from goalmode.domain.signals import ErrorKind, StopReason
from goalmode.errors import ModelError, charge
from goalmode.model import strict_json
from goalmode.model.classify import find_error
from goalmode.model.http import MAX_LINE, Http, events, whole
from goalmode.model.ids import used_ids
from goalmode.model.wire import openai_messages
from goalmode.model.wire.openai_reply import Assembly, Estimate, TooLarge

PATH = "/chat/completions"
PROVIDER = "openai"


def rough_tokens(text: str) -> int:
    """A high guess without a vocabulary: prose and code in English or Chinese need less than a token per 3 bytes."""
    return math.ceil(len(text.encode("utf-8", "replace")) / 3)


class OpenAIChat:
    """A model behind an OpenAI chat completions endpoint.

    Args:
        estimate: counts the tokens of a text, for answers that come without usage.
        client: an httpx client of yours; it is not closed by `aclose`.
    """

    def __init__(
        self,
        profile: ModelProfile,
        api_key: str | None,
        *,
        estimate: Estimate = rough_tokens,
        client: httpx.AsyncClient | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._profile, self._estimate = profile, estimate
        self._http = Http(
            profile.base_url,
            api_key,
            timeout_seconds=profile.timeout_seconds,
            clock=clock or SystemClock(),
            client=client,
        )

    async def complete(self, request: Request) -> Reply:
        """See `goalmode.model.port.Model`. Nothing is retried here."""
        body = openai_messages.body(request, self._profile)
        assembly = Assembly()
        try:
            async with self._http.post(PATH, body) as response:
                await self._read(response, assembly)
        except ModelError as error:
            if assembly.began or error.kind is ErrorKind.STREAM_CUT:
                error.usage = assembly.counted(self._estimate, body)
            raise
        except anyio.get_cancelled_exc_class() as cancelled:
            if assembly.began:
                charge(cancelled, assembly.counted(self._estimate, body))
            raise
        reply = assembly.reply(
            used_ids=used_ids(request.messages),
            usage=assembly.counted(self._estimate, body),
            max_output=request.max_output,
        )
        return replace(
            reply,
            provider=PROVIDER,
            model=reply.model or self._profile.name,
            request_id=response.headers.get("x-request-id"),
            http_status=response.status_code,
        )

    async def aclose(self) -> None:
        """Close the connections to the provider."""
        await self._http.aclose()

    async def _read(self, response: httpx.Response, assembly: Assembly) -> None:
        """Read the answer to its end.

        Raises:
            ModelError: it holds an error, is too large, or ended before the provider said why.
        """
        async with aclosing(self._values(response)) as values:
            async for value in values:
                if (error := find_error(value)) is not None:
                    headers = response.headers
                    raise self._http.failure(response.status_code, strict_json.dumps(error), headers)
                try:
                    assembly.absorb(value if isinstance(value, dict) else {})
                except TooLarge as bound:
                    raise self._http.error(ErrorKind.SERVER, f"the reply has {bound}") from None
        if assembly.stop is StopReason.MISSING:
            raise self._http.error(ErrorKind.STREAM_CUT, "the answer ended without a finish_reason")

    async def _values(self, response: httpx.Response) -> AsyncGenerator[Any]:
        """The parsed JSON values of the answer: many of a stream, one of a server that does not stream."""
        too_long = self._http.error(ErrorKind.SERVER, f"more than {MAX_LINE} bytes in one piece")
        kind = response.headers.get("content-type", "text/event-stream").partition(";")[0].strip().lower()
        if kind == "text/event-stream":
            async with aclosing(events(response, too_long)) as stream:
                async for data in stream:
                    if data != "[DONE]":
                        yield self._parsed(data)
        elif kind.endswith("json"):
            yield self._parsed(await whole(response, too_long))
        else:
            raise self._http.error(ErrorKind.SERVER, f"answered with {kind!r}, not with a completion")

    def _parsed(self, data: str | bytes) -> Any:
        if isinstance(data, bytes):
            data = data.decode("utf-8", "replace")
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            raise self._http.error(
                ErrorKind.STREAM_CUT, "the answer holds a piece that is not JSON"
            ) from None
