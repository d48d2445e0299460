"""A page follows a goal: turns as they come, and word of everything else that changes."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import anyio
import httpx
import pytest
from anyio import to_thread

from goalmode.domain.goal import Control
from goalmode.orchestrator.goals import stop_goal
from goalmode.orchestrator.notes import add_note
from goalmode.state import goals
from goalmode.state.store import Store
from goalmode.testing import call
from goalmode.web import goal as goal_page
from goalmode.web import live
from goalmode.web.live import Streams, Watch, event, mark_of, place_of
from tests.web.conftest import HOST, Pages

Open = Callable[..., Pages]

SAVE = call("update_working_checkpoint", key_info="all of it")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "POLL_SECONDS", 0.01)


class Listener:
    """A browser on the event stream: reads until it has seen enough, then goes away."""

    def __init__(self, pages: Pages, query: str = "", **headers: str) -> None:
        self._pages, self._query, self._headers = pages, query, headers
        self.status, self.type, self.text = 0, "", ""

    @property
    def events(self) -> list[tuple[str, str, str]]:
        """(kind, id, data) of what has come."""
        found = []
        for part in self.text.split("\n\n"):
            fields: dict[str, str] = {}
            for line in part.split("\n"):
                name, _, value = line.partition(": ")
                fields[name] = fields[name] + "\n" + value if name in fields else value
            if "event" in fields:
                found.append((fields["event"], fields.get("id", ""), fields.get("data", "")))
        return found

    def turns(self) -> list[str]:
        return [re.search(r'id="(turn-\d+-\d+)"', data)[1] for kind, _, data in self.events if kind == "turn"]  # type: ignore[index]

    async def read(
        self, enough: Callable[[Listener], bool], during: Callable[[], Any] = lambda: None
    ) -> None:
        """Read until `enough`; `during` happens once the stream is open."""
        here = anyio.Event()
        path, _, query = f"{self._pages.goal}/events?{self._query}".partition("?")
        headers = {"host": HOST, "cookie": self._pages.cookie, **self._headers}
        scope = {
            "type": "http",
            "method": "GET",
            "path": path,
            "query_string": query.encode(),
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
        }

        async def receive() -> dict[str, Any]:
            await here.wait()
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
                self.type = dict(message["headers"]).get(b"content-type", b"").decode()
                return
            self.text += message.get("body", b"").decode()
            if self.text.count("\n\n") == 1:
                await anyio.to_thread.run_sync(during)
            if enough(self) or not message.get("more_body"):
                here.set()

        with anyio.fail_after(120):
            await self._pages.app(scope, receive, send)  # type: ignore[arg-type]


def listen(
    pages: Pages,
    enough: Callable[[Listener], bool],
    query: str = "",
    *,
    during: Any = lambda: None,
    **headers: str,
) -> Listener:
    listener = Listener(pages, query, **headers)
    anyio.run(listener.read, enough, during)
    return listener


def test_turns_come_as_they_happen(open_pages: Open) -> None:
    """Those that are there first, then those of a wakeup that runs meanwhile, and word that the page is old."""
    pages = open_pages(max_turns=2)
    pages.world.wake([call("list_files", path="."), SAVE])

    def wake() -> None:
        pages.world.wake([call("shell", command="echo 'new <b>'"), SAVE])

    heard = listen(
        pages, lambda it: "turn-2-2" in it.turns() and ("refresh", "", "") in it.events, during=wake
    )

    assert (heard.status, heard.type) == (200, "text/event-stream; charset=utf-8")
    seen = heard.turns()
    assert seen[:2] == ["turn-1-1", "turn-1-2"]
    assert {"turn-2-1", "turn-2-2"} <= set(seen)
    assert "echo &#39;new &lt;b&gt;&#39;" in heard.text
    assert pages.streams.open == 0


def test_a_browser_that_comes_back_goes_on_where_it_was(open_pages: Open) -> None:
    """It names the last turn that it has; what it has already does not come again."""
    pages = open_pages(max_turns=3)
    pages.world.wake([call("list_files", path="."), call("shell", command="echo 1"), SAVE])
    heard = listen(pages, lambda it: "turn-1-3" in it.turns(), last_event_id="1.2")

    assert heard.turns() == ["turn-1-3"]
    assert [place for kind, place, _ in heard.events if kind == "turn"] == ["1.3"]


def test_a_page_names_what_it_has(open_pages: Open) -> None:
    """The stream of a page begins behind its turns but the last one, and says nothing if nothing has changed."""
    pages = open_pages(max_turns=3)
    pages.world.wake([call("list_files", path="."), call("shell", command="echo 1"), SAVE])
    [source] = [str(a["data-events"]) for a in pages.page().all("div") if "data-events" in a]
    heard = listen(pages, lambda it: "turn-1-3" in it.turns(), source.partition("?")[2])

    assert heard.turns() == ["turn-1-3"]
    assert [kind for kind, _, _ in heard.events] == ["turn"]


def test_a_turn_that_goes_on_is_sent_again(open_pages: Open) -> None:
    """With its calls running, then with what came of them; its id is given only when nothing of it can change."""
    pages = open_pages(max_turns=2)
    watch = Watch(pages.world.store, pages.world.goal, (0, 0), lambda turn: repr(turn), "")
    seen: list[list[str]] = []
    pages.world.wake(
        [call("shell", command="echo 1"), SAVE],
        on_event=lambda e: seen.append(watch.look()) if e.kind in ("tool_started", "tool") else None,
    )
    seen.append(watch.look())
    first = [one for look in seen for one in look if "'seq': 1," in one]

    assert len(first) >= 2
    assert "id: 0.0\n" in first[0]
    assert "'outcome': None" in first[0]
    assert "id: 1.1\n" in first[-1]
    assert "'outcome': 'success'" in first[-1]
    assert watch.look() == []


def test_what_changes_beside_turns_is_told(pages: Pages) -> None:
    """A note, a pause, a wakeup that begins: each makes the page old, once."""
    store, goal = pages.world.store, pages.world.goal
    watch = Watch(store, goal, (0, 0), repr, mark_of(store, goal))
    assert watch.look() == []
    add_note(store, goal, "Look here.")
    assert watch.look() == ["event: refresh\ndata: \n\n"]
    assert watch.look() == []
    wake = pages.world.begin()
    assert watch.look() == ["event: refresh\ndata: \n\n"]
    stop_goal(store, pages.world.now, Control.PAUSE)
    assert watch.look() == ["event: refresh\ndata: \n\n"]
    wake.let_go()  # type: ignore[union-attr]


def test_what_changes_while_a_page_is_made_is_told(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its stream begins with what was so before the page was read: else it would show the old status for good."""
    store, real = pages.world.store, goal_page.show.show

    def slow(*arguments: Any) -> dict[str, Any]:
        found = real(*arguments)
        stop_goal(store, pages.world.now, Control.PAUSE)
        return found

    monkeypatch.setattr(goal_page.show, "show", slow)
    shown = pages.page()
    [source] = [str(a["data-events"]) for a in shown.all("div") if "data-events" in a]
    heard = listen(pages, lambda it: bool(it.events), source.partition("?")[2])

    assert "paused" not in shown.text.split("Notes and answers")[0].lower()
    assert heard.events == [("refresh", "", "")]


