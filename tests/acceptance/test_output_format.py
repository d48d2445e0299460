"""Rows B16, B130, B132, B133: what is printed, with which exit code, and to whom."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goalmode import EXIT_FACTS, ExitReason
from goalmode.testing import steps
from tests import stores
from tests.acceptance.cli import Command
from tests.acceptance.processes import SECONDS
from tests.acceptance.world import Provider, complete, mark

MANY = Path(__file__).with_name("many.py")
CODES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
READING = ("show", "turns", "why", "context")


def reading(goal: str) -> list[list[str]]:
    """Every command that only reads, plain and as JSON, and the help of every command."""
    plain = [["list"], *([name, goal] for name in READING), ["context", goal, "--next"]]
    plain += [["turns", goal, "--full"], ["show", goal, "--quiet"]]
    names = [
        "new",
        "run",
        "wake",
        "resume",
        "pause",
        "abort",
        "edit",
        "delete",
        "list",
        *READING,
        "doctor",
        "demo",
    ]
    return [*plain, *([*line, "--json"] for line in plain), ["--help"], *([name, "--help"] for name in names)]


@pytest.fixture
def goal(goalmode: Command, workspace: Path, provider: Provider) -> str:
    """A goal with some history."""
    made = goalmode.new(
        "Write the report. ✓ 报告", workspace, provider.url, "--deliverable", "a.txt", "--max-turns", "2"
    )
    provider.script(mark(), mark("✓ 好"))
    assert goalmode("wake", made).code == 10
    return made


def test_reading_commands_read(goalmode: Command, provider: Provider, goal: str) -> None:
    """B16: list, show, turns, why and context make no request and change no byte of the store's file or its rows."""
    before = stores.content(goalmode.url)
    shown = goalmode.show(goal)
    requests = len(provider.requests)

    codes = [goalmode(*line).code for line in reading(goal)]

    assert set(codes) == {0}
    assert stores.content(goalmode.url) == before
    assert goalmode.show(goal) == shown
    assert len(provider.requests) == requests


def test_pipes_get_plain_text(goalmode: Command, goal: str) -> None:
    """B130: no command writes an escape, a cursor movement or a carriage return into a pipe."""
    for line in reading(goal):
        done = goalmode(*line)
        assert not re.search("[\x1b\r\x9b]", done.out + done.err), line


@pytest.mark.slow
def test_terminals_that_want_no_colour_get_none(goalmode: Command, goal: str, tmp_path: Path) -> None:
    """B130: with NO_COLOR or TERM=dumb a terminal gets the same words as with colours, and nothing else."""
    lines = reading(goal)[:8]
    whole = [[line[0], "--store", goalmode.url, *line[1:]] for line in lines]
    ways = [{"NO_COLOR": "1", "TERM": "xterm"}, {"TERM": "dumb"}, {"TERM": "xterm-256color"}]
    (tmp_path / "many.json").write_text(json.dumps([(way, line) for way in ways for line in whole]))

    outputs = on_a_terminal(tmp_path / "many.json")

    count = len(lines)
    no_colour, dumb, coloured = outputs[:count], outputs[count : 2 * count], outputs[2 * count : 3 * count]
    assert not any("\x1b" in text for text in no_colour + dumb)
    assert any("\x1b" in text for text in coloured)
    assert no_colour == dumb == [CODES.sub("", text) for text in coloured]


