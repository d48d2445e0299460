"""Rows B118, B120, B121: Ctrl-C and SIGTERM end a run within seconds, leave nothing running, and are remembered."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest

from goalmode.testing import steps
from tests.acceptance.cli import Command
from tests.acceptance.processes import Child, Children, eventually, odd_seconds, python_tools, running
from tests.acceptance.world import Provider, complete, mark

SOON = 8.0
"""Seconds within which a process has to end; it has two seconds of grace for its tools."""


def test_ctrl_c_while_the_model_is_silent(goalmode: Command, workspace: Path, provider: Provider) -> None:
    """B118: no further request and no restart until an explicit resume; then the goal runs on to its end."""
    goal = goalmode.new("x", workspace, provider.url, "--deliverable", "marks")
    silence = threading.Event()
    provider.script(mark(), steps.stall(steps.text("never said"), until=silence))
    run = goalmode.start("run", goal)
    run.until(lambda: len(provider.stub.requests) == 2, "the second request")
    run.signal(signal.SIGINT)

    code = run.ended(SOON)
    again = [goalmode("run", goal).code for _ in range(3)]
    paused = goalmode.show(goal)
    provider.script(complete())
    resumed = goalmode("resume", goal)

    assert code == 130
    assert again == [130] * 3
    assert paused["status"] == "PAUSED"
    assert [w["exit_reason"] for w in paused["wakeups"]] == ["USER_ABORTED"]
    assert len(provider.requests) == 3
    assert resumed.code == 0


def test_sigterm_while_a_tool_runs(goalmode: Command, workspace: Path, provider: Provider) -> None:
    """B120: the tool is gone, the last event is the ending with its reason, and the goal can go on."""
    goal = goalmode.new("x", workspace, provider.url, "--deliverable", "marks")
    word = odd_seconds()
    sleeps = {"command": f"echo x > marks; touch started; sleep {word} & sleep {word}"}
    provider.script(steps.tool("shell", sleeps))
    run = goalmode.start("run", goal, "--json")
    run.until((workspace / "started").exists, "the tool runs")
    run.signal(signal.SIGTERM)

    code = run.ended(SOON)
    provider.script(complete())
    shown = goalmode.show(goal)
    again = goalmode("run", goal, "--json")

    assert code == 22
    assert running(word) == []
    last = run.json_lines[-1]
    assert (last["kind"], last["exit_reason"]) == ("wakeup_closed", "INTERRUPTED")
    assert (shown["status"], shown["wakeups"][0]["exit_reason"]) == ("ACTIVE", "INTERRUPTED")
    assert goalmode.turns(goal)[0]["calls"][0]["outcome"] == "interrupted"
    assert again.code == 0


@pytest.mark.slow
def test_ctrl_c_and_a_command_that_will_not_end(
    goalmode: Command, workspace: Path, provider: Provider
) -> None:
    """B121: a shell loop deaf to INT and TERM is ended by force, after one Ctrl-C alone."""
    goal = goalmode.new("x", workspace, provider.url)
    word = odd_seconds()
    deaf = f"trap '' INT TERM; touch started; while :; do sleep {word}; done"
    provider.script(steps.tool("shell", {"command": deaf}))
    run = goalmode.start("run", goal)
    run.until((workspace / "started").exists, "the tool runs")
    run.signal(signal.SIGINT)

    assert run.ended(SOON) == 130
    assert running(word) == []
    assert goalmode.show(goal)["wakeups"][0]["exit_reason"] == "USER_ABORTED"
    assert goalmode.turns(goal)[0]["calls"][0]["outcome"] == "interrupted"


def test_a_second_ctrl_c_ends_at_once(goalmode: Command, workspace: Path, provider: Provider) -> None:
    """B121: twice ends the process without waiting for anything; the goal is paused and its tool is gone."""
    goal = goalmode.new("x", workspace, provider.url)
    word = odd_seconds()
    deaf = f"trap '' INT TERM; touch started; while :; do sleep {word}; done"
    provider.script(steps.tool("shell", {"command": deaf}))
    run = goalmode.start("run", goal)
    run.until((workspace / "started").exists, "the tool runs")
    run.signal(signal.SIGINT)
    run.signal(signal.SIGINT)

    assert run.ended(SOON) == 130
    eventually(lambda: not running(word), "the tool is ended")
    shown = goalmode.show(goal)
    assert shown["status"] == "PAUSED"
    assert shown["wakeups"][0]["exit_reason"] in ("USER_ABORTED", "INTERRUPTED")
    assert goalmode.turns(goal)[0]["calls"][0]["outcome"] == "interrupted"


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["loops", "swallows"])
def test_ctrl_c_and_a_python_tool_that_will_not_end(
    goalmode: Command, workspace: Path, provider: Provider, children: Children, tool: str
) -> None:
    """B121: in library use a tool that loops for ever, or swallows the first Ctrl-C, holds nobody beyond the second."""
    goal = goalmode.new("x", workspace, provider.url)
    provider.script(steps.tool(tool))
    run: Child = python_tools(children, goalmode.url, goal, provider.url)
    run.until((workspace / "started").exists, "the tool runs")
    run.signal(signal.SIGINT)
    if tool == "swallows":
        run.until((workspace / "swallowed").exists, "the first one is swallowed")
        run.signal(signal.SIGINT)

    run.ended(SOON)

    shown = goalmode.show(goal)
    assert shown["wakeups"][0]["exit_reason"] == "USER_ABORTED"
    assert shown["status"] == "PAUSED"
    assert goalmode.turns(goal)[0]["calls"][0]["outcome"] == "interrupted"
