"""OpenAI chat completions, and the many servers that speak the same: one streamed call, a whole reply back."""

from __future__ import annotations

from dataclasses import replace

import httpx

from goalmode.domain.clock import Clock, SystemClock
from goalmode.domain.messages import Reply, Request
from goalmode.domain.profile import ModelProfile
from goalmode.model.http import Http
from goalmode.model.wire import openai_messages
from goalmode.model.wire.assembly import Estimate
from goalmode.model.wire.exchange import exchange, rough_tokens
from goalmode.model.wire.openai_reply import ChatAssembly
from goalmode.model.wire.openai_stop import without_truncation

PATH = "/chat/completions"
PROVIDER = "openai"


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
        reply = await exchange(self._http, PATH, body, request, ChatAssembly(), self._estimate)
        reply = replace(reply, provider=PROVIDER, model=reply.model or self._profile.name)
        if not self._profile.silent_truncation:
            return reply
        own_tokens = self._estimate(body.decode())
        return without_truncation(reply, own_tokens=own_tokens, window=self._profile.window)

    async def aclose(self) -> None:
        """Close the connections to the provider."""
        await self._http.aclose()
