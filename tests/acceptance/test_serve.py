"""Rows B43, B52, B118, B120 with servers in processes of their own: signals, kill -9, and two on one store."""

from __future__ import annotations

import signal
import sqlite3
import threading
import time
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from goalmode.testing import steps
from tests import stores
from tests.acceptance.cli import Command
from tests.acceptance.processes import SECONDS, eventually, odd_seconds, running
from tests.acceptance.world import Provider, complete, mark

FAST = ("--poll", "0.1s")
GRACE = 6.0


def reasons(goalmode: Command, goal: str) -> list[Any]:
    return [wakeup["exit_reason"] for wakeup in goalmode.show(goal)["wakeups"]]


def work(request: Any, number: int) -> Any:
    """One piece of work, then the claim."""
    return complete() if any(m["role"] == "tool" for m in request["messages"]) else mark()


def test_sigterm_while_a_tool_runs(goalmode: Command, workspace: Path, provider: Provider) -> None:
    """B120: within the grace the tool is gone, the wakeup closed and the exit code 0; the goal goes on by itself."""
    goal = goalmode.new("x", workspace, provider.url, "--deliverable", "marks")
    word = odd_seconds()
    sleeps = {"command": f"echo x > marks; touch started; sleep {word} & sleep {word}"}
    provider.script(steps.tool("shell", sleeps))
    server = goalmode.start("serve", *FAST, "--grace", f"{GRACE}s", "--json")
    server.until((workspace / "started").exists, "the tool runs")
    server.signal(signal.SIGTERM)

    assert server.ended() == 0
    assert running(word) == []
    kinds = [event["kind"] for event in server.json_lines]
    assert kinds == ["serving", "claimed", "stopping", "ended", "stopped"]
    _, _, asked, ended, _ = (datetime.fromisoformat(event["at"]) for event in server.json_lines)
    assert (ended - asked).total_seconds() < GRACE
    [wakeup] = goalmode.show(goal)["wakeups"]
    assert (wakeup["exit_reason"], wakeup["exit_facts"]) == ("INTERRUPTED", {"requested": True})
    assert goalmode.show(goal)["status"] == "ACTIVE"
    assert goalmode.turns(goal)[0]["calls"][0]["outcome"] == "interrupted"
    provider.script(complete())
    assert goalmode.process("serve", "--once").code == 0
    assert goalmode.show(goal)["status"] == "DONE"


def test_sigterm_lets_the_turn_that_runs_end(goalmode: Command, workspace: Path, provider: Provider) -> None:
    """A reply that is on its way is taken, its tool runs, and then the wakeup ends without another request."""
    goal = goalmode.new("x", workspace, provider.url)
    go_on = threading.Event()
    provider.script(steps.stall(mark(), until=go_on), mark())
    server = goalmode.start("serve", *FAST, "--grace", "10m", "--json")
    server.until(lambda: len(provider.stub.requests) == 1, "the request")
    server.signal(signal.SIGTERM)
    server.said('"stopping"')
    assert goalmode.show(goal)["running"]
    go_on.set()

    assert server.ended() == 0

    assert reasons(goalmode, goal) == ["INTERRUPTED"]
    assert (workspace / "marks").read_text() == "x\n"
    assert len(provider.stub.requests) == 1


@pytest.mark.slow
@pytest.mark.sqlite
def test_a_store_that_is_locked_keeps_no_server_beyond_its_grace(
    goalmode: Command, workspace: Path, provider: Provider
) -> None:
    """What cannot be closed in time is left open, with exit code 1, and found interrupted by the next server."""
    goal = goalmode.new("x", workspace, provider.url, "--deliverable", "marks")
    provider.script(steps.tool("shell", {"command": "echo x > marks; touch started; sleep 98765"}))
    server = goalmode.start("serve", *FAST, "--grace", "4s")
    server.until((workspace / "started").exists, "the tool runs")
    with closing(sqlite3.connect(goalmode.store, isolation_level=None)) as locked:
        locked.execute("BEGIN IMMEDIATE")
        server.signal(signal.SIGTERM)
        began = time.monotonic()

        assert server.ended() == 1
        assert time.monotonic() - began < 2 * GRACE
        assert "wakeups could not be closed within 4 s" in server.err
        locked.execute("ROLLBACK")
    provider.script(complete())
    assert goalmode.process("serve", "--once").code == 0
    assert reasons(goalmode, goal) == ["INTERRUPTED", "CURRENT_TASK_DONE"]


