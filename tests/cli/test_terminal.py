"""What is written to terminals and pipes: no codes where nobody wants them, right widths, any encoding."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from goalmode.cli.columns import aligned, cut, width_of
from goalmode.cli.progress import Lines, Progress
from goalmode.domain.redact import Redactor
from goalmode.loop.ports import Event
from goalmode.testing import Stub
from goalmode.testing.steps import tool

from .conftest import PATIENCE, Child

pytestmark = pytest.mark.slow

Serve = Callable[..., Stub]
Spawn = Callable[..., Child]

WRITE = tool("write_file", {"path": "a.txt", "content": "✓ 完成\n"})
DONE = tool("complete", {"status": "success", "summary": "✓ 写好了", "evidence": ["a.txt"]})


SIZES = ("COLUMNS", "LINES")
"""Variables that hide a terminal's own width, as of the one that the tests are started from."""


def on_terminal(*arguments: str, columns: int = 80, **environment: str) -> tuple[int, str]:
    """Run a command on a terminal of that width; its exit code and all that it wrote."""
    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-m", "goalmode", *arguments],
        env={name: value for name, value in os.environ.items() if name not in SIZES} | environment,
        stdin=child,
        stdout=child,
        stderr=child,
    )
    os.close(child)
    written = b""
    with suppress(OSError):  # Linux's way to say that the other end is closed.
        while piece := os.read(parent, 65_536):
            written += piece
    os.close(parent)
    return process.wait(PATIENCE), written.decode()


def test_a_terminal_gets_a_live_line(cli: Any, serve: Serve) -> None:
    """On a terminal of 40 columns a run shows what it does, and leaves cursor and line as they were."""
    uid = cli.new(objective="写一个文件", url=serve([WRITE, DONE]).base_url)
    code, written = on_terminal("run", uid, columns=40, TERM="xterm", NO_COLOR="")

    assert code == 0
    assert "\x1b[?25l" in written
    assert written.rindex("\x1b[?25h") > written.rindex("\x1b[?25l")
    assert "write_file a.txt: success" in written
    assert "CURRENT_TASK_DONE" in written.splitlines()[-1]


@pytest.mark.parametrize(
    "environment", [{"NO_COLOR": "1", "TERM": "xterm"}, {"NO_COLOR": "", "TERM": "dumb"}], ids=str
)
def test_a_terminal_without_colours_gets_plain_lines(
    cli: Any, serve: Serve, environment: dict[str, str]
) -> None:
    """With NO_COLOR or TERM=dumb a terminal gets what a pipe gets: no escape, no carriage return (B130)."""
    uid = cli.new(url=serve([WRITE, DONE]).base_url)
    code, written = on_terminal("run", uid, **environment)
    plain = written.replace("\r\n", "\n")

    assert code == 0
    assert not {"\x1b", "\r"} & set(plain)
    assert "write_file a.txt: success" in plain


@pytest.mark.parametrize("command", ["list", "timeline"])
def test_no_row_is_wider_than_a_terminal_of_40_columns(cli: Any, serve: Serve, command: str) -> None:
    """Chinese takes two places: what does not fit is cut with an ellipsis, and no row runs into the next line."""
    uid = cli.new(objective="写一份关于搜索服务性能的报告，" * 5, url=serve([WRITE, DONE]).base_url)
    cli("run", uid)
    code, written = on_terminal(command, *([uid] if command == "timeline" else []), columns=40, NO_COLOR="1")
    lines = written.replace("\r\n", "\n").splitlines()[3 if command == "timeline" else 0 :]

    assert code == 0
    assert len(lines) >= 2
    assert max(map(width_of, lines)) <= 40
    assert any("…" in line for line in lines)


