"""Shell commands: bounded, ended whole, their pipes never held open. Real shells and real processes."""

from __future__ import annotations

import asyncio
import os
import time
import tracemalloc
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest

from goalmode.errors import ToolError
from goalmode.tools import launch
from goalmode.tools.launch import CommandResult, run_command
from tests.held import Begun

pytestmark = pytest.mark.anyio

ENVIRONMENT = {"PATH": os.environ["PATH"]}


async def run(
    command: str,
    cwd: Path,
    *,
    environment: Mapping[str, str] = ENVIRONMENT,
    timeout_seconds: float = 60,
    **more: Any,
) -> CommandResult:
    hold = more.pop("hold", None)
    return await run_command(
        command, cwd=cwd, environment=environment, hold=hold, timeout_seconds=timeout_seconds, **more
    )


def grace(patch: pytest.MonkeyPatch, seconds: float) -> None:
    """Between SIGTERM and SIGKILL."""
    patch.setattr(launch, "end_group", partial(launch.end_group, grace_seconds=seconds))


async def until_there(file: Path) -> None:
    while not await anyio.Path(file).exists():  # noqa: ASYNC110 - another process makes it
        await anyio.sleep(0.01)


async def test_output_and_exit_code(workspace: Path) -> None:
    """Standard output and standard error come merged, in order, with the exit code."""
    result = await run("echo out; echo err >&2; exit 3", workspace)

    assert (result.exit_code, result.output, result.size, result.timed_out) == (3, "out\nerr\n", 8, False)


async def test_the_command_runs_in_a_directory_with_blanks_and_letters(workspace: Path) -> None:
    """Directories with blanks and non-ASCII letters are used as they are (B108)."""
    result = await run('pwd; echo x > "out dir.txt"; ls', workspace)

    assert result.output == f"{workspace}\nout dir.txt\n"


