"""The seam: one method. A wire format, the scripted model and every wrapper implement it."""

from __future__ import annotations

from typing import Protocol

from goalmode.domain.messages import Reply, Request


class Model(Protocol):
    async def complete(self, request: Request) -> Reply:
        """Send one request and return the whole reply.

        Raises:
            ModelError: the call failed; `kind` says what that means. Never for an ending the provider did report:
                those are a `Reply` with their `stop`.
        """
        ...
