"""One request to the pages, as those who answer it see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from goalmode.errors import BadInput
from goalmode.web.keys import Keys
from goalmode.web.render import Templates
from goalmode.web.stores import Stores
from goalmode.web.words import LANGUAGES, Words, chosen

LANG_COOKIE = "goalmode_lang"
MAX_NUMBER = 10**12


@dataclass(frozen=True, slots=True)
class Ask:
    """A request with what answers to it are made of.

    Attributes:
        form: the fields of a form; empty where none was sent.
    """

    request: Request
    stores: Stores
    keys: Keys
    templates: Templates
    form: Mapping[str, str] = field(default_factory=dict)

    @property
    def lang(self) -> str:
        wanted = self.request.query_params.get("lang")
        return chosen(
            wanted,
            self.request.cookies.get(LANG_COOKIE),
            self.request.headers.get("accept-language", ""),
        )

    @property
    def uid(self) -> str:
        return str(self.request.path_params["uid"])

    def number(self, name: str, otherwise: int | None = None) -> int | None:
        """A number from 1 in the path or the query.

        Raises:
            BadInput: it is none.
        """
        given = self.request.path_params.get(name, self.request.query_params.get(name))
        if given is None or given == "":
            return otherwise
        text = str(given)
        if not (text.isascii() and text.isdigit() and len(text) < 20 and 1 <= int(text) <= MAX_NUMBER):
            raise BadInput(name, text, "a whole number from 1")
        return int(text)

    def page(self, template: str, status: int = 200, *, inside: bool = True, **values: Any) -> Response:
        """A page; a language that the address asks for is kept for those that follow.

        Args:
            inside: whether whoever asks has signed in. The path of the goals is told to nobody else.
        """
        own = {"base": self.keys.base, "csrf": self.keys.csrf, "store": self.stores.name} if inside else {}
        words = {"t": Words(self.lang), "languages": self._languages(), "inside": inside}
        response = HTMLResponse(
            self.templates(template, {**own, **words, **values}),
            status,
            {"Cache-Control": "no-store", "Content-Language": self.lang},
        )
        if self.request.query_params.get("lang") in LANGUAGES:
            response.set_cookie(LANG_COOKIE, self.lang, httponly=True, samesite="strict")
        return response

    def to_goal(self, uid: str, did: str) -> Response:
        """Back to the goal's page, which says what was done."""
        return RedirectResponse(f"{self.keys.base}/goals/{uid}?{urlencode({'did': did})}", 303)

    def _languages(self) -> list[dict[str, object]]:
        """The links that show this page in each language."""
        query = [(k, v) for k, v in self.request.query_params.multi_items() if k not in ("lang", "did")]
        return [
            {
                "tag": tag,
                "name": name,
                "current": tag == self.lang,
                "query": urlencode([*query, ("lang", tag)]),
            }
            for tag, name in LANGUAGES.items()
        ]