async def test_the_environment_is_only_what_was_given(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of the host's environment reaches the command."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    result = await run("env", workspace, environment={**ENVIRONMENT, "ONLY": "this"})

    assert "ONLY=this" in result.output
    assert "sk-secret" not in result.output


async def test_stdin_is_empty_unless_given(workspace: Path) -> None:
    """A command that reads gets the end at once, or exactly the bytes given."""
    assert (await run("cat; echo done", workspace)).output == "done\n"
    assert (await run("wc -c", workspace, stdin=b"x" * 300_000)).output.strip() == "300000"


async def test_a_signal_is_told_as_a_shell_does(workspace: Path) -> None:
    """A command that a signal ended has exit code 128 + signal."""
    assert (await run("kill -9 $$", workspace)).exit_code == 137


async def test_the_lock_is_inherited_and_the_group_marked(workspace: Path, gate: Any) -> None:
    """The command's processes hold the gate's descriptor, and the gate knows their group."""
    with gate.enter("c") as hold:
        result = await run(f"readlink /proc/self/fd/{hold.fd}; ps -o pgid= -p $$", workspace, hold=hold)

    assert result.output.splitlines()[0] == str(gate.path)
    assert result.output.splitlines()[1].strip() == str(gate.groups[0])


async def test_the_time_limit_ends_the_whole_group(
    workspace: Path, running: Callable[[str], list[str]]
) -> None:
    """A `sleep 90` with children under a limit leaves no process behind (B120)."""
    script = "sleep 90.0101 & (sleep 90.0101; true) & echo begun; touch ready; sleep 90.0101"
    result = await run(script, workspace, timeout_seconds=0.05, hold=Begun(workspace / "ready"))

    assert (result.timed_out, result.exit_code, result.output) == (True, None, "begun\n")
    assert running("90.0101") == []


async def test_a_command_that_ignores_sigterm_is_killed(
    workspace: Path, running: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the grace comes SIGKILL."""
    grace(monkeypatch, 0.2)
    script = "trap '' TERM; echo begun; touch ready; while true; do sleep 0.0102; done"
    result = await run(script, workspace, timeout_seconds=0.05, hold=Begun(workspace / "ready"))

    assert (result.timed_out, result.output) == (True, "begun\n")
    assert running("0.0102") == []


async def test_what_sigterm_makes_a_command_say_is_kept(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command may use the grace to say what it did."""
    grace(monkeypatch, 60)
    script = "trap 'echo saved; exit 0' TERM; echo begun; touch ready; while true; do sleep 0.05; done"
    result = await run(script, workspace, timeout_seconds=0.05, hold=Begun(workspace / "ready"))

    assert result.output.startswith("begun\n")
    assert result.output.endswith("saved\n")


async def test_cancellation_ends_the_whole_group(
    workspace: Path, running: Callable[[str], list[str]]
) -> None:
    """Cancelled from outside, a command's processes are gone before the cancellation goes on (B120)."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, "sleep 90.0103 & touch ready; sleep 90.0103", workspace)
        await until_there(workspace / "ready")
        tasks.cancel_scope.cancel()

    assert running("90.0103") == []


async def test_a_second_cancellation_ends_the_grace(
    workspace: Path, running: Callable[[str], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever cancels again while a command has its grace gets SIGKILL at once, and no orphan (B121)."""
    grace(monkeypatch, 600)
    script = "trap 'touch asked' TERM; touch ready; while true; do sleep 0.0107; done"
    task = asyncio.ensure_future(run(script, workspace))
    await until_there(workspace / "ready")
    started = time.monotonic()
    task.cancel()
    await until_there(workspace / "asked")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert time.monotonic() - started < 1.5
    assert running("0.0107") == []


async def test_a_mark_that_cannot_be_written_ends_the_command(
    workspace: Path, running: Callable[[str], list[str]]
) -> None:
    """A command whose group nobody could end later does not go on."""

    class FullDisk:
        fd = None

        def mark(self, process_group: int) -> None:
            raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space"):
        await run("sleep 90.0108", workspace, hold=FullDisk())

    assert running("90.0108") == []


async def test_background_processes_end_with_their_command(
    workspace: Path, running: Callable[[str], list[str]]
) -> None:
    """A child that keeps the pipe open does not hold the result up, and does not survive it."""
    started = time.monotonic()
    result = await run("sleep 90.0104 & echo done", workspace)

    assert (result.exit_code, result.output, result.timed_out) == (0, "done\n", False)
    assert time.monotonic() - started < 5
    assert running("90.0104") == []


async def test_a_child_that_left_the_group_cannot_hold_the_result_up(workspace: Path) -> None:
    """`setsid` leaves the group; the pipe it holds is closed all the same."""
    started = time.monotonic()
    result = await run("setsid sleep 40.0105 & echo done", workspace)

    assert result.output == "done\n"
    assert time.monotonic() - started < 2


async def test_a_command_that_closes_its_output_is_still_waited_for(workspace: Path) -> None:
    """The end of the output is not the end of the command."""
    result = await run("exec >&- 2>&-; sleep 0.2; exit 4", workspace)

    assert (result.exit_code, result.output) == (4, "")


async def test_fifty_megabytes_on_one_line_stay_bounded(workspace: Path) -> None:
    """A huge output costs no more memory than its bound, and head, tail and size are told (B59)."""
    tracemalloc.start()
    try:
        result = await run("echo BEGIN; head -c 52428800 /dev/zero | tr '\\0' j; echo END", workspace)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert result.size == 52_428_800 + len("BEGIN\nEND\n")
    assert result.output.startswith("BEGIN\njjj")
    assert result.output.endswith("jjjEND\n")
    assert f"left out of {result.size}" in result.output
    assert len(result.output) < 1_010_000
    assert peak < 12_000_000


async def test_dirty_bytes_are_replaced(workspace: Path) -> None:
    """NUL, Latin-1 and random bytes come back as text (B65, B70)."""
    result = await run(r"printf 'a\000b \344 \355\240\274 c'", workspace)

    assert result.output.startswith("a\x00b \ufffd ")
    result.output.encode()


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("echo \x00", "NUL"),
        ("echo \ud83c", "half a surrogate pair"),
        ("echo " + "x" * 3_000_000, "cannot be started"),
    ],
    ids=["NUL", "surrogate", "too long"],
)
async def test_a_command_that_cannot_be_is_told(command: str, problem: str, workspace: Path) -> None:
    """A command that no system can start is an answer for the model."""
    with pytest.raises(ToolError, match=problem):
        await run(command, workspace)


async def test_a_missing_directory_is_told(workspace: Path) -> None:
    """A workspace that is gone is an answer too."""
    with pytest.raises(ToolError, match="No such file"):
        await run("true", workspace / "gone")


async def test_without_pidfd_a_command_is_waited_for_all_the_same(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, running: Callable[[str], list[str]]
) -> None:
    """Systems without pidfd have a fallback."""
    monkeypatch.delattr(os, "pidfd_open")

    result = await run("sleep 90.0106 & sleep 0.1; echo done; exit 5", workspace)

    assert (result.exit_code, result.output) == (5, "done\n")
    assert running("90.0106") == []
