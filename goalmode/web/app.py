"""The pages put together: which path leads where, and one clear page for everything that goes wrong."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

from anyio import to_thread
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from goalmode.errors import (
    BadInput,
    GoalmodeError,
    NotAllowed,
    StoreBusy,
    StoreError,
    StoreUnreadable,
    UnknownGoal,
)
from goalmode.web import actions, contexts, forms, goal, listing, turns
from goalmode.web.access import Access
from goalmode.web.ask import Ask
from goalmode.web.keys import Keys, same
from goalmode.web.live import Streams
from goalmode.web.refusals import Refused
from goalmode.web.render import Templates
from goalmode.web.stores import Stores
from goalmode.web.words import Words

_LOG = logging.getLogger(__name__)

STATIC = Path(__file__).parent / "static"

STATUSES: Mapping[type[GoalmodeError], int] = {
    BadInput: 400,
    UnknownGoal: 404,
    NotAllowed: 409,
    StoreUnreadable: 500,
    StoreBusy: 503,
    StoreError: 503,
}
"""What an error is to a browser: the first class that it belongs to."""

Answer = Callable[[Ask], Response]
AsyncAnswer = Callable[[Ask], Awaitable[Response]]


def app(stores: Stores, keys: Keys, hosts: frozenset[str], streams: Streams | None = None) -> ASGIApp:
    """The pages of a store.

    Args:
        hosts: the Host headers that are served, in lower case.
    """
    pages = _Pages(stores, keys)
    streams = streams or Streams()
    under = "/goals/{uid}"
    room = [
        Route("/", pages.shows(listing.index)),
        Route(under, pages.shows(goal.page)),
        Route(f"{under}/wakeups.json", pages.shows(goal.series)),
        Route(f"{under}/events", pages.answers(streams.answer)),
        Route(f"{under}/turns", pages.shows(turns.page)),
        Route(f"{under}/turns/{{wakeup}}/{{turn}}", pages.shows(turns.one)),
        Route(f"{under}/contexts/{{wakeup}}", pages.shows(contexts.page)),
        Route(f"{under}/abort", pages.shows(actions.confirm)),
        *(
            Route(f"{under}/{name}", pages.takes(partial(actions.act, action=action)), methods=["POST"])
            for name, action in actions.ACTIONS.items()
        ),
    ]
    routes = [
        Route("/", pages.shows(partial(_door, status=200))),
        Route("/session", pages.answers(_sign_in), methods=["POST"]),
        Mount("/static", StaticFiles(directory=STATIC)),
        Mount(keys.base, routes=room),
    ]
    inner = Starlette(routes=routes, exception_handlers={HTTPException: pages.not_there})
    return Access(inner, keys=keys, hosts=hosts, sign_in=pages.locked)


class _Pages:
    """Turns what answers a request into an endpoint."""

    def __init__(self, stores: Stores, keys: Keys) -> None:
        self._stores, self._keys, self._templates = stores, keys, Templates(stores.redact)

    def shows(self, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
        """A page; it waits for the store in a thread."""
        return self.answers(lambda ask: to_thread.run_sync(answer, ask))

    def takes(self, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
        """What a form is sent to."""

        async def read(ask: Ask) -> Response:
            form = await forms.read(ask.request, self._keys.csrf)
            return await to_thread.run_sync(answer, self._ask(ask.request, form))

        return self.answers(read)

    def answers(self, answer: AsyncAnswer) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint that says in one line what went wrong, if anything does."""

        async def endpoint(request: Request) -> Response:
            ask = self._ask(request)
            try:
                return await answer(ask)
            except Refused as refused:
                return self._problem(ask, refused.status, Words(ask.lang)(refused.key, **refused.values))
            except GoalmodeError as error:
                status = next((code for kind, code in STATUSES.items() if isinstance(error, kind)), 500)
                return self._problem(ask, status, str(error))
            except Exception as error:  # noqa: BLE001 - whatever it is, the browser gets one line
                _LOG.error(
                    "%s %s: %s",
                    request.method,
                    request.url.path.removeprefix(self._keys.base),
                    self._stores.redact(traceback.format_exc()),
                )
                return self._problem(ask, 500, Words(ask.lang)("problem.own", kind=type(error).__name__))

        return endpoint

    async def locked(self, request: Request) -> Response:
        """To whom has not signed in: how that is done, and nothing of any goal."""
        return _door(self._ask(request), status=401)

    async def not_there(self, request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        ask = self._ask(request)
        key = "problem.method" if status == 405 else "problem.not_there"
        return self._problem(ask, status, Words(ask.lang)(key))

    def _ask(self, request: Request, form: Mapping[str, str] | None = None) -> Ask:
        return Ask(request, self._stores, self._keys, self._templates, form or {})

    def _problem(self, ask: Ask, status: int, line: str) -> Response:
        inside = ask.request.url.path.startswith(f"{self._keys.base}/")
        return ask.page("problem.html", status, inside=inside, line=line)


def _door(ask: Ask, *, status: int) -> Response:
    """The page on which a browser signs in."""
    return ask.page("sign_in.html", status, inside=False, refused=status == 403)


async def _sign_in(ask: Ask) -> Response:
    """A token for a cookie."""
    form = await forms.read(ask.request, None)
    if not same(form.get("token", "").strip(), ask.keys.token):
        return _door(ask, status=403)
    response = RedirectResponse(f"{ask.keys.base}/", 303)
    response.set_cookie(
        ask.keys.cookie, ask.keys.session, path=f"{ask.keys.base}/", httponly=True, samesite="strict"
    )
    return response
