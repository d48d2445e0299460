"""MCP servers as processes: started under the gate, ended with everything they started, told of in one line."""

from __future__ import annotations

import ast
import os
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from goalmode.domain.calls import CallOutcome
from goalmode.domain.outside import Server
from goalmode.errors import Fenced
from goalmode.state.locks import LockGate, take_over
from goalmode.tools.mcp import Offer, Outside
from goalmode.tools.mcp_server import MAX_STARTS
from goalmode.tools.mcp_stdio import LEAVE_SECONDS, TERM_SECONDS
from tests.mcp_servers import script
from tests.tools.bench import Bench
from tests.tools.conftest import FakeGate

pytestmark = pytest.mark.anyio

OK, FAILED = CallOutcome.SUCCESS, CallOutcome.FAILED
ENVIRONMENT = {"PATH": os.environ["PATH"]}

DIE = """
def answer(id, tool, arguments):
    print("no disk left", file=sys.stderr)
    sys.exit(3)
"""
PID = """
def answer(id, tool, arguments):
    told = f"{os.getpid()} {os.getpgid(0)} {os.getcwd()} {os.environ.get('OWN')} {sorted(os.environ)}"
    send(id, result={"content": [{"type": "text", "text": told}]})
"""
HANG = """
import subprocess
def answer(id, tool, arguments):
    subprocess.Popen(["sleep", "600"])
    open("begun", "w").close()
    time.sleep(600)
"""
STUBBORN = """
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def answer(id, tool, arguments):
    open("begun", "w").close()
    while True:
        time.sleep(1)
"""


def outside(workspace: Path, *servers: Server) -> Outside:
    return Outside(servers, workspace, ENVIRONMENT, lambda spec: 1, 1_000)


def problem(own: str, **fields: Any) -> Server:
    return Server("s", script(own), **{"start_seconds": 0.3, **fields})


def groups(gate: FakeGate) -> list[int]:
    """The marked process groups of which something still runs; a zombie that nobody reaps does not."""
    return [group for group in dict.fromkeys(gate.groups) if _runs(group)]


def _runs(group: int) -> bool:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _parent, member_of = stat.read_text().rpartition(")")[2].split()[:3]
            if member_of == str(group) and state not in "ZX":
                return True
    return False


async def test_a_server_is_a_process_of_its_own_group_that_ends_with_the_wakeup(
    bench: Bench, gate: FakeGate, workspace: Path
) -> None:
    """It runs in the workspace, in the tools' environment with its own on top; afterwards its group is gone."""
    server = Server("s", script(PID), env={"OWN": "yes"})
    async with outside(workspace, server).running(gate) as offer:
        done = await bench.run(("mcp__s__do", {}), extra=offer.tools)
        told = done.records[0].shown
        assert len(groups(gate)) == 1

    pid, group, rest = told.split(" ", 2)
    assert pid == group
    assert rest.startswith(f"{workspace} yes [")
    assert set(ast.literal_eval(rest[rest.index("[") :])) - {"LC_CTYPE"} == {"OWN", "PATH"}
    assert groups(gate) == []
    assert gate.entered[0] == "mcp:s"


@pytest.mark.parametrize(
    ("server", "line"),
    [
        (Server("s", ("no-such-program",)), "no-such-program cannot be started: No such file or directory"),
        (Server("s", ("/",)), "/ cannot be started: Permission denied"),
        (
            problem('sys.exit("no configuration")', start_seconds=20),
            "(exit code 1, its last words: no configuration)",
        ),
        (problem("time.sleep(600)"), "did not answer within 0.3 s"),
        (
            Server("s", ("sh", "-c", "echo 'Welcome!'; exec sleep 600"), start_seconds=0.6),
            "did not answer within 0.6 s (its output begins with 'Welcome!', which is not MCP)",
        ),
        (Server("s", ("yes",)), "(its output begins with 'y', which is not MCP)"),
        (Server("s", ("true",)), "ended, or closed its output (exit code 0)"),
        (Server("s", ("cat",)), "does not agree on a protocol: "),
        (Server("s", url="http://127.0.0.1:9/mcp"), "All connection attempts failed"),
    ],
    ids=[
        "not there",
        "a directory",
        "fails",
        "silent",
        "talks",
        "junk",
        "leaves",
        "echo",
        "no web",
    ],
)
async def test_a_server_that_cannot_be_used_is_told_in_one_line(
    gate: FakeGate, workspace: Path, server: Server, line: str
) -> None:
    """The line names the server and what it did; nothing of it goes on, and the wakeup does."""
    async with outside(workspace, server).running(gate) as offer:
        [seen] = offer.servers
        assert offer.tools == ()
        assert groups(gate) == []

    assert seen.problem.startswith("MCP server s: ")
    assert line in seen.problem
    assert "\n" not in seen.problem


