"""One provider over HTTP: a client built when it is first needed, and errors that show no more than host and status.

A base URL may hold `user:password@` and `?api_key=…`. They travel in a header and in the request's target, and every
text that comes back is struck clean of them before it can become part of an error.
"""

from __future__ import annotations

import asyncio
import base64
import io
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import urlsplit

import aiohttp
import anyio
from yarl import URL

from goalmode.domain.address import is_web_address
from goalmode.domain.clock import Clock
from goalmode.domain.redact import Redactor, url_secrets
from goalmode.domain.signals import ErrorKind
from goalmode.domain.text import one_line
from goalmode.errors import ModelError
from goalmode.model.classify import classify
from goalmode.model.connector import Connector, certificates, connector_of
from goalmode.model.proxy import proxy_for
from goalmode.model.sse import StreamTooLong

MAX_BODY = 8 * 1024 * 1024
"""Bytes of an answer that is not a stream."""
MAX_ERROR_BODY = 64 * 1024
MAX_MESSAGE = 500
MAX_HEADER = 64 * 1024
"""Bytes of one line of an answer's head: gateways put whole policies into them."""
MAX_HEADERS = 512
"""Lines of an answer's head: a chain of gateways adds some at each step."""
CONNECT_SECONDS = 30.0
RESEND_SECONDS = 0.25
"""After which a kept connection that breaks was not closed before the request came: the server may be working on it."""
WRITTEN_AT_ONCE = 1024 * 1024
"""Bytes of a request; a longer one is written in pieces."""


def bearer(api_key: str) -> Mapping[str, str]:
    """A key as most providers want it."""
    return {"authorization": f"Bearer {api_key}"}


