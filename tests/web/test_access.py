"""Nobody reads or changes a goal who has not signed in, from elsewhere, or under another name of this machine."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from goalmode.web import keys
from goalmode.web.access import HEADERS
from goalmode.web.actions import ACTIONS
from goalmode.web.keys import Keys, same
from tests.web.conftest import FORM, HOST, ORIGIN, Pages, Read

pytestmark = pytest.mark.once

OWN = {"origin": ORIGIN, "sec-fetch-site": "same-origin", **FORM}


def locked(pages: Pages) -> list[str]:
    """All paths under which something of a goal is read."""
    below = ("", "/wakeups.json", "/events", "/turns", "/turns/1/1", "/contexts/1", "/abort")
    return [pages.keys.base, f"{pages.keys.base}/", *(f"{pages.goal}{path}" for path in below)]


def test_a_token_gives_a_cookie_and_nothing_else(pages: Pages) -> None:
    """The token goes into a body, never into a path; the cookie is out of reach for scripts, other sites and ports."""
    done = pages.ask("POST", "/session", headers=OWN, content=f"token={pages.keys.token}")

    assert (done.status_code, done.headers["location"]) == (303, f"{pages.keys.base}/")
    cookie = done.headers["set-cookie"]
    assert cookie.startswith(f"{pages.keys.cookie}={pages.keys.session};")
    assert {"HttpOnly", "SameSite=strict", f"Path={pages.keys.base}/"} <= set(cookie.split("; "))
    assert pages.keys.token not in cookie
    assert pages.get(f"{pages.keys.base}/").status_code == 200


@pytest.mark.parametrize("token", ["", "x", "TOKEN-", "-TOKEN", "é", "\ud800"])
def test_a_wrong_token_opens_nothing(pages: Pages, token: str) -> None:
    """It is refused, and not repeated; the page says how to sign in and nothing of any goal."""
    given = token.replace("TOKEN", pages.keys.token).encode("utf-8", "surrogatepass")
    done = pages.ask("POST", "/session", headers=OWN, content=b"token=" + given)

    assert done.status_code in (400, 403)
    assert "set-cookie" not in done.headers
    assert pages.keys.base not in done.text
    assert pages.keys.token not in done.text


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_nothing_is_read_without_the_cookie(pages: Pages, method: str) -> None:
    """Every page, the event stream and the plots' figures ask for it; what comes instead names no goal."""
    for path in locked(pages):
        for cookie in ("", f"{pages.keys.cookie}=", f"{pages.keys.cookie}={pages.keys.token}", "goalmode=1"):
            done = pages.ask(method, path, headers={"cookie": cookie} if cookie else {})
            assert done.status_code == 401, path
            assert pages.world.goal.uid not in done.text
            assert "report" not in done.text
            assert pages.keys.csrf not in done.text


def test_nothing_is_changed_without_the_cookie(pages: Pages) -> None:
    """A form with the right key but without the cookie changes nothing."""
    for action in ACTIONS:
        done = pages.post(f"{pages.goal}/{action}", {"text": "x"}, cookie=None)
        assert done.status_code == 401

    assert pages.world.now == pages.world.goal


def test_the_way_in_says_nothing_of_what_is_behind_it(pages: Pages) -> None:
    """The page at the root is the same for everybody, and holds neither the path of the goals nor a key."""
    for cookie in ({}, {"cookie": pages.cookie}):
        shown = pages.ask("GET", "/", headers=cookie)
        assert shown.status_code == 200
        for secret in (pages.keys.room, pages.keys.token, pages.keys.session, pages.keys.csrf):
            assert secret not in shown.text
        assert str(pages.world.store.path) not in shown.text


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1",
        "127.0.0.1:8422",
        f"{HOST}.evil.example",
        f"evil.example:{HOST.partition(':')[2]}",
        f"x@{HOST}",
        f"{HOST},evil.example",
        "",
    ],
)
def test_only_names_that_are_allowed_are_served(pages: Pages, method: str, host: str) -> None:
    """Exactly these Host headers, on every method and every path: against names that point here (DNS rebinding)."""
    headers = {"host": host, "cookie": pages.cookie, **OWN, "origin": f"http://{host}"}
    for path in ("/", "/session", "/static/page.css", f"{pages.keys.base}/", f"{pages.goal}/events"):
        done = pages.ask(method, path, headers=headers)
        assert done.status_code == 421, path
        assert pages.world.goal.uid not in done.text


def test_a_request_without_a_host_or_with_two_is_refused(pages: Pages) -> None:
    """HTTP/1.0 needs no Host header; we do."""
    import anyio

    async def status_of(headers: list[tuple[bytes, bytes]]) -> int:
        sent: list[int] = []

        async def receive() -> dict[str, object]:
            return {"type": "http.disconnect"}

        async def send(message: dict[str, object]) -> None:
            if message["type"] == "http.response.start":
                sent.append(int(str(message["status"])))

        path = f"{pages.keys.base}/"
        scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": headers}
        await pages.app(scope, receive, send)  # type: ignore[arg-type]
        return sent[0]

    cookie = (b"cookie", pages.cookie.encode())
    assert anyio.run(status_of, [cookie]) == 421
    assert anyio.run(status_of, [(b"host", HOST.encode()), (b"host", b"evil.example"), cookie]) == 421


