"""A shell command from start to end: its output bounded, its time limited, its whole process group ended with it.

A command's background processes end with the command, which also bounds how long a pipe can be held open. A process
that leaves the group on purpose (`setsid`) is out of reach; it keeps the gate's lock, so a new owner sees it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import anyio
from anyio import lowlevel

from goalmode.domain.redact import Redactor
from goalmode.errors import ToolError
from goalmode.tools.confinement import FREE, Confinement
from goalmode.tools.output import HeadTail
from goalmode.tools.registry import GateHold
from goalmode.tools.surrogates import well_formed

MAX_OUTPUT = 1_000_000
"""Bytes of a command's output that are kept, head and tail."""

GRACE_SECONDS = 2.0
"""Between SIGTERM and SIGKILL."""

_POLL_SECONDS = 0.02
_FALL_SECONDS = 0.1
"""In which a group whose leader takes all with it is usually gone. The slow look at /proc is left out so long."""

_CHUNK = 65_536
_LAST_READS = 64
"""Chunks read after a command's end, at most: more than any pipe holds."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended.

    Attributes:
        exit_code: as a shell reports it (128 + signal); None if the time limit ended the command.
        output: standard output and standard error as they came, head and tail.
        size: bytes of the whole output.
        redactions: secrets struck out of the output before it was cut; 0 if it was not cut.
    """

    exit_code: int | None
    output: str
    size: int
    timed_out: bool
    milliseconds: int
    redactions: int = 0


async def run_command(
    command: str,
    *,
    cwd: Path,
    environment: Mapping[str, str],
    hold: GateHold | None,
    timeout_seconds: float,
    max_bytes: int = MAX_OUTPUT,
    stdin: bytes | None = None,
    redact: Redactor | None = None,
    confinement: Confinement = FREE,
) -> CommandResult:
    """Run `command` in bash, or sh where there is no bash, and wait for it.

    Args:
        environment: of the command, as far as it is given to one that is confined.
        hold: its descriptor is inherited, its file told the process group. None where no lock is needed.
        stdin: what the command can read; None: nothing.
        redact: applied to an output that is larger than `max_bytes`, before it is cut.

    Raises:
        ToolError: the command cannot be started.
    """
    started = time.monotonic()
    output = HeadTail(max_bytes)
    with _started(command, cwd, environment, hold, stdin, confinement) as (process, pipe):
        try:
            if hold is not None:
                hold.mark(process.pid)
            with anyio.move_on_after(timeout_seconds) as limit:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(_pump, pipe, output)
                    await _wait(process)
                    tasks.cancel_scope.cancel()
        finally:
            with anyio.CancelScope(shield=True):
                await end_group(process, spare_leader=confinement.leads)
        _read_rest(pipe, output)
    text, redactions = output.text(redact)
    return CommandResult(
        exit_code=None if limit.cancelled_caught else _as_shell(process.returncode),
        output=text,
        size=output.size,
        timed_out=limit.cancelled_caught,
        milliseconds=round((time.monotonic() - started) * 1000),
        redactions=redactions,
    )


@contextmanager
def _started(
    command: str,
    cwd: Path,
    environment: Mapping[str, str],
    hold: GateHold | None,
    stdin: bytes | None,
    confinement: Confinement,
) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The running process and the descriptor its output comes from."""
    if "\x00" in command:
        raise ToolError("the command holds a NUL character; write it without one")
    text = well_formed(command, "the command").encode("utf-8")
    shell = next((s for s in ("/bin/bash", "/bin/sh") if Path(s).exists()), "sh")
    with ExitStack() as stack:
        given: IO[bytes] | int = subprocess.DEVNULL
        if stdin is not None:
            given = stack.enter_context(tempfile.TemporaryFile())
            given.write(stdin)
            given.seek(0)
        try:
            process = confinement.start(
                [shell.encode(), b"-c", text],
                lock=None if hold is None else hold.fd,
                cwd=cwd,
                env=confinement.environment(environment),
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise ToolError(f"the command cannot be started: {error.strerror or error}") from error
        assert process.stdout is not None
        stack.enter_context(process.stdout)
        os.set_blocking(process.stdout.fileno(), False)
        yield process, process.stdout.fileno()


async def _pump(pipe: int, output: HeadTail) -> None:
    """Feed what the command writes to `output`, until every holder of the pipe has closed it."""
    while True:
        try:
            data = os.read(pipe, _CHUNK)
        except BlockingIOError:
            await anyio.wait_readable(pipe)
            continue
        if not data:
            return
        output.feed(data)
        await lowlevel.checkpoint()


def _read_rest(pipe: int, output: HeadTail) -> None:
    with suppress(BlockingIOError):
        for _ in range(_LAST_READS):
            data = os.read(pipe, _CHUNK)
            if not data:
                return
            output.feed(data)


async def _wait(process: subprocess.Popen[bytes]) -> None:
    """Return once the command's own process has ended, whoever else still holds its pipe."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # Not Linux, or a kernel that lacks or forbids it.
        await _until(lambda: process.poll() is not None)
        return
    try:
        await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)


async def _until(true: Callable[[], bool], every: float = _POLL_SECONDS) -> None:
    while not true():  # noqa: ASYNC110 - the kernel sets no anyio.Event
        await anyio.sleep(every)


async def end_group(
    process: subprocess.Popen[bytes], grace_seconds: float = GRACE_SECONDS, *, spare_leader: bool = False
) -> None:
    """End and reap whatever of the process group still runs: SIGTERM, grace, SIGKILL.

    Args:
        spare_leader: the group's leader gets no SIGTERM: where it ends, all do at once, without grace.
    """
    try:
        if spare_leader and process.poll() is not None:
            with anyio.move_on_after(_FALL_SECONDS):
                await _until(lambda: not _has_members(process.pid), every=_FALL_SECONDS / 50)
        for number in (signal.SIGTERM, signal.SIGKILL):
            if not _group_runs(process):
                return
            if spare_leader and number is signal.SIGTERM:
                _ask_followers(process.pid)
            else:
                _signal_group(process, number)
            with anyio.move_on_after(grace_seconds):
                await _until(lambda: not _group_runs(process))
    except BaseException:  # A cancellation that no shield holds back: the grace is over.
        _signal_group(process, signal.SIGKILL)
        process.wait(GRACE_SECONDS)
        raise


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _ask_followers(group: int) -> None:
    for pid in _members(group):
        if pid != group:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGTERM)


def _group_runs(process: subprocess.Popen[bytes]) -> bool:
    """Whether the command or a process of its group still runs; reaps the command if it has ended.

    As long as the group has a member, no new process can get its number.
    """
    if process.poll() is None:
        return True
    return _has_members(process.pid) and _has_more_than_zombies(process.pid)


def _has_members(group: int) -> bool:
    """Whether there is a process in the group, be it a zombie."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _has_more_than_zombies(group: int) -> bool:
    """A zombie whose new parent never reaps it keeps its group but runs no more."""
    return not Path("/proc/self/stat").exists() or any(_members(group))


def _members(group: int) -> Iterator[int]:
    """The processes of a group that still run. Linux only."""
    for pid in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - of many processes, many times
        with suppress(OSError), open(f"/proc/{pid}/stat", "rb") as stat:  # noqa: PTH123
            state, _parent, member_of = stat.read().rsplit(b")", 1)[-1].split()[:3]
            if int(member_of) == group and state not in b"ZX":
                yield int(pid)


def _as_shell(code: int | None) -> int | None:
    return 128 - code if code is not None and code < 0 else code
