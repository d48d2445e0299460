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


class OpenModel(Model, Protocol):
    """A model that holds connections."""

    async def aclose(self) -> None:
        """Close them. Another call opens new ones."""
        ...


async def close(model: Model) -> None:
    """Close what `model` holds open, if it is of the kind that holds anything."""
    aclose = getattr(model, "aclose", None)
    if aclose is not None:
        await aclose()