def test_a_goal_that_is_deleted_ends_its_stream(pages: Pages) -> None:
    """The browser asks again, and is told that there is no such goal."""
    heard = listen(pages, lambda it: False, during=lambda: goals.delete(pages.world.store, pages.world.goal))

    assert heard.status == 200
    assert pages.get(f"{pages.goal}/events").status_code == 404
    assert pages.streams.open == 0


def test_there_are_not_too_many_streams(pages: Pages) -> None:
    """Each costs a look into the store again and again."""
    pages.streams.open = live.MAX_STREAMS
    response = pages.get(f"{pages.goal}/events")

    assert response.status_code == 503
    assert pages.streams.open == live.MAX_STREAMS


def test_streams_end_with_the_process(pages: Pages) -> None:
    """Nobody waits for a browser to go away."""
    pages.streams.stopping = lambda: True

    assert pages.get(f"{pages.goal}/events").text == f"retry: {live.RETRY_MILLISECONDS}\n\n"


def test_a_store_that_is_slow_to_open_holds_up_no_other_page(
    pages: Pages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream opens a store of its own: it may be a busy file, or a server far away."""
    assert pages.get(pages.goal).status_code == 200
    opening, answered, order = threading.Event(), threading.Event(), list[str]()
    opened = pages.stores._open

    def slow(*, readonly: bool) -> Store:
        opening.set()
        order.append("in time" if answered.wait(60) else "too late")
        return opened(readonly=readonly)

    async def browse() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(Listener(pages).read, lambda heard: "turn" in heard.text or bool(order))
            transport = httpx.ASGITransport(pages.app)
            async with httpx.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
                await to_thread.run_sync(opening.wait, 60)
                page = await client.get(pages.goal, headers={"cookie": pages.cookie})
                assert page.status_code == 200
                answered.set()

    monkeypatch.setattr(pages.stores, "_open", slow)
    pages.streams.stopping = lambda: bool(order)
    anyio.run(browse)

    assert order == ["in time"]


def test_a_quiet_stream_shows_that_it_lives(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that no proxy takes it for dead."""
    monkeypatch.setattr(live, "QUIET_SECONDS", 0.03)

    assert ": still here" in listen(pages, lambda it: "still here" in it.text).text


def test_a_head_request_is_no_stream(pages: Pages) -> None:
    """It is answered and over."""
    response = pages.ask("HEAD", f"{pages.goal}/events", headers={"cookie": pages.cookie})

    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/event-stream")


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("3.12", (3, 12)),
        ("", (0, 0)),
        ("3", (0, 0)),
        ("-1.2", (0, 0)),
        ("1.2.3", (0, 0)),
        ("1." + "9" * 30, (0, 0)),
    ],
)
def test_a_place_that_is_none_is_the_beginning(text: str, place: tuple[int, int]) -> None:
    """What a browser says is not taken at its word."""
    assert place_of(text) == place


def test_no_line_of_data_is_taken_for_a_field() -> None:
    """A text with line ends cannot end an event or begin another one."""
    assert event("turn", "a\nevent: refresh\n\nb", (1, 2)) == (
        "event: turn\nid: 1.2\ndata: a\ndata: event: refresh\ndata: \ndata: b\n\n"
    )
    assert Streams().stopping() is False
