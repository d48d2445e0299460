"""Blocking work beside the event loop."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from goalmode.tools import workers
from goalmode.tools.workers import in_worker, seen_through


@pytest.fixture(autouse=True)
def no_others(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Workers of other tests stay theirs; those of this one end with it, and not before."""
    idle: list[Any] = []
    monkeypatch.setattr(workers, "_idle", idle)
    monkeypatch.setattr(workers, "IDLE_SECONDS", 600)
    yield
    for worker in idle:
        worker.jobs.put(None)


def test_what_comes_of_it_comes_back() -> None:
    """A result, or whatever was raised, with the caller's context."""
    variable = contextvars.ContextVar("variable", default="")

    def fail(error: BaseException) -> None:
        raise error

    async def run() -> None:
        variable.set("mine")
        assert await in_worker(lambda: (variable.get(), threading.current_thread().name)) == (
            "mine",
            "goalmode worker",
        )
        assert await in_worker(max, 1, 2) == 2
        for error, raised in (
            (KeyError("x"), KeyError),
            (SystemExit(3), SystemExit),
            (StopIteration(1), RuntimeError),
        ):
            with pytest.raises(raised):
                await in_worker(fail, error)

    anyio.run(run)


def test_one_thread_does_what_comes_after_another_and_several_what_comes_at_once() -> None:
    """As many as there are pieces of work at one time."""

    async def run() -> None:
        idents = [await in_worker(threading.get_ident) for _ in range(20)]
        assert len(set(idents)) == 1
        meet = threading.Barrier(5, timeout=60)
        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(in_worker, meet.wait)

    anyio.run(run)


def test_who_is_cancelled_waits_for_the_end() -> None:
    """So that nothing of a commit goes on behind a wakeup that has ended."""
    begun, may_end, ended = threading.Event(), threading.Event(), []

    def work() -> None:
        begun.set()
        assert may_end.wait(60)
        ended.append(True)

    async def run() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(in_worker, work)
            await anyio.to_thread.run_sync(begun.wait, 60)
            group.cancel_scope.cancel()
            asyncio.get_running_loop().call_later(0.01, may_end.set)
        assert ended == [True]
        with anyio.CancelScope() as scope:
            scope.cancel()
            await in_worker(ended.append, False)
        assert ended == [True]

    anyio.run(run)


def test_what_must_be_done_is_begun_by_whoever_is_cancelled_already() -> None:
    """And what it returns arrives; the stop is felt at the next moment at which anything is waited for."""

    async def run() -> None:
        felt = True
        with anyio.CancelScope() as scope:
            scope.cancel()
            assert await seen_through(max, 1, 2) == 2
            await anyio.lowlevel.checkpoint()
            felt = False
        assert felt

    anyio.run(run)


def test_a_thread_without_work_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is left of it."""
    monkeypatch.setattr(workers, "IDLE_SECONDS", 0.01)

    async def run() -> threading.Thread:
        return await in_worker(threading.current_thread)

    thread = anyio.run(run)
    thread.join(60)

    assert not thread.is_alive()
    assert workers._idle == []
    assert anyio.run(run) is not thread


def test_a_task_that_asyncio_cancels_leaves_the_thread_usable() -> None:
    """A future that was cancelled takes no result, and that is no error."""
    begun, may_end = threading.Event(), threading.Event()

    async def run() -> int:
        task = asyncio.create_task(in_worker(lambda: (begun.set(), may_end.wait(60))))
        await asyncio.to_thread(begun.wait, 60)
        task.cancel()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await in_worker(lambda: 7)

    assert asyncio.run(run()) == 7


_LEAVES = """
import asyncio, atexit, os, signal, threading
from goalmode.tools.workers import in_worker
begun, may_end = threading.Event(), threading.Event()
atexit.register(may_end.set)  # Before what the workers do at the end: that was registered earlier.
def work():
    begun.set()
    may_end.wait()
    print("seen through", flush=True)
async def main():
    threading.Thread(target=lambda: (begun.wait(), os.kill(os.getpid(), signal.SIGINT))).start()
    await in_worker(work)
asyncio.run(main())
"""


@pytest.mark.long
def test_a_program_that_ends_sees_its_commits_through() -> None:
    """Also one that is not ours, and takes an interrupt as Python does."""
    done = subprocess.run(
        [sys.executable, "-c", _LEAVES], capture_output=True, text=True, timeout=120, check=False
    )

    assert "seen through" in done.stdout
