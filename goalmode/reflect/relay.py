"""The meeting point of two loops: ours decides what comes next, the host's asks the model and runs the tools.

To our loop the host is a `Model` and some tools. To the host our loop is a page of instructions: the next request, or
that there is none. Each side runs in a thread of its own and waits here for the other; no wait outlives the wakeup.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from goalmode.domain.exits import Exit
from goalmode.domain.messages import Reply, Request
from goalmode.errors import ModelError
from goalmode.loop.ports import Event
from goalmode.tools.registry import ToolOutput

T = TypeVar("T")


class Relay:
    """One wakeup's.

    Args:
        interrupt: ends what the host is doing, when our loop stops in the middle of it. Any thread may call it.
    """

    def __init__(self, interrupt: Callable[[], None] = lambda: None) -> None:
        self._interrupt = interrupt
        self._moved = threading.Condition()
        self._request: Request | None = None
        self._reply: Future[Reply] | None = None
        self._calls: dict[str, Future[ToolOutput]] = {}
        self._recorded: set[str] = set()
        self._ending: Exit | None = None
        self._gone: Exit | None = None
        self._over = False

    # Our loop's side.

    async def complete(self, request: Request) -> Reply:
        """Have the host make a model call; see `goalmode.model.port.Model`."""
        future: Future[Reply] = Future()
        with self._moved:
            self._request, self._reply = request, future
            self._tell()
        try:
            return await self._answered(future)
        finally:
            with self._moved:
                if self._reply is future:
                    self._request = self._reply = None

    async def run(self, call_id: str) -> ToolOutput:
        """Have the host run a call of its last reply."""
        future: Future[ToolOutput] = Future()
        with self._moved:
            self._calls[call_id] = future
            self._tell()
        try:
            return await self._answered(future)
        finally:
            with self._moved:
                self._calls.pop(call_id, None)

    def heard(self, event: Event) -> None:
        """A sink: which calls have their result, whether or not the host ran them."""
        if event.kind == "tool":
            with self._moved:
                self._recorded.add(event.data["call_id"])
                self._tell()

    def stop(self) -> Exit | None:
        """The ending that the host asked for."""
        return self._ending

    def end(self) -> None:
        """The wakeup is over: nobody waits any more."""
        with self._moved:
            self._over = True
            self._tell()

    # The host's side.

    @property
    def over(self) -> bool:
        return self._over

    def next(self) -> Request | None:
        """Wait for the next model call to make; None if there is none any more. It stays the next until answered."""
        with self._moved:
            self._moved.wait_for(lambda: self._request is not None or self._over)
            return None if self._over else self._request

    def answer(self, answer: Reply | ModelError) -> None:
        """What the model said, or why it said nothing."""
        with self._moved:
            future, self._request, self._reply = self._reply, None, None
        _settle(future, answer)

    def may_run(self, call_id: str) -> bool:
        """Wait for our loop to want a call run. False if it has a result without that: refused, or skipped."""
        with self._moved:
            self._moved.wait_for(lambda: call_id in self._calls or call_id in self._recorded or self._over)
            return call_id in self._calls and not self._over

    def ran(self, call_id: str, output: ToolOutput) -> None:
        with self._moved:
            future = self._calls.pop(call_id, None)
        _settle(future, output)

    def give_up(self, ending: Exit) -> None:
        """End the wakeup now, whatever it is doing. The first ending that is asked for stands."""
        with self._moved:
            self._ending = self._ending or ending

    def leave(self, ending: Exit) -> None:
        """Say that the host will answer nothing more. What our loop still wants of it ends the wakeup with `ending`."""
        with self._moved:
            self._gone = ending
            self._tell()

    def wait(self, seconds: float) -> bool:
        """Wait for the end of the wakeup; whether it came."""
        with self._moved:
            return self._moved.wait_for(lambda: self._over, seconds)

    async def _answered(self, future: Future[T]) -> T:
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            if self._ending is None:  # Else it was the host itself that ended it.
                self._interrupt()
            raise

    def _tell(self) -> None:
        """Something has moved. Whoever wants an answer of a host that has gone ends for that."""
        waits = self._request is not None or bool(self._calls)
        if self._gone is not None and waits:
            self._ending = self._ending or self._gone
        self._moved.notify_all()


def _settle(future: Future[T] | None, result: T | BaseException) -> None:
    """Give an answer to whoever waits for it; nobody does once our loop has stopped."""
    if future is None or not future.set_running_or_notify_cancel():
        return
    if isinstance(result, BaseException):
        future.set_exception(result)
    else:
        future.set_result(result)
