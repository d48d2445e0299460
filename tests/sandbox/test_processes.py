"""Commands in a sandbox end as commands do: in time, whole, and with whoever started them."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest

from goalmode.domain.sandbox import SandboxMode
from goalmode.state import locks
from goalmode.tools.launch import run_command
from tests.sandbox.conftest import Cage, until

pytestmark = pytest.mark.slow


@pytest.fixture
def nap() -> str:
    """A number of seconds that no other process sleeps."""
    return f"{random.randrange(10**4, 10**5)}.{random.randrange(10**6)}"


def runs(word: str) -> bool:
    """Whether a live process has this word in its command line."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in file.read_bytes().split(b"\0"):
                return True
        except OSError:
            continue
    return False


@contextmanager
def running(script: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs this, ended with the test whatever happens."""
    with subprocess.Popen([sys.executable, "-c", script]) as host:
        try:
            yield host
        finally:
            host.kill()


@pytest.mark.parametrize(
    ("command", "code"),
    [("exit 3", 3), ("kill -9 $$", 137), ("kill -TERM $$", 143), ("nonsense-command", 127)],
)
def test_exit_codes_come_through(cage: Cage, command: str, code: int) -> None:
    assert cage.run(command).exit_code == code


def test_a_time_limit_leaves_time_to_clean_up(cage: Cage, nap: str) -> None:
    """SIGTERM first: what traps it has its grace, in bubblewrap too."""
    started = time.monotonic()
    command = f"trap 'echo cleaned; exit 0' TERM; echo begun; sleep {nap} & touch ready; wait"
    ran = cage.run(command, seconds=0.1, begun="ready")

    assert (ran.timed_out, ran.exit_code, ran.output) == (True, None, "begun\ncleaned\n")
    assert time.monotonic() - started < 2
    assert not runs(nap)


def test_who_ignores_it_is_ended_all_the_same(cage: Cage, nap: str) -> None:
    """After the grace, with all that it started."""
    started = time.monotonic()
    ran = cage.run(f"trap '' TERM; touch ready; sleep {nap} & sleep {nap}", seconds=0.1, begun="ready")

    assert ran.timed_out
    assert time.monotonic() - started < 4
    assert until(lambda: not runs(nap))


def test_background_processes_end_with_the_command(cage: Cage, nap: str) -> None:
    """At once, also those that hold its output."""
    started = time.monotonic()
    ran = cage.run(f"sleep {nap} & nohup sleep {nap} > /dev/null 2>&1 & echo done")

    assert (ran.timed_out, ran.exit_code, ran.output) == (False, 0, "done\n")
    assert time.monotonic() - started < 5
    assert until(lambda: not runs(nap))


def test_nobody_leaves_bubblewrap(cage: Cage, nap: str) -> None:
    """Not even a process that leaves the group with `setsid`: the namespace ends with the command."""
    if cage.mode is not SandboxMode.BWRAP:
        pytest.skip("Landlock has no process namespace")
    cage.run(f"setsid -f sleep {nap}; setsid -f sleep {nap}")

    assert until(lambda: not runs(nap))


def test_a_cancellation_ends_it_within_a_second(cage: Cage, nap: str) -> None:
    """What is cancelled is gone, within the second."""

    async def body() -> float:
        with anyio.CancelScope() as scope, cage.gate().enter("call") as hold:
            scope.deadline = anyio.current_time() + 0.3
            await run_command(
                f"sleep {nap}",
                cwd=cage.workspace,
                environment=cage.environ,
                hold=hold,
                timeout_seconds=600,
                confinement=cage.confinement,
            )
        assert scope.cancelled_caught
        assert not runs(nap)
        return anyio.current_time() - scope.deadline

    assert anyio.run(body) < 1


def test_a_huge_output_is_capped(cage: Cage) -> None:
    """Head and tail are kept, and the size is known."""
    ran = cage.run("seq 1 200000", max_bytes=1_000)

    assert len(ran.output) < 3_000
    assert (ran.size, ran.output[:2], ran.output[-7:]) == (1_288_895, "1\n", "200000\n")


def test_the_lock_is_held_as_long_as_it_runs_and_a_new_owner_ends_it(cage: Cage, nap: str) -> None:
    """The lock lives with the command, not with goalmode; who takes the goal over ends what holds it."""
    path = cage.store.lock_file(cage.goal.id, 1)
    script = f"""
import anyio, sys
from pathlib import Path
from goalmode.domain.sandbox import SandboxMode
from goalmode.state.locks import LockGate
from goalmode.tools.launch import run_command
from goalmode.tools.sandbox import Sandbox
async def body():
    confinement = Sandbox(Path({str(cage.workspace)!r}), SandboxMode({cage.mode.value!r})).confinement()
    with LockGate(Path({str(path)!r}), 1, lambda: 1).enter("call") as hold:
        await run_command("setsid -f sleep {nap}; sleep {nap}", cwd=Path({str(cage.workspace)!r}), environment={{}},
            hold=hold, timeout_seconds=999, confinement=confinement)
anyio.run(body)
"""
    path.unlink(missing_ok=True)  # There are marks of other tests in it.
    with running(script) as host:
        assert until(lambda: runs(nap))
        assert until(lambda: '"group"' in path.read_text())
        fd = os.open(path, os.O_RDWR)
        host.send_signal(signal.SIGSTOP)
        with pytest.raises(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(fd)
        with locks.take_over(path, host.pid) as calls:
            assert calls == {"call"}
        assert until(lambda: not runs(nap))


def test_it_ends_with_its_host(cage: Cage, nap: str) -> None:
    """A goalmode that is killed takes bubblewrap's commands with it; Landlock's are left to the next owner."""
    if cage.mode is not SandboxMode.BWRAP:
        pytest.skip("nothing ends a command with its host but bubblewrap")
    script = f"""
import anyio
from pathlib import Path
from goalmode.domain.sandbox import SandboxMode
from goalmode.tools.launch import run_command
from goalmode.tools.sandbox import Sandbox
work = Path({str(cage.workspace)!r})
confinement = Sandbox(work, SandboxMode.BWRAP).confinement()
async def body():
    await run_command("sleep {nap}", cwd=work, environment={{}}, hold=None, timeout_seconds=99, confinement=confinement)
anyio.run(body)
"""
    with running(script) as host:
        assert until(lambda: runs(nap))
        host.kill()
        assert until(lambda: not runs(nap))
