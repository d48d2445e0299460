"""The lock that tools inherit: an old owner's tools are ended before somebody else starts new ones."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import stat
import subprocess
import threading
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from goalmode.domain.goal import Goal
from goalmode.errors import Fenced
from goalmode.orchestrator.recover import recover
from goalmode.state import goals, locks, wakeups
from goalmode.state.locks import LockGate, end_tools, take_over
from goalmode.state.owner import boot_id, process_start
from goalmode.state.store import Store
from goalmode.testing import ManualClock
from tests.state.builders import claim, dump, intent, new_goal, outcome, record, reply, rows
from tests.state.processes import another, until


def gate(path: Path) -> LockGate:
    return LockGate(path, 1, lambda: 1)


def is_free(path: Path) -> bool:
    with path.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def ended(pid: int) -> bool:
    return process_start(pid) is None


def sleeper(held: locks.Hold | None = None) -> subprocess.Popen[bytes]:
    """A tool that would run for an hour, in a group of its own, as a shell command is started."""
    fds = () if held is None or held.fd is None else (held.fd,)
    return subprocess.Popen(["sleep", "3600"], pass_fds=fds, start_new_session=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "locks" / "1.1"


def test_a_lock_lives_as_long_as_the_tool_that_inherits_it(path: Path) -> None:
    """The child keeps it after the call's end, and the parent's own copy is closed as soon as the group is marked."""
    with gate(path).enter("c0") as hold, sleeper(hold) as tool:
        assert not is_free(path)
        hold.mark(tool.pid)
        assert hold.fd is None
        assert not is_free(path)
        tool.kill()
        tool.wait()

        assert is_free(path)


def test_a_lock_without_a_process_ends_with_the_call(path: Path) -> None:
    """A write by the host itself holds the lock while it runs."""
    with gate(path).enter("c0"):
        assert not is_free(path)

    assert is_free(path)


def test_calls_of_one_wakeup_share_the_lock(path: Path) -> None:
    """Parallel tools do not wait for each other."""
    with gate(path).enter("c0"), gate(path).enter("c1"):
        assert not is_free(path)

    assert is_free(path)


def test_lock_files_are_for_their_user_alone(path: Path) -> None:
    """0600 in a 0700 directory: the marks name processes that will be ended."""
    with gate(path).enter("c0"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_taking_over_ends_the_recorded_group(path: Path) -> None:
    """Its tools are gone when the body runs, the started calls are named, and the file goes with it."""
    with gate(path).enter("c0"):
        pass
    with gate(path).enter("c1") as hold:
        tool = sleeper(hold)
        hold.mark(tool.pid)

    with take_over(path) as started:
        assert tool.wait() == -signal.SIGKILL
        assert started == {"c0", "c1"}

    assert not path.exists()


def test_a_process_that_got_the_number_later_is_not_ended(path: Path) -> None:
    """B50: the start time tells the recorded group from a stranger with its number."""
    with sleeper() as stranger:
        with gate(path).enter("c0"):
            mark = {"call": "c0", "group": stranger.pid, "start": "1", "boot": boot_id()}
            with path.open("a") as file:
                file.write(json.dumps(mark) + "\n")

        end_tools(path)

        assert stranger.poll() is None
        stranger.kill()


def test_marks_of_another_boot_and_torn_lines_are_no_marks(path: Path) -> None:
    """After a restart no tool runs any more, and what a crash cut off names nothing."""
    with gate(path).enter("c0"), path.open("a") as file:
        file.write(json.dumps({"call": "old", "group": os.getpid(), "boot": "another"}) + '\n{"call": "to')

    with take_over(path) as started:
        assert started == {"c0"}


def test_a_tool_that_was_never_recorded_is_ended_too(path: Path) -> None:
    """B41: kill -9 between a tool's start and its mark, or a tool that left its group: it still holds the lock."""
    with gate(path).enter("c0") as hold:
        tool = sleeper(hold)
    with tool:
        with take_over(path) as started:
            assert started == {"c0"}
        assert tool.wait() == -signal.SIGKILL