@pytest.mark.slow
def test_a_second_ctrl_c_ends_a_server_at_once(
    goalmode: Command, workspace: Path, provider: Provider
) -> None:
    """Its tools are ended; what it left open is found interrupted, and goes on."""
    goal = goalmode.new("x", workspace, provider.url, "--deliverable", "marks")
    word = odd_seconds()
    sleeps = {"command": f"trap '' INT TERM; echo x > marks; touch started; sleep {word}; sleep {word}"}
    provider.script(steps.tool("shell", sleeps))
    server = goalmode.start("serve", *FAST, "--grace", "10m", "--json")
    server.until((workspace / "started").exists, "the tool runs")
    server.signal(signal.SIGINT)
    server.said('"stopping"')  # Two that come before the first is seen are one.
    server.signal(signal.SIGINT)

    assert server.ended() == 130
    eventually(lambda: not running(word), "the tool is ended")
    provider.script(complete())
    assert goalmode.process("serve", "--once").code == 0
    assert reasons(goalmode, goal) == ["INTERRUPTED", "CURRENT_TASK_DONE"]


def test_kill_minus_nine_and_another_server(goalmode: Command, workspace: Path, provider: Provider) -> None:
    """B43: what a dead server ran is taken over at once, its tool ended, and its goal goes on to its end."""
    goal = goalmode.new("x", workspace, provider.url, "--deliverable", "marks")
    word = odd_seconds()
    provider.script(steps.tool("shell", {"command": f"echo x > marks; touch started; sleep {word}"}))
    dead = goalmode.start("serve", *FAST)
    dead.until((workspace / "started").exists, "the tool runs")
    dead.kill()
    provider.script(complete())

    server = goalmode.start("serve", *FAST, "--json")
    server.until(lambda: goalmode.show(goal)["status"] == "DONE", "the goal is done")
    server.signal(signal.SIGTERM)

    assert server.ended() == 0
    assert running(word) == []
    assert reasons(goalmode, goal) == ["INTERRUPTED", "CURRENT_TASK_DONE"]
    claimed = next(event for event in server.json_lines if event["kind"] == "claimed")
    assert claimed["why"].endswith("ended in wakeup 1")


@pytest.mark.slow
def test_two_servers_on_one_store(goalmode: Command, workspace: Path, provider: Provider) -> None:
    """B52: twenty due goals and two processes: each wakeup starts once, both live, and both did their part."""
    made = [goalmode.new(f"Goal {n}.", workspace, provider.url, "--deliverable", "marks") for n in range(20)]
    both = threading.Event()

    def together(request: Any, number: int) -> Any:
        assert both.wait(SECONDS)  # The one that starts first would otherwise have done everything.
        return work(request, number)

    provider.follow(together)
    servers = [goalmode.start("serve", *FAST, "--json") for _ in range(2)]

    def begun() -> bool:
        return stores.rows(goalmode.url, "SELECT count(DISTINCT pid) FROM wakeups") == [2]

    def done() -> bool:
        return stores.rows(goalmode.url, "SELECT count(*) FROM goals WHERE status <> 'DONE'") == [0]

    servers[0].until(begun, "both have begun")
    both.set()
    servers[0].until(done, "all goals are done")
    for server in servers:
        server.signal(signal.SIGTERM)

    assert [server.ended() for server in servers] == [0, 0]
    claimed = [[e["goal"] for e in server.json_lines if e["kind"] == "claimed"] for server in servers]
    assert sorted(claimed[0] + claimed[1]) == sorted(made)
    assert all(claimed)
    assert [reasons(goalmode, goal) for goal in made] == [["CURRENT_TASK_DONE"]] * 20
    assert len(provider.stub.requests) == 40


@pytest.mark.slow
def test_ctrl_c_on_a_run_is_not_undone_by_a_server(
    goalmode: Command, workspace: Path, provider: Provider
) -> None:
    """B118: the goal stays paused while a server runs, and goes on once it is resumed."""
    goal = goalmode.new("x", workspace, provider.url, "--deliverable", "marks")
    silence = threading.Event()
    provider.script(mark(), steps.stall(steps.text("never said"), until=silence))
    run = goalmode.start("run", goal)
    run.until(lambda: len(provider.stub.requests) == 2, "the second request")
    server = goalmode.start("serve", *FAST, "--json")
    run.signal(signal.SIGINT)
    assert run.ended() == 130
    other = goalmode.new("y", workspace, provider.url, "--deliverable", "marks")
    provider.follow(work)
    server.until(lambda: goalmode.show(other)["status"] == "DONE", "the server has looked")
    later = goalmode.new("z", workspace, provider.url, "--deliverable", "marks")
    server.until(lambda: goalmode.show(later)["status"] == "DONE", "the server has looked again")

    assert reasons(goalmode, goal) == ["USER_ABORTED"]
    assert goalmode.show(goal)["status"] == "PAUSED"
    assert goalmode("resume", goal, "--no-run").code == 0
    server.until(lambda: goalmode.show(goal)["status"] == "DONE", "the goal goes on")
    server.signal(signal.SIGTERM)
    assert server.ended() == 0
    silence.set()