def test_a_host_is_known_in_any_case(pages: Pages) -> None:
    """Host names have no case."""
    assert pages.get(f"{pages.keys.base}/", host=HOST.upper()).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:8422"},
        {"origin": f"ftp://{HOST}"},
        {"origin": f"http://{HOST}.evil.example"},
        {"origin": "http://["},
        {"origin": "", "sec_fetch_site": None},
        {"origin": None, "sec_fetch_site": None},
        {"origin": None, "sec_fetch_site": "none"},
        {"sec_fetch_site": "cross-site"},
        {"sec_fetch_site": "same-site"},
        {"sec_fetch_site": "none"},
    ],
    ids=str,
)
def test_a_change_comes_from_a_page_of_our_own(pages: Pages, headers: dict[str, str | None]) -> None:
    """With cookie and key, but from another site, another port, or nowhere: refused, and nothing is changed."""
    done = pages.post(f"{pages.goal}/pause", {}, **headers)

    assert done.status_code == 403
    assert pages.world.now == pages.world.goal


@pytest.mark.parametrize(
    "headers", [{"sec_fetch_site": None}, {"origin": None}, {"origin": f"https://{HOST}"}], ids=str
)
def test_either_header_is_enough(pages: Pages, headers: dict[str, str | None]) -> None:
    """Browsers that send one of the two are served; a proxy may speak TLS for us."""
    assert pages.post(f"{pages.goal}/note", {"text": "x"}, **headers).status_code == 303


@pytest.mark.parametrize("key", ["", "x", "SESSION", "TOKEN", "CSRF "])
def test_a_form_without_its_key_is_refused(pages: Pages, key: str) -> None:
    """The cookie alone is not enough, and no other key is taken for it."""
    known = {"SESSION": pages.keys.session, "TOKEN": pages.keys.token, "CSRF ": f"{pages.keys.csrf} "}
    done = pages.post(f"{pages.goal}/pause", {"csrf": known.get(key, key)})

    assert done.status_code == 403
    assert pages.world.now == pages.world.goal


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH"])
def test_there_are_no_other_ways_to_change(pages: Pages, method: str) -> None:
    """What no form does is no way in."""
    done = pages.ask(method, pages.goal, headers={**OWN, "cookie": pages.cookie})

    assert done.status_code == 405
    assert pages.world.now == pages.world.goal


def test_reading_is_no_way_to_change(pages: Pages) -> None:
    """A link does nothing: forms are sent by POST alone."""
    for action in set(ACTIONS) - {"abort"}:
        assert pages.get(f"{pages.goal}/{action}").status_code == 405
    assert pages.get(f"{pages.goal}/abort").status_code == 200

    assert pages.world.now == pages.world.goal


def test_every_response_has_the_headers(pages: Pages) -> None:
    """Pages, refusals, errors, redirects and files: no script in a page, no frame, nothing from elsewhere."""
    responses = [
        pages.get(f"{pages.keys.base}/"),
        pages.get("/nowhere"),
        pages.get("/static/page.css"),
        pages.get("/", host="evil.example"),
        pages.ask("GET", pages.goal),
        pages.do("note", text="x"),
        pages.do("note", text=""),
    ]
    for response in responses:
        assert {name.lower(): value for name, value in HEADERS.items()}.items() <= dict(
            response.headers
        ).items()

    assert "'unsafe" not in HEADERS["Content-Security-Policy"]
    assert all(r.headers["cache-control"] == "no-store" for r in (responses[0], responses[4], responses[6]))


def test_no_page_has_a_script_or_a_style_of_its_own(open_pages: Callable[..., Pages]) -> None:
    """What the policy forbids is not there to be forbidden: everything comes from files of ours."""
    pages = open_pages(deliverables=("a.txt",), requirements=("Be good.",))
    for path in ("/", f"{pages.keys.base}/", pages.goal, f"{pages.goal}/turns", f"{pages.goal}/abort"):
        shown = pages.read(path)
        assert all(str(attrs.get("src", "")).startswith("/static/") for attrs in shown.all("script"))
        assert "style" not in shown.names()
        assert not [
            name for _, attrs in shown.tags for name in attrs if name == "style" or name.startswith("on")
        ]
        linked = [str(attrs.get(name, "/")) for _, attrs in shown.tags for name in ("href", "src", "action")]
        assert not [link for link in linked if re.match(r"(?i)[a-z]+:|//", link)]


def test_keys_are_new_for_each_process_and_compared_whole() -> None:
    """No two processes share one, and nothing but the key is the key."""
    first, second = Keys.new(), Keys.new()

    assert len({*_values(first), *_values(second)}) == 8
    assert all(len(key) >= 2 * keys.BYTES for key in (first.token, first.session, first.csrf))
    assert same(first.token, first.token)
    for other in ("", first.token[:-1], f"{first.token}0", second.token, "ключ", "\udc80"):
        assert not same(other, first.token)


def _values(one: Keys) -> tuple[str, ...]:
    return (one.token, one.session, one.csrf, one.room)


def test_the_page_that_signs_in_is_a_form_without_scripts_too(pages: Pages) -> None:
    """Whoever has no scripts pastes the token."""
    shown: Read = pages.read("/")
    [form] = shown.all("form")

    assert (form["action"], form["method"]) == ("/session", "post")
    assert [field["name"] for field in shown.all("input")] == ["token"]