class Http:
    """Posts JSON to one base URL.

    Args:
        client: used instead of one of our own, and not closed by us.
        key: the headers that carry the key.
        headers: of every request.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str | None,
        *,
        timeout_seconds: float,
        clock: Clock,
        client: aiohttp.ClientSession | None = None,
        key: Callable[[str], Mapping[str, str]] = bearer,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._given = client
        self._own: dict[asyncio.AbstractEventLoop, _Opened] = {}
        self._timeout, self._clock = timeout_seconds, clock
        self._connect_seconds = min(timeout_seconds, CONNECT_SECONDS)
        self._send_seconds = 3 * timeout_seconds
        url, self._query = _parsed(base_url)
        self._url = url.with_user(None).with_query(None).with_fragment(None)
        self._proxy = proxy_for(url)
        self.host = url.host_port_subcomponent or ""
        pair = f"{url.user or ''}:{url.password or ''}" if url.user or url.password else ""
        in_urls = (
            *url_secrets(base_url),
            *url_secrets(f"?{self._query}", every=True),
            *url_secrets(self._proxy or ""),
        )
        self._redact = Redactor((api_key or "", pair, *in_urls))
        self._own_url = re.compile(rf"{re.escape(str(self._url).rstrip('/'))}[^\s'\"]*")
        self._headers = {"content-type": "application/json", "accept": "text/event-stream", **headers}
        if pair:
            self._headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        elif api_key:
            if not (api_key.isascii() and api_key.isprintable()):
                raise ModelError(ErrorKind.AUTH, "the API key holds characters that no HTTP header can carry")
            self._headers.update(key(api_key))

    @asynccontextmanager
    async def post(self, path: str, body: bytes) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send `body`; the answer's content is still to be read.

        Raises:
            ModelError: no connection, silence, a status that is not a success; or the connection failed in the block.
        """
        began = False
        try:
            async with await self._send(path, body) as response:
                if not 200 <= response.status < 300:
                    raise self.failure(response.status, await _head(response), response.headers)
                began = True
                yield response
        except TimeoutError as late:
            said = f"the request was not taken within {self._send_seconds:g} seconds"
            if isinstance(late, aiohttp.ConnectionTimeoutError):
                said = f"no connection within {self._connect_seconds:g} seconds"
            elif isinstance(late, aiohttp.ServerTimeoutError):
                said = f"nothing was heard for {self._timeout:g} seconds"
            raise self.error(ErrorKind.TIMEOUT, said, began=began) from None
        except (aiohttp.ClientError, OSError) as lost:
            kind = ErrorKind.STREAM_CUT if began else ErrorKind.CONNECTION
            said = lost.message if isinstance(lost, aiohttp.ClientResponseError) else str(lost)
            raise self.error(kind, f"{type(lost).__name__}: {said}", began=began) from None
        except UnicodeError:
            raise self.error(ErrorKind.BAD_REQUEST, "base_url names a host that no server can have") from None

    def failure(self, status: int, body: bytes | str, headers: Mapping[str, str]) -> ModelError:
        """The error that a provider's answer is."""
        found = classify(status, body, {k.lower(): v for k, v in headers.items()}, self._clock.now())
        said = self._shown(found.message, MAX_MESSAGE) or "no further words"
        return ModelError(
            found.kind,
            one_line(f"{self.host}: {said}", MAX_MESSAGE),
            status=status,
            raw_type=self._shown(found.raw_type, 100) if found.raw_type else None,
            retry_after=found.wait.after,
            reset_at=found.wait.until,
            should_retry=found.wait.should_retry,
        )

    def error(self, kind: ErrorKind, text: str, *, began: bool = True) -> ModelError:
        """An error of ours about this provider's answer."""
        text = self._own_url.sub("its address", text)  # A token may be anywhere in it.
        message = one_line(f"{self.host}: {self._shown(text, MAX_MESSAGE)}", MAX_MESSAGE)
        return ModelError(kind, message, status=200 if began else None)

    async def aclose(self) -> None:
        """Close the connections of this event loop. Another call opens new ones."""
        here = asyncio.get_running_loop()
        for loop in list(self._own):
            if (loop is here or loop.is_closed()) and (opened := self._own.pop(loop, None)):
                await opened.closes.aclose()

    def _shown(self, text: str, limit: int) -> str:
        return one_line(self._redact(text), limit)

    async def _send(self, path: str, body: bytes) -> aiohttp.ClientResponse:
        client, started = await self._client(), self._clock.monotonic()
        connector = connector_of(client)
        opened = None if connector is None else connector.opened
        try:
            return await self._send_once(client, path, body)
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as lost:
            kept = connector is not None and connector.opened == opened
            begun = isinstance(getattr(lost, "message", None), aiohttp.http.RawResponseMessage)
            if not kept or begun or self._clock.monotonic() - started > RESEND_SECONDS:
                raise
        # The server closed a kept connection just as it was used again.
        return await self._send_once(client, path, body)

    async def _send_once(
        self, client: aiohttp.ClientSession, path: str, body: bytes
    ) -> aiohttp.ClientResponse:
        query = f"?{self._query}" if self._query else ""
        url = URL(f"{self._url}".rstrip("/") + path + query, encoded=True)
        data = body if len(body) <= WRITTEN_AT_ONCE else io.BytesIO(body)
        # aiohttp's own limits are on connecting and on silence; a server that does not read is silent in another way.
        try:
            with anyio.fail_after(self._send_seconds):
                return await client.post(url, data=data, headers=self._headers, allow_redirects=False)
        except BaseException:
            if (connector := connector_of(client)) is not None:
                connector.cut()
            raise

    async def _client(self) -> aiohttp.ClientSession:
        if self._given is not None:
            return self._given
        # Connections belong to an event loop; a program may run several, one after the other.
        loop = asyncio.get_running_loop()
        if loop not in self._own:
            await self.aclose()
            opens = self._opens()
            self._own[loop] = _Opened(await anext(opens), opens)
        return self._own[loop].client

    async def _opens(self) -> AsyncGenerator[aiohttp.ClientSession]:
        # Elsewhere no certificates need be loaded.
        encrypted = self._url.scheme == "https" or (self._proxy or "").startswith("https:")
        # A program that closes nothing leaves nothing behind: its loop, as it ends, closes what generators hold open.
        async with aiohttp.ClientSession(
            connector=Connector(ssl=certificates() if encrypted else False),
            timeout=aiohttp.ClientTimeout(connect=self._connect_seconds, sock_read=self._timeout),
            proxy=self._proxy,
            cookie_jar=aiohttp.DummyCookieJar(),
            max_line_size=MAX_HEADER,
            max_field_size=MAX_HEADER,
            max_headers=MAX_HEADERS,
        ) as client:
            yield client


@dataclass(frozen=True, slots=True)
class _Opened:
    """A client, and what closes it."""

    client: aiohttp.ClientSession
    closes: AsyncGenerator[aiohttp.ClientSession]


async def whole(response: aiohttp.ClientResponse) -> bytes:
    """The whole content of an answer that is no stream.

    Raises:
        StreamTooLong: it passes `MAX_BODY`.
    """
    content = bytearray()
    async for piece in response.content.iter_any():
        content += piece
        if len(content) > MAX_BODY:
            raise StreamTooLong(f"more than {MAX_BODY} bytes in one piece")
    return bytes(content)


async def _head(response: aiohttp.ClientResponse) -> bytes:
    content = bytearray()
    async for piece in response.content.iter_any():
        content += piece
        if len(content) >= MAX_ERROR_BODY:
            break
    return bytes(content[:MAX_ERROR_BODY])


def _parsed(base_url: str) -> tuple[URL, str]:
    """The address, and its query as it was written where that can be sent: a signature may be of exactly that."""
    try:
        url = URL(base_url) if is_web_address(base_url) else URL()
        known = bool(url.host)
    except ValueError:  # Also what no encoding of names takes.
        url, known = URL(), False
    if not known:
        raise ModelError(ErrorKind.BAD_REQUEST, "base_url is not an http or https address")
    written = urlsplit(base_url).query
    return url, written if written.isascii() and " " not in written else url.raw_query_string
