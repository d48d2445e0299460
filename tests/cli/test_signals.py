"""Signals end a run, not just a process: what was begun is closed, what was started is gone."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from goalmode.state.owner import process_start
from goalmode.testing import Stub
from goalmode.testing.steps import stall, text, tool

from .conftest import Child, wait_until

pytestmark = pytest.mark.slow

Serve = Callable[..., Stub]
Spawn = Callable[..., Child]

SLEEPS = tool("shell", {"command": "echo $$ > pid; exec sleep 9000"})
STUBBORN = tool("shell", {"command": "trap '' TERM; echo $$ > pid; while :; do sleep 0.2; done"})
DONE = tool("complete", {"status": "success", "summary": "done", "evidence": ["pid"]})


def started_tool(cli: Any, child: Child) -> int:
    """The process id of the tool, once it runs."""
    file = cli.workspace / "pid"
    wait_until(lambda: file.exists() and file.read_text().strip() != "", child.process)
    return int(file.read_text())


def is_gone(pid: int) -> bool:
    """Nothing runs there any more; a zombie that nobody has reaped does not run."""
    return process_start(pid) is None


def test_ctrl_c_while_the_model_is_silent(cli: Any, serve: Serve, spawn: Spawn) -> None:
    """The wakeup ends USER_ABORTED at once, and the goal stays stopped until it is resumed (B118)."""
    stub = serve(
        [stall(text("late"), until=threading.Event()), tool("shell", {"command": "touch pid"}), DONE]
    )
    uid = cli.new(url=stub.base_url)
    child = spawn("run", uid)
    wait_until(lambda: len(stub.requests) == 1, child.process)
    child.signal(signal.SIGINT)
    done = child.done()

    assert done.code == 130
    assert "USER_ABORTED" in done.line()
    assert done.line().endswith(f"goalmode resume {uid}")
    goal = cli("show", uid, "--json").json
    assert (goal["status"], goal["wakeups"][0]["exit_reason"]) == ("PAUSED", "USER_ABORTED")
    assert [cli(command, uid).code for command in ("run", "wake")] == [130, 130]
    assert len(stub.requests) == 1
    assert cli("resume", uid).code == 0


def test_two_ctrl_c_end_at_once_and_leave_no_tool(cli: Any, serve: Serve, spawn: Spawn) -> None:
    """The second Ctrl-C waits for nothing; the tool is gone, and the goal does not start again by itself (B121)."""
    stub = serve([STUBBORN, DONE])
    uid = cli.new(url=stub.base_url)
    child = spawn("run", uid)
    tool_pid = started_tool(cli, child)
    child.signal(signal.SIGINT)
    with suppress(subprocess.TimeoutExpired):
        child.process.wait(0.3)
    child.signal(signal.SIGINT)
    done = child.done()

    assert (done.code, "Traceback" in done.err) == (130, False)
    wait_until(lambda: is_gone(tool_pid))  # It was killed, but not waited for.
    assert cli("show", uid, "--json").json["status"] == "PAUSED"
    assert cli("run", uid).code == 130
    assert cli("turns", uid, "--json").json[0]["calls"][0]["outcome"] == "interrupted"
    assert len(stub.requests) == 1
    assert cli("resume", uid).code == 0
    assert stub.rejected == []


def test_sigterm_ends_the_tool_and_writes_the_closing_event(cli: Any, serve: Serve, spawn: Spawn) -> None:
    """A run that is told to go takes its tool with it, says so last, and the goal goes on with the next run (B120)."""
    stub = serve([SLEEPS, DONE])
    uid = cli.new(url=stub.base_url)
    child = spawn("run", uid, "--json")
    tool_pid = started_tool(cli, child)
    child.signal(signal.SIGTERM)
    done = child.done()

    assert done.code == 22
    assert is_gone(tool_pid)
    assert (done.events[-1]["kind"], done.events[-1]["exit_reason"]) == ("wakeup_closed", "INTERRUPTED")
    assert done.line().endswith(f"goalmode run {uid}")
    goal = cli("show", uid, "--json").json
    assert (goal["status"], goal["wakeups"][0]["exit_facts"]["requested"]) == ("ACTIVE", True)
    assert cli("run", uid).code == 0
    assert stub.rejected == []


@pytest.mark.parametrize(
    ("name", "code", "status"), [("INT", 130, "PAUSED"), ("TERM", 22, "ACTIVE")], ids=["ctrl-c", "sigterm"]
)
def test_a_signal_while_a_run_waits(cli: Any, serve: Serve, name: str, code: int, status: str) -> None:
    """Between wakeups Ctrl-C pauses the goal too, and SIGTERM just ends the run."""
    stub = serve([text("All done.")])
    uid = cli.new("--max-recoveries", "0", url=stub.base_url)
    done = cli("run", uid, "--json", "--on-ending", f"kill -{name} $PPID")

    assert (done.code, len(stub.requests), done.events[-1]["kind"]) == (code, 1, "stopped")
    assert cli("show", uid, "--json").json["status"] == status
    assert done.line()


def test_handlers_are_put_back(cli: Any, serve: Serve) -> None:
    """After a run the process handles signals as before."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    cli("run", cli.new(url=serve([tool("shell", {"command": "touch pid"}), DONE]).base_url))

    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == before
