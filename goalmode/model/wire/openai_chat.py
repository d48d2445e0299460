"""OpenAI chat completions, and the many servers that speak the same: one streamed call, a whole reply back."""

from __future__ import annotations

from functools import cached_property

from goalmode.domain.messages import Reply, Request
from goalmode.model.wire import openai_messages
from goalmode.model.wire.exchange import HttpModel
from goalmode.model.wire.grown import Grown
from goalmode.model.wire.openai_reply import ChatAssembly
from goalmode.model.wire.openai_stop import without_truncation


class OpenAIChat(HttpModel):
    """A model behind an OpenAI chat completions endpoint."""

    provider = "openai"
    path = "/chat/completions"

    @cached_property
    def _grown(self) -> Grown:
        return openai_messages.conversation(self._profile)

    async def complete(self, request: Request) -> Reply:
        """See `goalmode.model.port.Model`. Nothing is retried here."""
        body = openai_messages.body(request, self._profile, self._grown)
        reply = await self._exchange(body, request, ChatAssembly())
        if self._profile.silent_truncation:
            own = self._estimate(body.decode())
            reply = without_truncation(reply, own_tokens=own, window=self._profile.window)
        return reply
