"""Servers of goals that run in processes of their own: stopped, killed, taken over."""

from __future__ import annotations

import os
import shlex
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from goalmode.testing import Stub
from goalmode.testing.steps import tool
from tests.cli.conftest import wait_until
from tests.mcp_servers import script

pytestmark = [pytest.mark.slow, pytest.mark.sqlite]

HANG = """
import subprocess
def answer(id, tool, arguments):
    child = subprocess.Popen(["sleep", "3661.25"])
    with open("pids", "w") as file:
        file.write(f"{os.getpid()} {child.pid} ")
    time.sleep(3600)
"""
CALL = tool("mcp__slow__do", {})
WRITE = tool("write_file", {"path": "a.txt", "content": "hello\n"})
DONE = tool("complete", {"status": "success", "summary": "a.txt is written", "evidence": ["a.txt"]})


def runs(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def pids(workspace: Path) -> list[int]:
    with suppress(OSError):
        text = (workspace / "pids").read_text()
        return [int(pid) for pid in text.split()] if text.endswith(" ") else []
    return []


@pytest.fixture
def stuck(cli: Any, serve: Callable[..., Stub], spawn: Callable[..., Any]) -> Any:
    """A goal that runs in a process, in the middle of a call that its server does not answer."""
    stub = serve([CALL, WRITE, DONE])
    command = f"slow={shlex.join(script(HANG))}"
    uid = cli.new("--deliverable", "a.txt", "--mcp", command, url=stub.base_url)
    child = spawn("run", uid)
    wait_until(lambda: len(pids(cli.workspace)) == 2, child.process)
    return uid, child


def test_ctrl_c_in_the_middle_of_a_call_ends_the_server_too(cli: Any, stuck: Any) -> None:
    """One Ctrl-C: the goal is paused, the exit code 130, and nothing of the server runs, within seconds."""
    _, child = stuck
    started = time.monotonic()
    child.signal(signal.SIGINT)

    assert child.done().code == 130
    assert time.monotonic() - started < 5
    assert not any(map(runs, pids(cli.workspace)))


def test_a_second_ctrl_c_leaves_nothing_behind_either(cli: Any, stuck: Any) -> None:
    """Two end the process at once, and what its servers had started with it."""
    _, child = stuck
    child.signal(signal.SIGINT)
    child.signal(signal.SIGINT)
    child.done()

    wait_until(lambda: not any(map(runs, pids(cli.workspace))))


def test_whoever_comes_after_a_killed_process_ends_its_server(cli: Any, stuck: Any) -> None:
    """Killed with -9, its server works on; the next wakeup ends it before it begins, and the call is interrupted."""
    uid, child = stuck
    left = pids(cli.workspace)
    child.signal(signal.SIGKILL)
    child.process.wait()
    assert any(map(runs, left))

    done = cli("run", uid)

    assert done.code == 0, done.err
    assert not any(map(runs, left))
    calls = [call for turn in cli("turns", uid, "--json").json for call in turn["calls"]]
    assert calls[0]["tool"] == "mcp__slow__do"
    assert calls[0]["outcome"] == "interrupted"
    assert os.getpid() not in left
