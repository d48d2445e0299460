"""The pages in a real Chromium, over a real store, while real processes run goals against a scripted provider."""

from __future__ import annotations

import http.server
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from goalmode.cli.main import call
from goalmode.testing import Stub
from goalmode.testing.steps import stall, text, tool, tools

pytestmark = pytest.mark.slow

WANTED = os.environ.get("GOALMODE_TEST_BROWSER")
"""The browser: where it is named and is not there, the tests fail; else they are skipped."""

SHOTS = os.environ.get("GOALMODE_TEST_SHOTS")
"""A directory in which every page is left as a picture, in each width, scheme and language."""

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

HOSTILE = (
    "Plan <script>alert(1)</script><img src=x onerror=alert(2)> {{ 7*7 }} {% x %} "
    "\x1b[31mred\x1b[0m \u202egnp.exe\u202c </title></textarea>"
)
SAVE = tool("update_working_checkpoint", {"key_info": "all of it", "next_steps": ["go on"]})
DONE = tool("complete", {"status": "success", "summary": "Written.", "evidence": ["a.txt"]})
WRITE = tool("write_file", {"path": "a.txt", "content": "hello\n"})
ASK = tool(
    "complete",
    {
        "status": "needs_user_input",
        "summary": "I need to know.",
        "missing_info": "Which port?",
        "why_no_default": "Only you know.",
    },
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The browser, started once."""
    path = shutil.which(WANTED or "chromium")
    if WANTED is None:
        pytest.importorskip("playwright")
        if path is None:
            pytest.skip("there is no chromium; `make test-web` installs it")
    assert path, f"there is no {WANTED}"
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


class Site:
    """A store with its pages served by a process of its own, and processes that run its goals."""

    def __init__(self, root: Path) -> None:
        self.root, self.store, self._goals = root, str(root / "store" / "goals.sqlite"), 0
        self._started: list[subprocess.Popen[str]] = []

    @cached_property
    def server(self) -> subprocess.Popen[str]:
        """What serves the pages, from the first test on that needs it: its environment is that of a test."""
        return self.start("web", "--json")

    @cached_property
    def url(self) -> str:
        assert self.server.stdout is not None
        said = ""
        while "}" not in said:
            line = self.server.stdout.readline()
            assert line, "it ended first"
            said += line
        return str(json.loads(said)["url"])

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "goalmode", *arguments]
        process = subprocess.Popen(
            command,
            env={**os.environ, "GOALMODE_STORE": self.store},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._started.append(process)
        return process

    def run(self, *arguments: str) -> tuple[int, str]:
        """A command to its end."""
        process = self.start(*arguments)
        out, _ = process.communicate(timeout=120)
        return process.returncode, out

    def new(self, objective: str, stub: Stub | None = None, *options: str) -> str:
        """A goal; its id."""
        url = stub.base_url if stub is not None else "http://127.0.0.1:9/v1"
        self._goals += 1
        workspace = self.root / f"workspace-{self._goals}"
        workspace.mkdir()
        model = ("--workspace", str(workspace), "--model", "openai:m", "--base-url", url, "-q")
        return self.do("new", objective, *model, *options).strip()

    def do(self, *arguments: str) -> str:
        """What a command prints that does not wait for anything: in this process, which is quicker."""
        said = io.StringIO()
        with redirect_stdout(said):
            assert call([*arguments, "--store", self.store]) == 0
        return said.getvalue()

    def end(self) -> None:
        for process in self._started:
            with suppress(ProcessLookupError):
                process.kill()
            process.communicate()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One for all tests: each looks at goals of its own, the newest in the list."""
    made = Site(tmp_path_factory.mktemp("site"))
    yield made
    made.end()


@pytest.fixture
def provider() -> Iterator[Callable[..., Stub]]:
    """Starts providers: `provider([step, …])`."""
    running: list[Stub] = []

    def start(script: list[Any]) -> Stub:
        running.append(Stub(script))
        return running[-1].__enter__()

    yield start
    for stub in running:
        stub.__exit__()


class Browser:
    """A window that has signed in. What its pages complain about fails the test."""

    def __init__(self, chromium: Any, site: Site, **options: Any) -> None:
        self.site = site
        self.context = chromium.new_context(**{"viewport": {"width": 1400, "height": 1000}, **options})
        self.context.set_default_timeout(120_000)
        self.page = self.context.new_page()
        self.faults: list[str] = []
        self.asked: set[str] = set()
        self.page.on(
            "console", lambda m: self.faults.append(m.text) if m.type in ("error", "warning") else None
        )
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on(
            "dialog", lambda dialog: (self.faults.append(f"dialog {dialog.message}"), dialog.dismiss())
        )
        self.page.on("request", lambda request: self.asked.add(request.url))
        self.page.goto(site.url)
        self.page.wait_for_selector("main h1:has-text('Goals'), main h1:has-text('目标')")
        self.room = self.page.url

    def goal(self, uid: str, path: str = "") -> Any:
        """A page of a goal."""
        self.page.goto(f"{self.room}goals/{uid}{path}")
        self.page.evaluate("window.loadedOnce = true")
        return self.page

    def status(self) -> str:
        return str(self.page.inner_text("#standing .badge"))

    def waits_for_status(self, word: str) -> None:
        self.page.wait_for_selector(f"#standing .badge:text-is('{word}')")

    def was_not_loaded_again(self) -> bool:
        return bool(self.page.evaluate("window.loadedOnce === true"))

    def end(self) -> None:
        self.context.close()
        root = self.site.url.partition("#")[0]
        assert self.faults == []
        assert [url for url in self.asked if not url.startswith(root)] == []


@pytest.fixture
def open_browser(chromium: Any, site: Site) -> Iterator[Callable[..., Browser]]:
    made: list[Browser] = []

    def start(**options: Any) -> Browser:
        made.append(Browser(chromium, site, **options))
        return made[-1]

    yield start
    for browser in made:
        browser.end()


@pytest.fixture
def browser(open_browser: Callable[..., Browser]) -> Browser:
    return open_browser()


def test_a_list_leads_to_a_goal_by_keyboard(site: Site, open_browser: Callable[..., Browser]) -> None:
    """The token leaves no trace in the address; without a mouse the list and the goal's page are a few keys away."""
    site.new("Write a.txt.", None, "--deliverable", "a.txt", "--turn-budget", "10")
    browser = open_browser()
    page = browser.page
    assert "#" not in page.url
    assert site.url.partition("#")[2] not in page.content()
    assert "0 / 10" in page.inner_text("table.goals")

    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    for _ in range(10):  # Questions of other goals stand above the list.
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className") == "title":
            break
    page.keyboard.press("Enter")
    page.wait_for_selector("h1.objective")
    assert page.inner_text("h1.objective") == "Write a.txt."
    assert "missing" in page.inner_text("#contract")


def test_a_page_follows_a_goal_as_it_runs(
    site: Site, provider: Callable[..., Stub], open_browser: Callable[..., Browser]
) -> None:
    """Turns, status, figures and plots, without loading the page again."""
    go_on = threading.Event()
    stub = provider([tool("shell", {"command": "echo one"}, text="Looking."), stall(WRITE, go_on), DONE])
    uid = site.new("Write a.txt.", stub, "--deliverable", "a.txt")
    browser = open_browser()
    page = browser.goal(uid)
    assert browser.status() == "active"

    process = site.start("run", uid, "-q")
    page.wait_for_selector("#turn-1-1 .outcome.success")
    assert "Looking." in page.inner_text("#turn-1-1")
    browser.waits_for_status("running")
    go_on.set()
    page.wait_for_selector("#turn-1-3")
    browser.waits_for_status("done")
    page.wait_for_selector("#contract :text('as verified')")
    page.wait_for_selector(".plot[data-curve=turns] canvas")
    assert process.wait(120) == 0
    assert browser.was_not_loaded_again()
    assert [li.get_attribute("id") for li in page.query_selector_all("#turns > li")] == [
        "turn-1-3",
        "turn-1-2",
        "turn-1-1",
    ]


def test_a_question_is_answered_and_the_goal_goes_on(
    site: Site, provider: Callable[..., Stub], open_browser: Callable[..., Browser]
) -> None:
    """The question comes onto the open page; it is answered by keyboard, and the next wakeup has the answer."""
    stub = provider([tool("list_files", {"path": "."}), ASK, WRITE, DONE])
    uid = site.new("Write a.txt.", stub, "--deliverable", "a.txt")
    browser = open_browser()
    page = browser.goal(uid)
    assert site.run("run", uid, "-q")[0] == 30
    page.wait_for_selector("#questions textarea")
    assert "Which port?" in page.inner_text("#questions")
    assert browser.was_not_loaded_again()

    page.focus("#questions textarea")
    page.keyboard.type("Take 8080.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector(".did")
    assert browser.status() == "active"
    assert "Take 8080." in page.inner_text("#told")
    assert site.run("run", uid, "-q")[0] == 0
    browser.waits_for_status("done")
    assert "Take 8080." in json.dumps(stub.requests[-2].body)


def test_a_running_goal_is_paused_and_resumed(
    site: Site, provider: Callable[..., Stub], open_browser: Callable[..., Browser]
) -> None:
    """The wakeup that runs elsewhere ends within a second; resumed it is due, and nothing is run from the page."""
    stub = provider([tool("list_files", {"path": "."}), stall(WRITE, threading.Event())])
    uid = site.new("Write a.txt.", stub)
    browser = open_browser()
    page = browser.goal(uid)
    process = site.start("run", uid, "-q")
    browser.waits_for_status("running")
    page.wait_for_selector("#turn-1-1")
    page.click("text=Pause")
    assert "ends within a second" in page.inner_text(".did")
    assert process.wait(120) == 130
    browser.waits_for_status("paused")

    page.click("text=Resume")
    page.wait_for_selector(".did")
    assert browser.status() == "active"
    assert len(stub.requests) == 2


def test_abort_asks_first(site: Site, open_browser: Callable[..., Browser]) -> None:
    """One click leads to the question, another one aborts."""
    uid = site.new("Write a.txt.")
    browser = open_browser()
    page = browser.goal(uid)
    page.click("text=Abort…")
    page.click("text=Leave it")
    assert browser.status() == "active"
    page.click("text=Abort…")
    page.click("text=Abort it")
    page.wait_for_selector(".did")
    assert browser.status() == "aborted"


def test_what_is_being_written_is_not_lost(site: Site, open_browser: Callable[..., Browser]) -> None:
    """The page changes around a field that somebody writes in."""
    uid = site.new("Write a.txt.")
    browser = open_browser()
    page = browser.goal(uid)
    page.fill("#note-text", "half a note")
    page.keyboard.press("Tab")
    site.do("note", uid, "Another note, from a terminal.")
    page.wait_for_selector("#told :text('from a terminal')")

    assert page.input_value("#note-text") == "half a note"
    assert browser.was_not_loaded_again()


def test_two_contexts_are_compared(
    site: Site, provider: Callable[..., Stub], open_browser: Callable[..., Browser]
) -> None:
    """From the table of wakeups to what one saw that the other did not."""
    stub = provider([tool("list_files", {"path": "."}), SAVE, WRITE, DONE])
    uid = site.new("Write a.txt.", stub, "--deliverable", "a.txt", "--max-turns", "2")
    assert site.run("wake", uid, "-q")[0] == 10
    assert site.run("wake", uid, "-q")[0] == 0
    browser = open_browser()
    page = browser.goal(uid)
    page.click("#wakeups >> text=against 1")
    page.wait_for_selector("#difference")

    assert page.inner_text("#difference") == "From wakeup 1 to wakeup 2"
    assert "all of it" in "".join(page.locator("ins").all_inner_texts())
    page.click("text=The whole context")
    assert "<objective" in page.inner_text("main")


def test_a_hostile_goal_is_text(
    site: Site, provider: Callable[..., Stub], open_browser: Callable[..., Browser]
) -> None:
    """Markup, template syntax, ANSI and marks that reorder, on every page and in what comes over the stream."""
    hostile = tools([("shell", {"command": "echo '<img src=x onerror=alert(3)>'"})], HOSTILE)
    stub = provider([hostile, WRITE, DONE])
    uid = site.new(HOSTILE, stub, "--deliverable", "a.txt")
    browser = open_browser()
    assert "<script>alert(1)</script>" in browser.page.inner_text("table.goals")
    page = browser.goal(uid)
    assert site.run("run", uid, "-q")[0] == 0
    page.wait_for_selector("#turn-1-3")
    browser.waits_for_status("done")
    for path in ("", "/turns", "/turns/1/1", "/contexts/1", "/contexts/1?diff=1", "?lang=zh"):
        page = page if path == "" else browser.goal(uid, path)
        shown = page.inner_text("main")
        assert "<img src=x onerror=alert(" in shown, path
        assert "49" not in re.findall(r"onerror=alert\(2\)>(.{0,8})", shown), path
        assert page.locator("main img, main script").count() == 0
        assert not set("\x1b\u202e\u202c") & set(page.content())
    assert "Plan <script>alert(1)</script>" in page.title()
    assert "\\u202egnp.exe" in page.inner_text("h1.objective")


def _pages(uid: str, asking: str) -> dict[str, str]:
    return {
        "list": "",
        "goal": f"goals/{uid}",
        "question": f"goals/{asking}",
        "turns": f"goals/{uid}/turns",
        "turn": f"goals/{uid}/turns/1/1",
        "context": f"goals/{uid}/contexts/2",
        "difference": f"goals/{uid}/contexts/2?diff=1",
        "abort": f"goals/{uid}/abort",
    }


def test_every_page_fits(
    site: Site, provider: Callable[..., Stub], open_browser: Callable[..., Browser]
) -> None:
    """At 375 and at 1,400 pixels, light and dark, in both languages: nothing sticks out, and text stands out."""
    long = "x" * 200
    stub = provider(
        [tool("shell", {"command": f"echo {long}"}, text="Working."), SAVE, WRITE, text("Soon."), DONE]
    )
    uid = site.new(
        f"Write a.txt with {long}.\nAnd nothing else.", stub, "--deliverable", f"{long}.txt", "--max-turns", "2",
        "--turn-budget", "40", "--require", "It is readable.",
    )  # fmt: skip
    assert site.run("wake", uid, "-q")[0] == 10
    site.run("wake", uid, "-q")
    asking = site.new("Ask.", provider([tool("list_files", {"path": "."}), ASK]))
    assert site.run("run", asking, "-q")[0] == 30
    for width, height in ((375, 812), (1400, 1000)):
        for scheme in ("light", "dark"):
            browser = open_browser(
                viewport={"width": width, "height": height}, color_scheme=scheme, locale="en-US"
            )
            for lang in ("en", "zh"):
                for name, path in _pages(uid, asking).items():
                    mark = "&" if "?" in path else "?"
                    browser.page.goto(f"{browser.room}{path}{mark}lang={lang}")
                    browser.page.wait_for_load_state("load")
                    out = browser.page.evaluate("document.documentElement.scrollWidth - innerWidth")
                    assert out <= 0, (name, width, lang, out)
                    assert browser.page.evaluate(_CONTRAST) >= 4.5, (name, scheme, lang)
                    if SHOTS:
                        picture = f"{SHOTS}/{name}-{width}-{scheme}-{lang}.png"
                        browser.page.screenshot(path=picture, full_page=True)


_CONTRAST = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (colour, under) => {
    canvas.fillStyle = under; canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (colour) => {
    const [r, g, b] = colour.map((n) => n / 255).map((n) => (n <= 0.03928 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const css = (colour) => `rgb(${colour.join(",")})`;
  const ground = (element) => {
    const above = element.parentElement ? ground(element.parentElement) : "rgb(255,255,255)";
    return css(rgb(getComputedStyle(element).backgroundColor, above));
  };
  let least = 21;
  for (const element of document.querySelectorAll("body *")) {
    if (![...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    if (!element.getClientRects().length || element.matches("option")) continue;
    const under = ground(element);
    const pair = [light(rgb(getComputedStyle(element).color, under)), light(rgb(under, under))].sort((a, b) => b - a);
    least = Math.min(least, (pair[0] + 0.05) / (pair[1] + 0.05));
  }
  return least;
}"""
"""The least contrast of a text to what is behind it."""


def test_a_server_that_is_gone_is_said(chromium: Any, tmp_path: Path) -> None:
    """The page says that it may be old."""
    site = Site(tmp_path)
    try:
        uid = site.new("Write a.txt.")
        browser = Browser(chromium, site)
        page = browser.goal(uid)
        site.server.send_signal(signal.SIGTERM)
        assert site.server.wait(120) == 0
        page.wait_for_selector("#lost:not([hidden])")
        browser.faults.clear()  # A browser complains about what it cannot reach.
        browser.end()
    finally:
        site.end()


def test_the_cookie_goes_to_no_other_server_of_this_machine(
    site: Site, open_browser: Callable[..., Browser]
) -> None:
    """Cookies know no ports: what an agent serves on loopback is not told how to read its own goal."""
    seen: list[str] = []

    class Other(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(f"{self.path} {self.headers}")
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<h1>Mine</h1>")

        def log_message(self, *_: Any) -> None:
            pass

    uid = site.new("Write a.txt.")
    browser = open_browser()
    browser.goal(uid)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Other) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        browser.page.goto(f"http://127.0.0.1:{server.server_port}/")
        browser.page.goto(f"http://127.0.0.1:{server.server_port}/goals/{uid}")
        browser.page.goto("about:blank")  # Else the browser complains that the server goes away.
        server.shutdown()
        thread.join()

    assert len(seen) >= 2
    assert "goalmode_" not in "".join(seen).replace("goalmode_lang", "")
    assert browser.room.split("/")[3] not in "".join(seen)
    browser.asked.clear()
    browser.faults.clear()
