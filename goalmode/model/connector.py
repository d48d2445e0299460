"""The connections to one provider, and the certificates by which they trust it."""

from __future__ import annotations

import asyncio
import os
import ssl
from functools import cache
from typing import Any
from weakref import WeakSet

import aiohttp
import certifi


class Connector(aiohttp.TCPConnector):
    """Counts the connections that it opens: a request for which it opened none was sent on a kept one."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.opened = 0
        self._transports: WeakSet[asyncio.Transport] = WeakSet()

    async def _create_connection(self, *given: Any, **more: Any) -> Any:
        # Not by tracing, which costs a tenth of a request in events that nobody listens to.
        self.opened += 1
        protocol = await super()._create_connection(*given, **more)
        if protocol.transport is not None:
            self._transports.add(protocol.transport)
        return protocol

    def cut(self) -> None:
        """Send nothing more on connections that are being closed: of a call that was given up, nothing is to arrive."""
        for transport in self._transports:
            if transport.is_closing():
                transport.abort()


def connector_of(client: aiohttp.ClientSession) -> Connector | None:
    """That of a client which is one of ours; a client that was given to us may have another one."""
    return client.connector if isinstance(client.connector, Connector) else None


@cache
def certificates() -> ssl.SSLContext:
    """Those of the system where the user names them, else certifi's: some Pythons come without any."""
    named = os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")
    return ssl.create_default_context(cafile=None if named else certifi.where())
