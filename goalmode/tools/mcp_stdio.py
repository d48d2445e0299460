"""An MCP server as a process of ours: JSON lines over its standard input and output.

Not the SDK's own transport: a server is an effect, so its processes inherit the gate's lock, see the tools' clean
environment, and end with their whole process group.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from goalmode.domain.text import one_line
from goalmode.errors import ToolError
from goalmode.tools.launch import end_group
from goalmode.tools.registry import EffectGate
from goalmode.tools.workers import in_worker

MAX_MESSAGE = 32_000_000
"""Bytes of one message of a server; one that says more at once is ended."""

LEAVE_SECONDS = 0.3
"""For a server to end by itself once its input is closed; then SIGTERM."""

TERM_SECONDS = 0.3
"""Between SIGTERM and SIGKILL: a stopped wakeup is to be over within a second."""

MAX_JUNK = 200
"""Lines before its first message, after which a program is taken for no MCP server."""

_TAIL = 2_000
_LAST_READS = 8
_CHUNK = 65_536

Incoming = MemoryObjectSendStream[SessionMessage | Exception]
Streams = tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]


@dataclass
class Overheard:
    """What a server said that is no message: its last words where it ends or does not answer.

    Attributes:
        junk: the first line of its standard output that is no message; `junk_lines` of them came before any was.
        closed: it closed its output by itself.
        errors: the end of its standard error.
        exit_code: of one that ended by itself, as a shell reports it.
        started: a program ran, however it ended.
    """

    junk: str = ""
    junk_lines: int = 0
    speaks: bool = False
    closed: bool = False
    errors: str = ""
    exit_code: int | None = None
    too_long: bool = False
    group: int | None = None
    started: bool = False
    gone: anyio.Event = field(default_factory=anyio.Event)

    def words(self) -> str:
        """In one line; empty if it said nothing."""
        said = []
        if self.too_long:
            said.append(f"it sent more than {MAX_MESSAGE:,} bytes at once")
        if self.exit_code is not None:
            said.append(f"exit code {self.exit_code}")
        if self.junk:
            said.append(f"its output begins with {self.junk!r}, which is not MCP")
        last = self.errors.strip().rpartition("\n")[2]
        if last:
            said.append(f"its last words: {one_line(last, 200)}")
        return ", ".join(said)


@asynccontextmanager
async def stdio(
    command: Sequence[str],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    gate: EffectGate,
    mark: str,
    overheard: Overheard,
) -> AsyncIterator[Streams]:
    """Start `command` under the gate and speak to it; leaving ends its process group.

    Args:
        mark: the id under which the gate's file names its process group.
        overheard: told of all that is no message; its `gone` is set once nothing more will come.

    Raises:
        ToolError: it cannot be started. Fenced: another owner has the goal.
    """
    process = await _start(command, cwd, environment, gate, mark)
    overheard.group, overheard.started = process.pid, True
    to_session, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as tasks:
            writer = _Writer(process, from_session)
            tasks.start_soon(_read, process, to_session, overheard)
            tasks.start_soon(writer.run)
            tasks.start_soon(_overhear, process, overheard)
            try:
                yield incoming, outgoing
            finally:
                with anyio.CancelScope(shield=True):
                    await writer.stop()
                    await _end(process, overheard)
                tasks.cancel_scope.cancel()
    finally:
        overheard.group = None
        _overhear_rest(process, overheard)
        overheard.gone.set()
        for stream in (to_session, incoming, outgoing, from_session):
            stream.close()
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()


async def _start(
    command: Sequence[str], cwd: Path, environment: Mapping[str, str], gate: EffectGate, mark: str
) -> subprocess.Popen[bytes]:
    entered = gate.enter(mark)
    hold = await in_worker(entered.__enter__)  # Somebody else may have the lock for some seconds.
    try:
        process = _popen(command, cwd, environment, hold.fd)
        if hold.fd is not None:
            hold.mark(process.pid)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ToolError(f"{one_line(command[0], 100)} cannot be started: {reason}") from None
    finally:
        entered.__exit__(*sys.exc_info())
    for pipe in (process.stdin, process.stdout, process.stderr):
        assert pipe is not None
        os.set_blocking(pipe.fileno(), False)
    return process


def _popen(
    command: Sequence[str], cwd: Path, environment: Mapping[str, str], lock: int | None
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        list(command),
        cwd=cwd,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        start_new_session=True,
        pass_fds=() if lock is None else (lock,),
    )


async def _read(process: subprocess.Popen[bytes], to_session: Incoming, overheard: Overheard) -> None:
    """Hand each line that is a message to the session, until the server closes its output."""
    assert process.stdout is not None
    held = bytearray()
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError), to_session:
        while data := await _next_chunk(process.stdout.fileno()):
            held += data
            if b"\n" in data:
                *lines, rest = held.split(b"\n")
                held = bytearray(rest)
                for line in lines:
                    await _deliver(bytes(line), to_session, overheard)
            overheard.too_long = len(held) > MAX_MESSAGE
            if overheard.too_long or (overheard.junk_lines > MAX_JUNK and not overheard.speaks):
                break
        else:
            overheard.closed = True
    overheard.gone.set()


async def _deliver(line: bytes, to_session: Incoming, overheard: Overheard) -> None:
    if not line.strip():
        return
    try:
        message = jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        overheard.junk = overheard.junk or one_line(line[:400].decode("utf-8", "replace"), 80)
        overheard.junk_lines += 1
        return
    overheard.speaks = True
    await to_session.send(SessionMessage(message))


class _Writer:
    """Writes the session's messages to the server. Stopped before its pipe is closed: nobody may wait on it then."""

    def __init__(
        self, process: subprocess.Popen[bytes], from_session: MemoryObjectReceiveStream[SessionMessage]
    ) -> None:
        assert process.stdin is not None
        self._pipe, self._from_session = process.stdin.fileno(), from_session
        self._scope, self._stopped = anyio.CancelScope(), anyio.Event()

    async def run(self) -> None:
        try:
            with (
                self._scope,
                suppress(OSError),
            ):  # It reads no more; that it has ended is seen where it is read.
                async for message in self._from_session:
                    text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await self._write(memoryview(f"{text}\n".encode()))
        finally:
            self._stopped.set()

    async def _write(self, data: memoryview) -> None:
        while data:
            await anyio.wait_writable(self._pipe)
            with suppress(BlockingIOError):
                data = data[os.write(self._pipe, data[:_CHUNK]) :]

    async def stop(self) -> None:
        self._scope.cancel()
        await self._stopped.wait()


