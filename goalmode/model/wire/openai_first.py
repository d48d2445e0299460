"""An OpenAI chat completion of which the first token matters: the likeliest ones stand in the reply (`logprobs`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from goalmode.domain.messages import Reply, Request
from goalmode.domain.profile import ModelProfile
from goalmode.model import first_token
from goalmode.model.wire import openai_messages
from goalmode.model.wire.assembly import dicts
from goalmode.model.wire.exchange import HttpModel
from goalmode.model.wire.openai_reply import ChatAssembly


class OpenAIFirstToken(HttpModel):
    """A model whose replies hold the list of likeliest first tokens in `extra[first_token.EXTRA]`.

    Args:
        top: how many tokens are asked for. Servers bound it (OpenAI: 20), and refuse a request above their bound.
    """

    provider = "openai"
    path = "/chat/completions"

    def __init__(self, profile: ModelProfile, api_key: str | None, *, top: int, **more: Any) -> None:
        super().__init__(profile, api_key, **more)
        self._top = top

    async def complete(self, request: Request) -> Reply:
        """See `goalmode.model.port.Model`. Nothing is retried here."""
        body = openai_messages.body(request, self._profile, logprobs=True, top_logprobs=self._top)
        assembly = _Assembly()
        reply = await self._exchange(body, request, assembly)
        if not assembly.top:
            return reply
        return replace(reply, extra={**reply.extra, first_token.EXTRA: assembly.top})


@dataclass(slots=True)
class _Assembly(ChatAssembly):
    top: first_token.Top = ()

    def absorb(self, value: object) -> None:
        """See `ChatAssembly`. Only the first list counts."""
        # Named, not `super()`: a dataclass with slots is a new class, which a bare `super()` does not know.
        ChatAssembly.absorb(self, value)
        chunk: dict[str, Any] = value if isinstance(value, dict) else {}
        for choice in dicts(chunk.get("choices")):
            if not self.top and not choice.get("index"):
                self.top = first_token.read(choice)
