"""OpenAI's Responses: one streamed call, a whole reply back. Nothing is stored by the server."""

from __future__ import annotations

from goalmode.domain.messages import Reply, Request
from goalmode.domain.signals import ErrorKind
from goalmode.errors import ModelError
from goalmode.model.wire import responses_messages
from goalmode.model.wire.exchange import HttpModel
from goalmode.model.wire.responses_reply import ResponseAssembly

_NO_REASONING = "encrypted content is not supported"
"""What a model that does not reason says to a request for its reasoning."""


class OpenAIResponses(HttpModel):
    """A model behind an OpenAI Responses endpoint."""

    provider = "openai-responses"
    path = "/responses"

    _reasons = True

    async def complete(self, request: Request) -> Reply:
        """See `goalmode.model.port.Model`. Nothing is retried here but a request for reasoning that does not exist."""
        try:
            return await self._ask(request)
        except ModelError as error:
            refused = error.kind is ErrorKind.BAD_REQUEST and _NO_REASONING in error.message.lower()
            if not (self._reasons and refused):
                raise
        self._reasons = False
        return await self._ask(request)

    async def _ask(self, request: Request) -> Reply:
        body = responses_messages.body(request, self._profile, encrypted=self._reasons)
        return await self._exchange(body, request, ResponseAssembly(self._profile.name))
