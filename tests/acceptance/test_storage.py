"""Rows B53 and B55: a store that cannot be written is never passed over, and nothing runs that it could not keep."""

from __future__ import annotations

import random
import sqlite3
import string
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from goalmode import ExitReason, Skip, Store, tool
from goalmode.domain.exits import SkipReason
from goalmode.errors import StoreBusy
from goalmode.orchestrator.heartbeat import heartbeat_of
from goalmode.state.owner import LEASE_MS
from goalmode.testing import steps
from tests.acceptance.cli import Command
from tests.acceptance.processes import Children
from tests.acceptance.world import Provider, World, complete, mark

pytestmark = pytest.mark.sqlite


@pytest.fixture
def locker(world: World) -> Iterator[sqlite3.Connection]:
    """Another connection to the store's file, which can lock it."""
    with closing(sqlite3.connect(world.store_path, isolation_level=None, check_same_thread=False)) as made:
        yield made
        if made.in_transaction:
            made.execute("ROLLBACK")


def impatient(world: World) -> None:
    """Wait for a locked store for a quarter of a second only."""
    world.store.close()
    world.store = Store(str(world.store_path), clock=world.clock, busy_seconds=0.25)


def test_a_lock_for_a_while_is_waited_out(world: World, locker: sqlite3.Connection) -> None:
    """B53 (a): the store is locked while a turn is under way; nothing is lost."""
    goal = world.goal(deliverables=["marks"])
    world.provider.script(mark(), mark(), complete())

    def locks(number: int) -> None:
        if number == 1:
            locker.execute("BEGIN EXCLUSIVE")
            threading.Timer(1.0, locker.execute, ["ROLLBACK"]).start()

    world.provider.on_request = locks
    ending = world.wake(goal)

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert world.marks() == 2
    assert world.now(goal).spent.turns == 3


def test_a_lock_for_ever_ends_the_run_before_any_tool(world: World, locker: sqlite3.Connection) -> None:
    """B53 (b): the reply cannot be stored, so its call does not run; the error names lock and file."""
    goal = world.goal(deliverables=["marks"])
    impatient(world)
    world.provider.script(mark(), mark())
    world.provider.on_request = lambda number: locker.execute("BEGIN EXCLUSIVE") if number == 1 else None

    with pytest.raises(StoreBusy, match="locked") as told:
        world.wake(goal)
    locker.execute("ROLLBACK")

    assert str(world.store_path) in str(told.value)
    assert world.marks() == 1
    assert world.rows("SELECT exit_reason FROM wakeups") == [(None,)]


def test_a_lock_within_a_batch_ends_the_batch(world: World, locker: sqlite3.Connection) -> None:
    """B53 (b): when one call's result cannot be stored, the next call of the same reply does not run."""

    @tool
    def lock_it() -> str:
        """Lock the store."""
        locker.execute("BEGIN EXCLUSIVE")
        return "locked"

    world.tools = (lock_it,)
    goal = world.goal()
    impatient(world)
    world.provider.script(steps.tools([("lock_it", {}), ("shell", {"command": "echo x >> marks"})]))

    with pytest.raises(StoreBusy):
        world.wake(goal)

    assert world.marks() == 0


def test_a_run_that_lost_its_store_does_not_hold_the_goal(world: World, locker: sqlite3.Connection) -> None:
    """B53: the process lives on, but its lease is not renewed: after the lease's length the goal is taken over."""
    goal = world.goal(deliverables=["marks"])
    impatient(world)
    world.provider.script(mark(), mark())
    world.provider.on_request = lambda number: locker.execute("BEGIN EXCLUSIVE") if number == 1 else None
    with pytest.raises(StoreBusy):
        world.wake(goal)
    locker.execute("ROLLBACK")
    world.provider.on_request = None

    at_once = world.wake(goal)
    for _ in range(3):
        world.clock.advance(LEASE_MS / 1000 * 0.4)
        heartbeat_of(world.store).beat()
    world.provider.script(mark(), complete())
    later = world.wake(goal)

    assert isinstance(at_once, Skip)
    assert at_once.reason is SkipReason.LEASED
    assert later.reason is ExitReason.CURRENT_TASK_DONE


def test_a_full_disk_stops_the_run_at_once(
    goalmode: Command, workspace: Path, provider: Provider, children: Children
) -> None:
    """B55: the first commit that fails ends the run, naming file and disk; with room again it goes on from there."""
    goal = goalmode.new("x", workspace, provider.url, "--deliverable", "marks")
    noise = random.Random(4711)
    long = [mark("".join(noise.choices(string.ascii_letters, k=30_000))) for _ in range(20)]
    provider.script(*long)
    words = [sys.executable, "-m", "goalmode", "run", "--store", goalmode.url, goal]
    run = children.start(["bash", "-c", 'ulimit -f 200; exec "$@"', "bash", *words])

    code = run.ended()
    ran = len((workspace / "marks").read_text().splitlines())
    stored = [c for turn in goalmode.turns(goal) for c in turn["calls"]]
    provider.script(complete())
    again = goalmode("run", goal)

    assert code == 1
    [line] = [line for line in run.err.splitlines() if line.startswith("goalmode: ")]
    assert str(goalmode.store) in line
    assert "disk" in line
    assert 2 <= ran == len(stored) < 20
    assert goalmode.show(goal)["spent"]["turns"] == ran + 1
    assert again.code == 0
    with closing(sqlite3.connect(goalmode.store)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
