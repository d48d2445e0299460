"""An MCP server that is reached over streamable HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from mcp.client.streamable_http import streamable_http_client

from goalmode.domain.outside import Server

_CONNECT_SECONDS = 30.0


@asynccontextmanager
async def http(server: Server) -> AsyncIterator[Any]:
    """The streams to and from the server, its configured headers sent with every request."""
    limits = httpx2.Timeout(_CONNECT_SECONDS, read=server.call_seconds)
    async with (
        httpx2.AsyncClient(headers=dict(server.headers), timeout=limits) as client,
        streamable_http_client(server.url, http_client=client) as streams,
    ):
        yield streams
