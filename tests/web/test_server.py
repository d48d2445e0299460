"""Where the pages listen, under which names, and how `goalmode web` begins and ends."""

from __future__ import annotations

import json
import signal
import socket
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest

from goalmode.cli.main import call
from goalmode.errors import BadInput
from goalmode.web.opening import door
from goalmode.web.server import Place, listen
from tests.web.conftest import Pages


@pytest.fixture
def listening() -> Iterator[Callable[..., Place]]:
    made: list[Place] = []

    def start(*arguments: Any) -> Place:
        made.append(listen(*arguments))
        return made[-1]

    yield start
    for place in made:
        place.listener.close()


def test_by_default_only_this_machine_is_served(listening: Callable[..., Place]) -> None:
    """Under the names that it has itself, with the port that was free."""
    place = listening("127.0.0.1", 0)

    assert place.listener.getsockname()[0] == "127.0.0.1"
    assert place.url == f"http://127.0.0.1:{place.port}/"
    assert place.hosts == {f"{name}:{place.port}" for name in ("127.0.0.1", "localhost", "[::1]")}
    assert place.private


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7"])
def test_others_are_served_only_if_they_are_named(host: str) -> None:
    """To listen where others reach it takes the name under which they ask."""
    with pytest.raises(BadInput, match="--allow-host"):
        listen(host, 0)


def test_a_name_that_is_allowed_is_served(listening: Callable[..., Place]) -> None:
    """As a proxy sends it, with its port or without."""
    place = listening("0.0.0.0", 0, ["Goals.Example.org", "other.example:8443"])

    assert {"goals.example.org", f"goals.example.org:{place.port}", "other.example:8443"} <= place.hosts
    assert "other.example" not in place.hosts
    assert "0.0.0.0" not in "".join(place.hosts)
    assert not place.private


@pytest.mark.parametrize("name", ["", "*", "a b", "http://x", "x/y", "x:99999999", "ex*mple.org", "-x"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    """No patterns, no addresses of pages."""
    with pytest.raises(BadInput, match="allow-host"):
        listen("127.0.0.1", 0, [name])


@pytest.mark.parametrize("host", ["", "example.org", "127.0.0.1:80", "300.1.1.1"])
def test_an_address_that_is_none_is_refused(host: str) -> None:
    """Names are not looked up."""
    with pytest.raises(BadInput, match="host"):
        listen(host, 0)


def test_a_port_that_is_taken_is_said(listening: Callable[..., Place]) -> None:
    """One line that names it."""
    taken = listening("127.0.0.1", 0).port
    with pytest.raises(BadInput, match=f"port: '{taken}'"):
        listen("127.0.0.1", taken)


def test_the_address_goes_to_the_browser_in_a_file_of_ones_own() -> None:
    """Not on a command line: that is seen by every user of the machine. The file is gone with the block."""
    opened: list[str] = []
    with door("http://127.0.0.1:1/#<token>", lambda url: not opened.append(url)) as go:
        assert go()
        file = Path(opened[0].removeprefix("file://"))
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert "url=http://127.0.0.1:1/#&lt;token&gt;" in file.read_text()
        assert "token" not in opened[0]
    assert not file.exists()


def run(*arguments: str) -> int:
    return call(["web", *arguments])


def test_what_is_wrong_is_said_before_anything_is_served(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A wrong address, and a store that is none: one line, and an exit code that is not 0."""
    junk = tmp_path / "junk"
    junk.write_bytes(b"junk" * 2000)
    for arguments in (("--host", "0.0.0.0"), ("--port", "99999"), ("--store", str(junk))):
        assert run(*arguments) != 0
        said = capsys.readouterr()
        assert said.err.count("\n") == 1
        assert "#" not in said.out or arguments[0] == "--store"


def test_without_the_extra_it_is_said_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command is there, and names what to install."""
    for name in [
        n
        for n in sys.modules
        if n.partition(".")[0] in ("starlette", "uvicorn") or n.startswith("goalmode.web")
    ]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "starlette", None)
    monkeypatch.setitem(sys.modules, "uvicorn", None)

    assert run() == 2
    assert "pip install 'goalmode[web]'" in capsys.readouterr().err


@pytest.mark.long
def test_a_process_serves_and_ends(pages: Pages, tmp_path: Path) -> None:
    """It says where it is, takes the token, and ends on SIGTERM with 0, a browser on the event stream or not."""
    url = pages.world.store.url
    process = subprocess.Popen(
        [sys.executable, "-m", "goalmode", "web", "--store", url, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        bufsize=1,
    )
    try:
        assert process.stdout is not None
        lines = ""
        while "}" not in lines:
            line = process.stdout.readline()
            assert line, "it ended first"
            lines += line
        said = json.loads(lines)
        root = said["url"].partition("#")[0]
        assert said["url"] == f"{root}#{said['token']}"

        request = urllib.request.Request(
            f"{root}session", data=f"token={said['token']}".encode(), headers={"Origin": root.rstrip("/")}
        )
        opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        with opener.open(request, timeout=120) as listed:
            assert "Write the report." in listed.read().decode()
            assert "server" not in {name.lower() for name in listed.headers}
            room = listed.url
        stream = opener.open(f"{room}goals/{pages.world.goal.uid}/events", timeout=120)
        assert stream.readline() == b"retry: 2000\n"
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(room, timeout=120)
        with socket.create_connection(("127.0.0.1", said["port"]), timeout=120) as raw:
            raw.sendall(b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
            assert raw.recv(100).startswith(b"HTTP/1.1 421")
    finally:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    stream.close()


def test_the_command_is_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    """Its help says that nothing is run from there."""
    assert run("--help") == 0
    assert "No goal is run from" in click.unstyle(capsys.readouterr().out)
