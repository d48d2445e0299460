"""`shell`: a command line in the workspace."""

from __future__ import annotations

from typing import Annotated

from goalmode.errors import ToolError
from goalmode.tools.launch import GRACE_SECONDS, CommandResult, run_command
from goalmode.tools.registry import ToolContext, ToolOutput, tool

MAX_SECONDS = 3600


@tool(effect="write", timeout_seconds=MAX_SECONDS + 10 * GRACE_SECONDS, brief="command")
async def shell(
    context: ToolContext,
    command: Annotated[str, "Command line for bash, run in the workspace. It can read nothing from stdin."],
    timeout_seconds: Annotated[
        int, f"After this many seconds the command is ended; at most {MAX_SECONDS}."
    ] = 120,
) -> ToolOutput:
    """Run a shell command in the workspace and wait for it. The result has exit code, duration and output (stdout and
    stderr together). Background processes end with the command.
    """
    if not 1 <= timeout_seconds <= MAX_SECONDS:
        raise ToolError(f"shell: timeout_seconds must be between 1 and {MAX_SECONDS}, not {timeout_seconds}")
    if not command.strip():
        raise ToolError("shell: the command is empty")
    result = await run_command(
        command,
        cwd=context.workspace,
        environment={**context.environment, "GOALMODE_IDEMPOTENCY_KEY": context.idempotency_key},
        hold=context.hold,
        timeout_seconds=timeout_seconds,
        redact=context.redact,
        confinement=context.confinement,
    )
    return ToolOutput(
        _told(result, timeout_seconds),
        ok=not result.timed_out,
        exit_code=result.exit_code,
        size=result.size,
        redactions=result.redactions,
        varies=_duration(result),
    )


def _told(result: CommandResult, timeout_seconds: int) -> str:
    ending = f"exit code: {result.exit_code}"
    if result.timed_out:
        ending = f"ended by its time limit of {timeout_seconds} s, with everything it had started"
    head = f"{ending}\n{_duration(result)}\noutput: {result.size} bytes"
    return f"{head}\n{result.output}" if result.output else head


def _duration(result: CommandResult) -> str:
    return f"duration: {result.milliseconds / 1000:.1f} s"
