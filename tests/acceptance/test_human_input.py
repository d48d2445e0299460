"""Row B128: where nobody can answer, nothing waits at a prompt."""

from __future__ import annotations

from pathlib import Path

from goalmode.testing import steps
from tests.acceptance.cli import Command
from tests.acceptance.world import Provider, complete, mark

ASKS = steps.tool(
    "complete",
    {
        "status": "needs_user_input",
        "summary": "?",
        "missing_info": "Which colour?",
        "why_no_default": "It is printed.",
    },
)


def test_nothing_waits_for_a_stdin_that_has_ended(
    goalmode: Command, workspace: Path, provider: Provider
) -> None:
    """B128: with stdin at its end a run that asks ends waiting, and a confirmation fails with the flag to use."""
    goal = goalmode.new("x", workspace, provider.url, "--deliverable", "marks")
    provider.script(ASKS)

    asked = goalmode.process("run", goal)
    refused = goalmode("delete", goal)

    assert asked.code == 30
    assert "Which colour?" in asked.err
    assert f"goalmode answer {goal} TEXT" in asked.err
    shown = goalmode.show(goal)
    assert (shown["status"], shown["wakeups"][0]["exit_reason"]) == ("WAITING_USER", "NEEDS_USER_INPUT")
    assert refused.code == 2
    assert "--yes" in refused.line


def test_every_other_command_ends_too(goalmode: Command, workspace: Path, provider: Provider) -> None:
    """B128: with an empty stdin each command that changes a goal ends by itself; none takes silence for an answer."""
    goal = goalmode.new("x", workspace, provider.url, "--deliverable", "marks")
    provider.script(ASKS)
    goalmode("wake", goal)

    assert goalmode("new", "-", "--workspace", str(workspace), "--model", "openai:m").code == 2
    assert goalmode("edit", goal, "--objective", "-").code == 2
    assert goalmode("resume", goal).code == 1
    assert goalmode("resume", goal, "--answer", " ").code == 2
    assert goalmode.show(goal)["status"] == "WAITING_USER"
    assert len(provider.requests) == 1
    provider.script(mark(), complete())
    assert goalmode("resume", goal, "--answer", "Blue.").code == 0
    assert "Blue." in provider.told(1)
    assert goalmode("delete", goal, "--yes").code == 0
