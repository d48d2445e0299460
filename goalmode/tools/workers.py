"""Threads for short blocking work of our own: a commit, a lock. A turn hands over four pieces of it.

anyio's pool does the same for several times the CPU: it wakes its threads through a lock written in Python, and asks a
limiter first. Here there are as many threads as pieces of work at once; one that has nothing to do ends soon.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from typing import Any, ParamSpec, TypeVar

import anyio
from anyio import lowlevel

IDLE_SECONDS = 10.0
"""After which a thread without work ends."""

P = ParamSpec("P")
Result = TypeVar("Result")

_idle: list[_Worker] = []
"""The one that worked last is last: it is taken first, so that the others can end."""

_busy: set[_Worker] = set()


async def in_worker(function: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
    """What `function` returns or raises. Whoever is cancelled meanwhile waits for its end all the same."""
    await lowlevel.checkpoint_if_cancelled()
    return await seen_through(function, *args, **kwargs)


async def seen_through(function: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
    """The same for what must be done whoever wants to stop: it is begun also for one who is cancelled already."""
    job = _Job(asyncio.get_running_loop(), copy_context(), lambda: function(*args, **kwargs))
    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
        worker.start()
    _busy.add(worker)
    worker.jobs.put(job)
    with anyio.CancelScope(shield=True):
        await job.done
    found: Result = job.done.result()
    return found


class _Job:
    def __init__(self, loop: asyncio.AbstractEventLoop, context: Context, work: Callable[[], Any]) -> None:
        self._loop, self._context, self._work = loop, context, work
        self.done: asyncio.Future[Any] = loop.create_future()

    def run(self) -> Callable[[], None]:
        """Do the work; returns what is still to be done in the loop."""
        try:
            result = self._context.run(self._work)
        except StopIteration as stop:  # A future cannot hold it.
            error: BaseException = RuntimeError(f"StopIteration: {stop}")
        except BaseException as raised:  # noqa: BLE001 - delivered to whoever awaits
            error = raised
        else:
            return lambda: self._deliver(self.done.set_result, result)
        return lambda: self._deliver(self.done.set_exception, error)

    def tell(self, outcome: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # The loop has closed: nobody waits any more.
            self._loop.call_soon_threadsafe(outcome)

    def _deliver(self, settle: Callable[[Any], None], outcome: Any) -> None:
        if not self.done.done():  # Cancelled past every scope, by asyncio itself.
            settle(outcome)


class _Worker(threading.Thread):
    def __init__(self) -> None:
        super().__init__(name="goalmode worker", daemon=True)
        self.jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()

    def run(self) -> None:
        while True:
            try:
                job = self.jobs.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                try:
                    _idle.remove(self)
                except ValueError:  # Taken this moment: its next job is on the way.
                    continue
                return
            if job is None:
                return
            outcome = job.run()
            _busy.discard(self)
            _idle.append(self)  # First: whoever goes on with the outcome may have more to do.
            job.tell(outcome)
            del job, outcome


@atexit.register
def _finish() -> None:
    """A commit is seen through, though nobody waits for it any more."""
    for worker in list(_busy):
        worker.jobs.put(None)
        worker.join()


def _forget() -> None:
    """A child has none of its parent's threads."""
    _idle.clear()
    _busy.clear()


os.register_at_fork(after_in_child=_forget)
