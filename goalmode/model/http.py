"""One provider over HTTP: a client built when it is first needed, and errors that show no more than host and status.

A base URL may hold `user:password@` and `?api_key=…`. They travel in a header and below httpx's own logging, and every
text that comes back is struck clean of them before it can become part of an error.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from types import MappingProxyType
from typing import Any, cast
from urllib.parse import parse_qsl, unquote

import anyio
import anyio.lowlevel
import httpx
from httpx_sse import EventSource

from goalmode.domain.clock import Clock
from goalmode.domain.redact import Redactor
from goalmode.domain.signals import ErrorKind
from goalmode.domain.text import one_line
from goalmode.errors import ModelError
from goalmode.model.address import is_loopback
from goalmode.model.classify import classify

MAX_LINE = 8 * 1024 * 1024
"""Bytes of one event of a stream, or of an answer that is not a stream."""
MAX_STREAM = 128 * 1024 * 1024
"""Bytes of a whole stream. The longest honest replies take a third of it, most of that the events' own clothing."""
MAX_ERROR_BODY = 64 * 1024
MAX_MESSAGE = 500
CONNECT_SECONDS = 30.0
DRAIN_SECONDS = 0.25
"""How long the end of a finished stream is waited for, so that the connection can be used again."""


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
        client: httpx.AsyncClient | None = None,
        key: Callable[[str], Mapping[str, str]] = bearer,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._given = client
        self._own: httpx.AsyncClient | None = None
        self._own_loop: object = None
        self._timeout, self._clock = timeout_seconds, clock
        url = _parsed(base_url)
        self._url, self._query = url.copy_with(username=None, password=None, query=None), url.query
        self.host = url.netloc.decode("ascii", "replace")
        pair = f"{unquote(url.username)}:{unquote(url.password)}" if url.username or url.password else ""
        secrets = [api_key or "", url.password, unquote(url.password), pair]
        secrets += [value for _, value in parse_qsl(url.query.decode("ascii", "replace"))]
        self._redact = Redactor(secrets)
        self._headers = {"content-type": "application/json", "accept": "text/event-stream", **headers}
        if pair:
            self._headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        elif api_key:
            if not (api_key.isascii() and api_key.isprintable()):
                raise ModelError(ErrorKind.AUTH, "the API key holds characters that no HTTP header can carry")
            self._headers.update(key(api_key))

    @asynccontextmanager
    async def post(self, path: str, body: bytes) -> AsyncIterator[httpx.Response]:
        """Send `body`; the answer's content is still to be read.

        Raises:
            ModelError: no connection, silence, a status that is not a success; or the connection failed in the block.
        """
        began = False
        try:
            async with aclosing(await self._send(path, body)) as response:
                if not response.is_success:
                    raise self.failure(response.status_code, await _head(response), response.headers)
                began = True
                yield response
        except httpx.TimeoutException:
            raise self.error(
                ErrorKind.TIMEOUT, f"nothing was heard for {self._timeout:g} seconds", began=began
            ) from None
        except (httpx.TransportError, httpx.DecodingError) as lost:
            kind = ErrorKind.STREAM_CUT if began else ErrorKind.CONNECTION
            raise self.error(kind, f"{type(lost).__name__}: {lost}", began=began) from None

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
        message = one_line(f"{self.host}: {self._shown(text, MAX_MESSAGE)}", MAX_MESSAGE)
        return ModelError(kind, message, status=200 if began else None)

    async def aclose(self) -> None:
        """Close the connections. Another call opens new ones."""
        client, self._own = self._own, None
        if client is not None:
            await client.aclose()

    def _shown(self, text: str, limit: int) -> str:
        return one_line(self._redact(text), limit)

    async def _send(self, path: str, body: bytes) -> httpx.Response:
        connection = _Connection()
        try:
            return await self._send_once(path, body, connection)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
            if connection.is_new:
                raise
        # The server closed a kept connection just as it was used again: it has not seen the request.
        return await self._send_once(path, body, connection)

    async def _send_once(self, path: str, body: bytes, connection: _Connection) -> httpx.Response:
        url = self._url.copy_with(path=self._url.path.rstrip("/") + path)
        extensions: dict[str, Any] = {"trace": connection.trace}
        if self._query:
            # httpx logs the URL it is given; the query goes to the layer below, which logs none.
            extensions["target"] = url.raw_path + b"?" + self._query
        client = self._client()
        request = client.build_request(
            "POST", url, content=body, headers=self._headers, extensions=extensions
        )
        return await client.send(request, stream=True)

    def _client(self) -> httpx.AsyncClient:
        if self._given is not None:
            return self._given
        # Connections belong to an event loop; a program may run several, one after the other.
        loop = anyio.lowlevel.current_token()
        if self._own is None or self._own_loop != loop:
            self._own_loop = loop
            timeout = httpx.Timeout(self._timeout, connect=min(self._timeout, CONNECT_SECONDS))
            encrypted = self._url.scheme == "https"  # Elsewhere no certificates need be loaded.
            self._own = httpx.AsyncClient(
                timeout=timeout, verify=encrypted, trust_env=not is_loopback(self._url.host)
            )
        return self._own


