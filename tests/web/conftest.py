"""The pages over a goal in a real store, asked as a browser asks: over ASGI, without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

import anyio
import httpx
import pytest

from goalmode.domain.redact import Redactor
from goalmode.web.app import app
from goalmode.web.keys import Keys
from goalmode.web.live import Streams
from goalmode.web.stores import Stores
from tests.loop.conftest import Make, World, make

__all__ = ["make"]

HOST = "127.0.0.1:8421"
ORIGIN = f"http://{HOST}"
SECRET = "correct-horse-battery"
FORM = {"content-type": "application/x-www-form-urlencoded"}


@dataclass
class Read(HTMLParser):
    """A page as a browser reads it: its tags, and the text of each that is open."""

    html: str
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    text: str = ""

    def __post_init__(self) -> None:
        super().__init__()
        self._skipped = 0
        self.feed(self.html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for found, attrs in self.tags if found == tag]

    def names(self) -> set[str]:
        return {tag for tag, _ in self.tags}


class Pages:
    """A browser that has signed in, unless it is told otherwise."""

    def __init__(self, world: World, **options: Any) -> None:
        self.world, self.keys = world, Keys.new()
        self.stores = Stores(world.store.url, redact=Redactor([SECRET]), clock=world.clock, **options)
        self.streams = Streams()
        self.app = app(self.stores, self.keys, frozenset({HOST}), self.streams)
        self.cookies = {self.keys.cookie: self.keys.session}

    @property
    def goal(self) -> str:
        """The path of the goal's page."""
        return f"{self.keys.base}/goals/{self.world.goal.uid}"

    def ask(
        self, method: str, path: str, *, headers: Mapping[str, str] | None = None, content: bytes | str = b""
    ) -> httpx.Response:
        """Any request at all, without a cookie unless `headers` has one."""

        async def send() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url=ORIGIN) as client:
                return await client.request(method, path, headers=dict(headers or {}), content=content)

        return anyio.run(send)

    def get(self, path: str, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.ask("GET", path, headers={"cookie": self.cookie, **named})

    def post(
        self, path: str, fields: Mapping[str, str] | None = None, **headers: str | None
    ) -> httpx.Response:
        """A form of one of the pages. A header that is None is left out; fields without `csrf` get the right one."""
        sent = {"cookie": self.cookie, "origin": ORIGIN, "sec-fetch-site": "same-origin", **FORM}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}  # type: ignore[misc]
        given = {name: value for name, value in sent.items() if value is not None}
        content = urlencode({"csrf": self.keys.csrf, **(fields or {})})
        return self.ask("POST", path, headers=given, content=content)

    def do(self, action: str, **fields: str) -> httpx.Response:
        """One of the forms of the goal's page."""
        return self.post(f"{self.goal}/{action}", fields)

    @property
    def cookie(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self.cookies.items())

    def read(self, path: str, **headers: str) -> Read:
        """A page that must be there."""
        response = self.get(path, **headers)
        assert response.status_code == 200, response.text
        return Read(response.text)

    def page(self, **headers: str) -> Read:
        """The goal's page."""
        return self.read(self.goal, **headers)


@pytest.fixture
def open_pages(make: Make) -> Iterator[Callable[..., Pages]]:
    """Makes a goal and its pages: `open_pages(deliverables=("a",), …)`."""
    made: list[Pages] = []

    def build(*arguments: Any, **options: Any) -> Pages:
        made.append(Pages(make(*arguments, **options)))
        return made[-1]

    yield build
    for pages in made:
        pages.stores.close()


@pytest.fixture
def pages(open_pages: Callable[..., Pages]) -> Pages:
    return open_pages()