def test_an_old_owner_that_lives_is_waited_for_and_then_reported(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may only be slow: it is not ended, the goal must not be woken, and the file stays."""
    monkeypatch.setattr(locks, "TAKEOVER_SECONDS", 0.2)
    with gate(path).enter("c0") as hold:
        tool = sleeper(hold)  # Never marked: it is in no recorded group.
    with tool:
        with take_over(path, tool.pid) as started:
            assert started is None
        assert path.exists()
        tool.kill()


def test_an_owner_that_wakes_up_during_a_take_over_starts_nothing(path: Path) -> None:
    """Where no tool ever ran there is no file; the gate still waits for the new fence, then refuses."""
    fence, entered, result = [1], threading.Event(), []

    def old_owner() -> None:
        entered.set()
        try:
            with LockGate(path, 1, lambda: fence[0]).enter("late"):
                result.append("started")
        except Fenced:
            result.append("fenced")

    thread = threading.Thread(target=old_owner)
    with take_over(path) as started:
        assert started == frozenset()
        thread.start()
        entered.wait()
        fence[0] = 2
    thread.join()

    assert result == ["fenced"]
    assert not path.exists()


def test_a_gate_whose_store_cannot_be_read_gives_the_lock_back(path: Path) -> None:
    """Whatever goes wrong on the way in, nothing stays locked."""

    def broken() -> int:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"), LockGate(path, 1, broken).enter("c0"):
        pytest.fail("entered")

    assert is_free(path)


def works(pipe: Connection, path: str, goal_id: int) -> None:
    """Claims the goal, commits a turn, then hangs in the first of two calls of the next."""
    with Store(path, clock=ManualClock()) as store:
        claimed = claim(store, goals.get(store, goal_id))
        outcome(store, claimed, intent(store, claimed, reply("shell", prefix="a")), record("a0"))
        turn = intent(store, claimed, reply("shell", "shell", prefix="b"), seq=2)
        lock = store.lock_file(goal_id, claimed.fence)
        with LockGate(lock, claimed.fence, lambda: wakeups.current_fence(store, goal_id)).enter("b0") as hold:
            tool = sleeper(hold)
            hold.mark(tool.pid)
            pipe.send(tool.pid)
            pipe.send(tool.wait())
            before = dump(store)
            try:
                outcome(store, claimed, turn, record("b0"))
            except Fenced:
                pipe.send("fenced")
            pipe.send(dump(store) == before)


def recovered(store: Store, goal: Goal) -> bool:
    with store.reading() as connection:
        dead = wakeups.open_wakeup(connection, goal.id)
    assert dead is not None
    assert dead.lease.is_void(store.clock.lease_ms(), store.owner)
    return recover(store, goals.get(store, goal.id), dead, turns=1, jitter=0.0)


def test_the_tool_of_a_killed_owner_is_ended_before_the_goal_goes_on(store: Store) -> None:
    """B41 B43: kill -9 in a tool: at once its orphan is gone, the started call is interrupted, the other skipped."""
    goal = new_goal(store)
    with another(works, store.url, goal.id) as owner:
        tool = owner.hear()
        owner.kill()
        assert not ended(tool)

        assert recovered(store, goal)
        until(lambda: ended(tool), what="the tool is gone")  # Its lock is, a moment before.

    assert rows(store, "SELECT call_id, outcome FROM tool_calls ORDER BY id") == [
        ("a0", "success"),
        ("b0", "interrupted"),
        ("b1", "skipped"),
    ]
    assert rows(store, "SELECT exit_reason FROM wakeups") == ["INTERRUPTED"]
    assert goals.get(store, goal.id).spent.turns == 2
    claim(store, goal)


def test_a_stopped_owner_loses_tool_and_writes(store: Store, clock: ManualClock) -> None:
    """B50: SIGSTOP in a tool, the lease runs out: its tool is ended, and once it goes on, nothing it writes counts."""
    goal = new_goal(store)
    with another(works, store.url, goal.id) as owner:
        tool = owner.hear()
        os.kill(owner.pid, signal.SIGSTOP)
        clock.advance(61)

        assert recovered(store, goal)
        until(lambda: ended(tool), what="the tool is gone")
        again = claim(store, goal)

        os.kill(owner.pid, signal.SIGCONT)
        assert owner.hear() == -signal.SIGKILL
        assert (owner.hear(), owner.hear()) == ("fenced", True)

    assert rows(store, "SELECT fence, exit_reason FROM wakeups ORDER BY seq") == [
        (1, "INTERRUPTED"),
        (again.fence, None),
    ]


def test_an_owner_that_lives_keeps_its_goal(store: Store, clock: ManualClock) -> None:
    """B48: within its lease a living process is not void, in a tool or not; once it is dead it is void at once."""
    goal = new_goal(store)
    with another(works, store.url, goal.id) as owner:
        tool = owner.hear()
        with store.reading() as connection:
            running = wakeups.open_wakeup(connection, goal.id)
        assert running is not None
        assert running.lease.owner.pid == owner.pid
        assert not running.lease.is_void(clock.lease_ms(), store.owner)

        owner.kill()

        until(lambda: running.lease.is_void(clock.lease_ms(), store.owner), what="void")
        os.killpg(tool, signal.SIGKILL)