async def events(response: httpx.Response, too_long: Exception) -> AsyncGenerator[str]:
    """The data of each event of a stream, up to `[DONE]` or its end. Bytes that are not UTF-8 are replaced.

    Raises:
        Exception: `too_long`, when one event passes `MAX_LINE`, or all of them `MAX_STREAM`.
    """
    source = EventSource(cast(httpx.Response, _Lines(response, too_long)))
    async with aclosing(source.aiter_sse()) as stream:
        async for event in stream:
            if event.data == "[DONE]":
                yield event.data
                with suppress(httpx.HTTPError), anyio.move_on_after(DRAIN_SECONDS):
                    async for _ in stream:
                        pass
                return
            if event.data:
                yield event.data


async def whole(response: httpx.Response, too_long: Exception) -> bytes:
    """The whole content of an answer that is no stream.

    Raises:
        Exception: `too_long`, when it passes `MAX_LINE`.
    """
    content = bytearray()
    async for piece in response.aiter_bytes():
        content += piece
        if len(content) > MAX_LINE:
            raise too_long
    return bytes(content)


class _Connection:
    """Notices whether a request opened a connection or was sent on a kept one."""

    def __init__(self) -> None:
        self.is_new = False

    async def trace(self, event: str, info: Mapping[str, Any]) -> None:
        if event == "connection.connect_tcp.started":
            self.is_new = True


class _Lines:
    """What httpx-sse reads of a response, with a bound on one event and on all, and the last event always ended."""

    def __init__(self, response: httpx.Response, too_long: Exception) -> None:
        self._response, self._too_long = response, too_long
        response.encoding = "utf-8"
        self.headers = {"content-type": "text/event-stream"}

    async def aiter_text(self) -> AsyncIterator[str]:
        of_event, of_all, tail = 0, 0, ""
        async for text in self._response.aiter_text():
            of_all += len(text)
            seen = tail + text
            end = max(seen.rfind("\n\n"), seen.rfind("\n\r\n"), seen.rfind("\r\r"))
            of_event = of_event + len(text) if end < 0 else len(seen) - end
            if of_event > MAX_LINE or of_all > MAX_STREAM:
                raise self._too_long
            yield text
            tail = seen[-2:]
        yield "\n\n"


async def _head(response: httpx.Response) -> bytes:
    content = bytearray()
    async for piece in response.aiter_bytes():
        content += piece
        if len(content) >= MAX_ERROR_BODY:
            break
    return bytes(content[:MAX_ERROR_BODY])


def _parsed(base_url: str) -> httpx.URL:
    try:
        url = httpx.URL(base_url)
    except (httpx.InvalidURL, ValueError, TypeError):
        url = httpx.URL()
    if url.scheme not in ("http", "https") or not url.host or (url.port or 0) > 65_535:
        raise ModelError(ErrorKind.BAD_REQUEST, "base_url is not an http or https address")
    return url