async def test_what_a_server_prints_beside_messages_is_passed_over(
    bench: Bench, gate: FakeGate, workspace: Path
) -> None:
    """A banner, blank lines and half messages on its standard output are no reason to do without it."""
    own = 'print("Welcome!\\n\\n{\\"jsonrpc\\":", flush=True)'
    async with outside(workspace, Server("s", script(own))).running(gate) as offer:
        done = await bench.run(("mcp__s__do", {"a": 1}), extra=offer.tools)

    assert done.records[0].shown == 'do {"a": 1}'


async def test_a_server_that_dies_is_told_of_and_started_again(
    bench: Bench, gate: FakeGate, workspace: Path
) -> None:
    """The call fails with its last words; a later call starts it anew, but not for ever."""
    async with outside(workspace, Server("s", script(DIE))).running(gate) as offer:
        done = await bench.run(*[("mcp__s__do", {"n": n}) for n in range(MAX_STARTS + 1)], extra=offer.tools)

    assert [r.outcome for r in done.records] == [FAILED] * (MAX_STARTS + 1)
    assert (
        "MCP server s: ended, or closed its output (exit code 3, its last words: no disk left)"
        in done.records[0].shown
    )
    assert f"ended {MAX_STARTS} times in this wakeup, and is not started again" in done.records[-1].shown
    assert len(set(gate.groups)) == MAX_STARTS


@pytest.mark.parametrize("own", [HANG, STUBBORN], ids=["with children", "deaf to SIGTERM"])
async def test_a_call_that_is_cancelled_ends_within_a_second_with_all_that_it_started(
    bench: Bench, gate: FakeGate, workspace: Path, own: str
) -> None:
    """Cancelled in the middle of a call, nothing of the server's group is left; no more than a second is waited."""
    with anyio.CancelScope() as scope:
        async with (
            outside(workspace, Server("s", script(own))).running(gate) as offer,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(_call, bench, offer)
            while not (workspace / "begun").exists():  # noqa: ASYNC110 - a file sets no anyio.Event
                await anyio.sleep(0.01)
            started = time.monotonic()
            scope.cancel()

    assert time.monotonic() - started < 1
    assert LEAVE_SECONDS + TERM_SECONDS < 1
    assert groups(gate) == []
    assert bench.outcomes == [CallOutcome.INTERRUPTED]


async def test_an_answer_that_is_far_too_long_ends_the_server(
    bench: Bench, gate: FakeGate, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line without end does not fill this machine's memory."""
    monkeypatch.setattr("goalmode.tools.mcp_stdio.MAX_MESSAGE", 100_000)
    own = "def answer(id, tool, arguments):\n    while True: sys.stdout.write('x' * 65536)"
    async with outside(workspace, Server("s", script(own))).running(gate) as offer:
        done = await bench.run(("mcp__s__do", {}), extra=offer.tools)

    assert "it sent more than 100,000 bytes at once" in done.records[0].shown


async def test_a_large_answer_and_large_arguments_arrive_whole(
    bench: Bench, gate: FakeGate, workspace: Path
) -> None:
    """More than any pipe holds, in both directions."""
    async with outside(workspace, Server("s", script())).running(gate) as offer:
        done = await bench.run(("mcp__s__do", {"a": "x" * 500_000}), extra=offer.tools)

    assert (done.records[0].outcome, done.records[0].size) == (OK, 500_000 + len('do {"a": ""}'))


async def test_another_owner_of_the_goal_keeps_servers_from_starting(gate: FakeGate, workspace: Path) -> None:
    """A server starts under the gate: once the goal is somebody else's, none does."""
    gate.error = Fenced()
    with pytest.raises(Fenced):
        async with outside(workspace, Server("s", script())).running(gate):
            raise AssertionError("it was let in")


async def test_whoever_takes_the_goal_over_ends_the_servers(
    bench: Bench, tmp_path: Path, workspace: Path
) -> None:
    """The server's processes hold the wakeup's lock, this process does not while it waits for an answer: a new owner
    finds it held, ends them, and has it at once.
    """
    path = tmp_path / "locks" / "1.1"
    lock = LockGate(path, 1, lambda: 1)
    bench.context = replace(bench.context, gate=lock)
    async with (
        outside(workspace, Server("s", script(HANG))).running(lock) as offer,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(_call, bench, offer)
        while '"call": "c0", "group"' not in path.read_text():  # noqa: ASYNC110 - a file sets no anyio.Event
            await anyio.sleep(0.01)
        started = time.monotonic()
        calls = await to_thread.run_sync(_taken, path)

    assert time.monotonic() - started < 3
    assert calls == {"mcp:s", "c0"}
    assert "exit code 137" in bench.reported[0].shown


async def _call(bench: Bench, offer: Offer) -> None:
    await bench.run(("mcp__s__do", {}), extra=offer.tools)


def _taken(path: Path) -> frozenset[str] | None:
    with take_over(path, os.getpid()) as calls:
        return calls