async def _overhear(process: subprocess.Popen[bytes], overheard: Overheard) -> None:
    assert process.stderr is not None
    with suppress(OSError):
        while data := await _next_chunk(process.stderr.fileno()):
            overheard.errors = (overheard.errors + data.decode("utf-8", "replace"))[-_TAIL:]


def _overhear_rest(process: subprocess.Popen[bytes], overheard: Overheard) -> None:
    assert process.stderr is not None
    with suppress(OSError):
        for _ in range(_LAST_READS):
            data = os.read(process.stderr.fileno(), _CHUNK)
            if not data:
                return
            overheard.errors = (overheard.errors + data.decode("utf-8", "replace"))[-_TAIL:]


async def _next_chunk(pipe: int) -> bytes:
    while True:
        await anyio.wait_readable(pipe)
        with suppress(BlockingIOError):
            return os.read(pipe, _CHUNK)


async def _end(process: subprocess.Popen[bytes], overheard: Overheard) -> None:
    """Close its input, give it a moment to leave, and end the process group."""
    assert process.stdin is not None
    with suppress(OSError):
        process.stdin.close()
    with anyio.move_on_after(LEAVE_SECONDS):
        while process.poll() is None:  # noqa: ASYNC110 - the kernel sets no anyio.Event
            await anyio.sleep(0.01)
    if overheard.closed:
        overheard.exit_code = _as_shell(process.poll())
    await end_group(process, TERM_SECONDS)


def _as_shell(code: int | None) -> int | None:
    return 128 - code if code is not None and code < 0 else code
