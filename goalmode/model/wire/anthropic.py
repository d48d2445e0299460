"""Anthropic messages: one streamed call, a whole reply back."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from goalmode.domain.messages import Reply, Request
from goalmode.model.wire import anthropic_messages
from goalmode.model.wire.anthropic_reply import MessageAssembly
from goalmode.model.wire.exchange import HttpModel


class AnthropicMessages(HttpModel):
    """A model behind an Anthropic messages endpoint."""

    provider = "anthropic"
    path = "/messages"
    headers = MappingProxyType({"anthropic-version": "2023-06-01"})

    @staticmethod
    def key(api_key: str) -> Mapping[str, str]:
        """The header that carries a key."""
        return {"x-api-key": api_key}

    async def complete(self, request: Request) -> Reply:
        """See `goalmode.model.port.Model`. Nothing is retried here."""
        body = anthropic_messages.body(request, self._profile)
        return await self._exchange(body, request, MessageAssembly())