@pytest.mark.parametrize("command", ["show", "why", "turns", "questions", "report", "context"])
def test_every_page_is_shown_on_40_columns(cli: Any, serve: Serve, command: str) -> None:
    """Running text wraps as the terminal does it; nothing fails, and nothing but its own lines moves the cursor."""
    uid = cli.new(objective="写一份报告。✓", url=serve([WRITE, DONE]).base_url)
    cli("run", uid)
    code, written = on_terminal(command, uid, columns=40, TERM="xterm")

    assert code == 0
    assert set(re.findall("\x1b.{0,3}", written)) <= {"\x1b[1m", "\x1b[0m"}
    assert "\r" not in written.replace("\r\n", "")


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii:strict"},
        {"PYTHONIOENCODING": "cp1252:strict"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=["ascii", "cp1252", "C"],
)
def test_a_run_survives_any_encoding(
    cli: Any, serve: Serve, spawn: Spawn, environment: dict[str, str]
) -> None:
    """Check marks and Chinese degrade where an encoding has none, and the work is done as usual (B134, B136)."""
    uid = cli.new("--deliverable", "a.txt", objective="写 ✓ \U0001f378", url=serve([WRITE, DONE]).base_url)
    done = spawn("run", uid, **environment).done()

    assert (done.code, done.err) == (0, "")
    assert uid in done.out
    assert cli("show", uid, "--json").json["wakeups"][0]["exit_detail"] == "✓ 写好了 (checks)"


def test_json_is_valid_in_any_encoding(cli: Any, spawn: Spawn) -> None:
    """Where an encoding lacks a character JSON has an escape for it, and the value is the same (B134)."""
    uid = cli.new(objective="写 ✓ \U0001f378")
    done = spawn("show", uid, "--json", PYTHONIOENCODING="cp1252:strict").done()

    assert json.loads(done.out)["objective"] == "写 ✓ \U0001f378"


def test_arguments_are_utf8_even_in_the_c_locale(cli: Any, spawn: Spawn) -> None:
    """A Chinese objective and workspace come through where the locale knows ASCII only (B136)."""
    workspace = cli.workspace / "工作 区"
    workspace.mkdir()
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = spawn("new", "写报告", "--workspace", str(workspace), "--model", "openai:m", "-q", **plain).done()
    goal = cli("show", done.out.strip(), "--json").json

    assert (done.code, done.err) == (0, "")
    assert (goal["objective"], goal["workspace"]) == ("写报告", str(workspace))


def test_a_closed_pipe_is_no_error(cli: Any, spawn: Spawn) -> None:
    """`goalmode list | head -0` says nothing."""
    cli.new()
    child = spawn("list")
    assert child.process.stdout is not None
    child.process.stdout.close()
    child.process.wait(PATIENCE)

    assert child.process.stderr is not None
    assert child.process.stderr.read() == b""


def test_a_display_that_fails_changes_no_run(cli: Any, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever closes the pipe in the middle of a run loses the view, not the work."""

    def closed(self: Lines, event: Event) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(Lines, "show", closed)
    uid = cli.new("--deliverable", "a.txt", url=serve([WRITE, DONE]).base_url)

    assert cli("run", uid).code == 0


def test_progress_strikes_out_secrets_at_any_depth() -> None:
    """No display ever sees a key."""
    seen: list[Event] = []

    class Display:
        show = staticmethod(seen.append)

        def close(self) -> None:
            pass

    Progress(Display(), Redactor(["s3cret-key"]))(
        Event("x", {"a": ["s3cret-key", {"b": "is s3cret-key"}], "n": 1})
    )

    assert seen == [Event("x", {"a": ["[redacted]", {"b": "is [redacted]"}], "n": 1})]


def test_chinese_takes_two_places() -> None:
    """Columns line up by what a terminal shows, not by characters."""
    lines = aligned([["名字", "x"], ["name", "y"], ["e\u0301", "z"]])

    assert lines == ["名字  x", "name  y", "e\u0301     z"]
    assert [width_of(line) for line in lines] == [7, 7, 7]


@pytest.mark.parametrize("width", [0, 1, 5, 6, 7, 40])
def test_a_line_is_never_wider_than_the_terminal(width: int) -> None:
    """A cut ends in an ellipsis, does not halve a wide character, and fits any width."""
    shown = cut("目标 and more", width)

    assert width_of(shown) <= width
    assert (shown == "目标 and more") == (width >= width_of("目标 and more"))