def on_a_terminal(file: Path) -> list[str]:
    """What the command lines of `file` write to a terminal, one text each."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, str(MANY), str(file)], stdin=slave, stdout=slave, stderr=slave
    )
    os.close(slave)
    data = b""
    try:
        while chunk := os.read(master, 65536):
            data += chunk
    except OSError:
        pass  # How the end of a terminal is told on Linux.
    os.close(master)
    assert process.wait(SECONDS) == 0, data
    text = data.decode().replace("\r\n", "\n")
    assert "\r" not in text
    return re.split(r"(?:\n=== \d+ \d+ ===\n)+", text)


COMPLETE = "complete"
BLOCKED = steps.tool(COMPLETE, {"status": "blocked", "summary": "No way.", "obstacle": "the server is down"})
ASKS = steps.tool(
    COMPLETE,
    {
        "status": "needs_user_input",
        "summary": "?",
        "missing_info": "which colour",
        "why_no_default": "printed",
    },
)
REFUSED = steps.status(401, {"error": {"message": "no", "code": "invalid_api_key"}})
ENDINGS: dict[ExitReason, tuple[list[steps.Step], list[str]]] = {
    ExitReason.CURRENT_TASK_DONE: ([mark(), complete()], []),
    ExitReason.MAX_TURNS_EXCEEDED: ([mark()] * 3, []),
    ExitReason.YIELDED: ([mark(), steps.tool("wait", {"seconds": 60, "reason": "the build"})], []),
    ExitReason.EARLY_NO_TOOL: ([steps.text("All done.")] * 3, []),
    ExitReason.NO_PROGRESS: ([steps.tool(COMPLETE, "{}")] * 5, ["--max-turns", "9"]),
    ExitReason.CONTEXT_OVERFLOW: ([steps.text("", finish="model_length")], []),
    ExitReason.OUTPUT_TRUNCATED: ([steps.text("half", finish="length")] * 3, []),
    ExitReason.MODEL_REFUSED: ([steps.text("no", finish="content_filter")], []),
    ExitReason.BACKEND_ERROR: ([REFUSED], []),
    ExitReason.ENGINE_ERROR: ([mark()], []),
    ExitReason.INTERRUPTED: ([steps.stall(steps.text("late"), until=threading.Event())], []),
    ExitReason.NEEDS_USER_INPUT: ([ASKS], []),
    ExitReason.TASK_BLOCKED: ([BLOCKED], []),
    ExitReason.GOAL_BUDGET_EXHAUSTED: ([mark()] * 2, ["--turn-budget", "2"]),
    ExitReason.USER_ABORTED: ([steps.stall(steps.text("late"), until=threading.Event())], []),
}
"""A script and options for each ending. WAITING_HUMAN needs a tool that hands over to a person; none is shipped yet."""


def provoke(reason: ExitReason, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Any] | None:
    """What brings about an ending that no reply can."""
    signals = {ExitReason.INTERRUPTED: signal.SIGTERM, ExitReason.USER_ABORTED: signal.SIGINT}
    if reason in signals:
        return lambda number: os.kill(os.getpid(), signals[reason])
    if reason is ExitReason.ENGINE_ERROR:

        def fails(*arguments: Any, **named: Any) -> None:
            raise ZeroDivisionError("a fault of ours")

        monkeypatch.setattr("goalmode.orchestrator.wake.Wake.outcome", fails)
    return None


@pytest.mark.parametrize("reason", list(ENDINGS), ids=lambda r: r.value)
def test_one_run_for_each_exit_reason(
    goalmode: Command,
    workspace: Path,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    reason: ExitReason,
) -> None:
    """B132, B133: exit code, last event and store agree; 0 is success alone; one line says reason and way on."""
    script, options = ENDINGS[reason]
    goal = goalmode.new("x", workspace, provider.url, "--deliverable", "marks", "--max-turns", "3", *options)
    provider.on_request = provoke(reason, monkeypatch)
    for _ in range(2 if reason is ExitReason.TASK_BLOCKED else 0):
        provider.script(BLOCKED, BLOCKED)
        goalmode("wake", goal)
    provider.script(*script)

    done = goalmode("wake", goal, "--json", "--quiet")

    stored = goalmode.show(goal)["wakeups"][-1]
    assert done.code == EXIT_FACTS[reason].exit_code
    assert (done.code == 0) == (reason is ExitReason.CURRENT_TASK_DONE)
    assert [e["exit_reason"] for e in done.events if e["kind"] == "wakeup_closed"] == [reason.value]
    assert done.events[-1]["kind"] == "wakeup_closed"
    assert stored["exit_reason"] == reason.value
    if reason is ExitReason.CURRENT_TASK_DONE:
        assert done.err == ""
    else:
        assert reason.value in done.line
        assert goal in done.line
        assert "goalmode " in done.line.split(goal, 1)[1]


@pytest.mark.parametrize("quiet", [[], ["--quiet"], ["--json"]], ids=str)
def test_a_limit_is_told_with_its_value(
    goalmode: Command, workspace: Path, provider: Provider, quiet: list[str]
) -> None:
    """B133: a spent quota and a spent budget: one line with reason, limit, value and the command to go on."""
    options = ["--max-turns", "2", "--turn-budget", "5"]
    goal = goalmode.new("x", workspace, provider.url, *options)
    provider.script(then=mark())

    quota = goalmode("wake", goal, *quiet)
    spent = goalmode("run", goal, *quiet)

    assert quota.code == 10
    assert "MAX_TURNS_EXCEEDED" in quota.line
    assert "quota" in quota.line
    assert "2" in quota.line
    assert f"goalmode run {goal}" in quota.line
    assert spent.code == 40
    assert "GOAL_BUDGET_EXHAUSTED" in spent.line
    assert "turns" in spent.line
    assert "5" in spent.line
    assert f"goalmode resume {goal} --turn-budget" in spent.line
