"""The `shell` tool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from goalmode.domain.redact import Redactor
from goalmode.errors import ToolError
from goalmode.tools.builtin.shell import shell
from goalmode.tools.registry import ToolContext

pytestmark = pytest.mark.anyio


async def test_a_command_that_ran_is_a_success_whatever_its_exit_code(context: ToolContext) -> None:
    """The result tells exit code, duration, size and output; a test that fails is still a call that worked."""
    output = await shell.run(context, {"command": "echo out; exit 3"})

    assert (output.ok, output.exit_code, output.size) == (True, 3, 4)
    lines = output.text.splitlines()
    assert (lines[0], lines[2:]) == ("exit code: 3", ["output: 4 bytes", "out"])
    assert lines[1].startswith("duration: ")


async def test_the_duration_is_no_part_of_what_equal_results_are_known_by(context: ToolContext) -> None:
    """It is the one line that differs from run to run, and it is said which."""
    output = await shell.run(context, {"command": "echo out"})

    assert output.varies == output.text.splitlines()[1]


async def test_a_command_without_output_says_so(context: ToolContext) -> None:
    """No output is zero bytes, not an empty result."""
    assert (await shell.run(context, {"command": "true"})).text.endswith("output: 0 bytes")


async def test_a_command_beyond_its_limit_has_failed(
    context: ToolContext, running: Callable[[str], list[str]]
) -> None:
    """The limit is told, the output so far is kept, nothing runs on (B82)."""
    output = await shell.run(context, {"command": "echo begun; sleep 90.0301", "timeout_seconds": 1})

    assert (output.ok, output.exit_code) == (False, None)
    assert output.text.startswith("ended by its time limit of 1 s")
    assert output.text.endswith("begun\n")
    assert running("90.0301") == []


async def test_the_environment_is_the_context_s_with_the_key(
    context: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command sees the environment it was given and its idempotency key, nothing of the host's."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    output = await shell.run(replace(context, idempotency_key="g:1:2:c"), {"command": "env"})

    assert "GOALMODE_IDEMPOTENCY_KEY=g:1:2:c" in output.text
    assert "sk-secret" not in output.text


async def test_secrets_of_a_huge_output_are_struck_out_before_the_cut(context: ToolContext) -> None:
    """What is struck out before the output is cut is counted with the rest."""
    context = replace(context, redact=Redactor(["hunter2-hunter2"]))
    output = await shell.run(
        context, {"command": "echo hunter2-hunter2; head -c 2000000 /dev/zero | tr '\\0' x"}
    )

    assert (output.redactions, output.size) == (1, 2_000_016)
    assert "hunter2" not in output.text


async def test_the_gate_s_lock_is_handed_on(context: ToolContext, gate: Any) -> None:
    """The command's group is written down where the gate said."""
    with gate.enter("c") as hold:
        await shell.run(replace(context, hold=hold), {"command": "true"})

    assert len(gate.groups) == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"command": " "}, "empty"),
        ({"command": "true", "timeout_seconds": 0}, "between 1 and 3600"),
        ({"command": "true", "timeout_seconds": 3601}, "between 1 and 3600"),
        ({"command": "echo \ud83c"}, "half a surrogate pair"),
    ],
    ids=str,
)
async def test_wrong_arguments_are_told(
    arguments: dict[str, Any], problem: str, context: ToolContext
) -> None:
    """What cannot be run is an answer that names the bound."""
    with pytest.raises(ToolError, match=problem):
        await shell.run(context, arguments)


async def test_two_halves_of_a_character_are_joined(context: ToolContext) -> None:
    """A character that arrived as two halves reaches the shell whole (B67)."""
    output = await shell.run(context, {"command": "printf '\ud83c\udf78' | od -An -tx1"})

    assert output.text.splitlines()[-1].split() == ["f0", "9f", "8d", "b8"]
