"""Who may ask for what: the first thing that every request meets, whatever its method and wherever it leads.

- The Host header is one of those that are allowed, exactly: a name that a page elsewhere has pointed at this machine
  (DNS rebinding) gets nothing, not even a stylesheet.
- A request that writes comes from one of our own pages: its Origin is the host that it asks, and no browser says that
  another site sent it. (Its form also holds a key: `forms.py`.)
- All that is read of goals takes the cookie of a browser that has signed in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from goalmode.domain.text import one_line
from goalmode.web.keys import Keys, same

READS = ("GET", "HEAD")

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not "no-referrer": with that, browsers send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""On every response. No page loads anything from elsewhere, runs a script that is written in it, or is framed."""

_RAW_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

Refuse = Callable[[Request], Awaitable[Response]]


class Access:
    """The pages behind their locks.

    Args:
        hosts: the Host headers that are served, in lower case, with the port where it is not the scheme's own.
        sign_in: answers who has not signed in and asks for a page.
    """

    def __init__(self, app: ASGIApp, *, keys: Keys, hosts: frozenset[str], sign_in: Refuse) -> None:
        self._app, self._keys, self._hosts, self._sign_in = app, keys, hosts, sign_in

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":  # There are neither lifespans nor web sockets.
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_RAW_HEADERS]
            await send(message)

        request = Request(scope, receive)
        refusal = self._foreign(request)
        if refusal is None and self._locked(request):
            refusal = await self._sign_in(request)
        await (refusal or self._app)(scope, receive, send_guarded)

    def _foreign(self, request: Request) -> Response | None:
        """The answer to a request that is meant for another host, or made by another site."""
        hosts = request.headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            named = one_line(", ".join(hosts), 100)
            line = f"host: {named!r} is not served here; `goalmode web --allow-host NAME` allows a name\n"
            return PlainTextResponse(line, HTTPStatus.MISDIRECTED_REQUEST)
        if request.method in READS or _is_own(request, hosts[0]):
            return None
        return PlainTextResponse(
            "A change is taken from a page of goalmode's own only.\n", HTTPStatus.FORBIDDEN
        )

    def _locked(self, request: Request) -> bool:
        path = request.url.path
        if path != self._keys.base and not path.startswith(f"{self._keys.base}/"):
            return False
        return not same(request.cookies.get(self._keys.cookie, ""), self._keys.session)


def _is_own(request: Request, host: str) -> bool:
    """Whether a page of this host sent it, as far as the browser says. One that says nothing is refused."""
    origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site")
    if site not in (None, "same-origin"):
        return False
    if origin is None:
        return site == "same-origin"
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()
