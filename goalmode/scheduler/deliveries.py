"""What a server finds to do where goals are delivered to it: what has arrived, and nothing else.

It also issues what is due, for any server; the store decides what is issued, and whether a delivery still counts.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from anyio import to_thread

from goalmode.domain.exits import Exit, SkipReason
from goalmode.errors import StoreError
from goalmode.loop.ports import Sink
from goalmode.orchestrator.run import Ending
from goalmode.orchestrator.skip import Skip
from goalmode.scheduler.lookout import Lookout
from goalmode.state import deliveries
from goalmode.state.deliveries import Delivery
from goalmode.state.due import Due
from goalmode.state.store import Store

STEP_SECONDS = 0.2
"""How soon a delivery that waits for its turn sees that the server stops."""

_IN_THE_WAY = (SkipReason.OTHER_HOST, SkipReason.TOOL_STILL_RUNNING)
"""Skips that another attempt at once would meet again: the delivery is left to count as lost."""

WakeDelivered = Callable[[int, Sink, Callable[[], Exit | None], int], Awaitable[Ending]]
"""A `goalmode.scheduler.daemon.WakeGoal` that is told the delivery's number, too."""


class Carrier(Protocol):
    """Carries deliveries to the servers of their labels. It may lose them, and bring them late or twice."""

    def prepare(self) -> None:
        """Before deliveries are issued: repair what was lost of the carrier itself."""
        ...

    def enqueue(self, connection: Any, delivery: Delivery) -> None:
        """Take a delivery, in the transaction of `connection`."""
        ...

    def forget(self, issued: Sequence[Delivery]) -> None:
        """After the commit: whatever it holds of these goals' deliveries before these is of no use any more."""
        ...


@dataclass(eq=False)
class _Handed:
    """A delivery that has arrived; whoever handed it over waits until it is `over`, which says what came of it."""

    goal: int
    number: int
    dead: bool = False
    what: str = ""
    over: threading.Event = field(default_factory=threading.Event)

    def end(self, what: str) -> None:
        self.what = what
        self.over.set()


class Deliveries(Lookout):
    """Looks at one store and at what has arrived here; wakes what it was asked for, by its delivery.

    Attributes:
        hurry: called when something has arrived.

    Args:
        stopping: whether the server is to end: nothing that arrives is woken any more.
    """

    def __init__(
        self,
        store: Store,
        labels: Collection[str],
        wake_goal: WakeDelivered,
        carrier: Carrier,
        *,
        stopping: Callable[[], bool],
    ) -> None:
        super().__init__(store, labels)
        self._wake_goal, self._carrier, self._stopping = wake_goal, carrier, stopping
        self._lock = threading.Lock()
        self._waiting: list[_Handed] = []
        self._running: dict[int, _Handed] = {}
        self._ended: set[int] = set()
        self._closed = False
        self.hurry: Callable[[], None] = lambda: None

    def due(self, passing: Collection[int], limit: int, *, now: datetime | None = None) -> list[Due]:
        """Issue what is due, then return what has arrived; see `Lookout.due`."""
        self._carrier.prepare()
        issued = deliveries.issue(self.store, self.labels, self._carrier.enqueue)
        if issued:
            self._carrier.forget(issued)
        return self._arrived(passing, limit)

    def hand(self, goal: int, number: int) -> str:
        """A delivery has arrived: wait until the goal was woken for it, or it is of no use. On the carrier's thread.

        Returns a word for what came of it, for the carrier's own records.
        """
        handed = _Handed(goal, number)
        with self._lock:
            self._waiting.append(handed)
        self.hurry()
        while not handed.over.wait(STEP_SECONDS):
            if (self._stopping() or self._closed) and self._withdrawn(handed):
                self._give_back(handed)
                handed.end("given back")
        return handed.what

    async def wake(self, goal: int, sink: Sink, stop: Callable[[], Exit | None]) -> Ending:
        """See `goalmode.scheduler.daemon.WakeGoal`; only what `due` has returned."""
        handed = self._running[goal]
        try:
            ending = await self._wake_goal(goal, sink, stop, handed.number)
            if isinstance(ending, Skip) and ending.reason not in _IN_THE_WAY:
                await to_thread.run_sync(self._give_back, handed)
                if not handed.dead:  # It was due when it was issued: no reason to be patient with it.
                    return Skip(SkipReason.SUPERSEDED, ending.detail)
            return ending
        finally:
            with self._lock:
                del self._running[goal]
                self._ended.add(goal)
            handed.end("over")

    def close(self) -> None:
        """The server has ended: nobody wakes anything any more."""
        self._closed = True
        for handed in list(self._running.values()):
            handed.end("left")

    def _arrived(self, passing: Collection[int], limit: int) -> list[Due]:
        with self._lock:
            # Whoever was asked before these ended takes them for running still: they have their turn at the next look.
            held, self._ended = {*self._running, *self._ended}, set()
            waiting = {handed.goal: handed for handed in reversed(self._waiting) if handed.goal not in held}
        found = []
        for handed in list(reversed(waiting.values()))[:limit]:
            # What is passed over here may be woken elsewhere: its delivery counts as lost after a while.
            passed = handed.goal in passing
            found.append(
                (handed, None if passed else deliveries.arrived(self.store, handed.goal, handed.number))
            )
        taken = []
        for handed, due in found:
            if not self._withdrawn(handed):
                continue
            if due is None:
                handed.end("of no use")
            else:
                handed.dead = due.dead
                with self._lock:
                    self._running[handed.goal] = handed
                taken.append(due)
        return taken

    def _withdrawn(self, handed: _Handed) -> bool:
        """Take it out of those that wait; False if somebody else has."""
        with self._lock:
            if handed not in self._waiting:
                return False
            self._waiting.remove(handed)
            return True

    def _give_back(self, handed: _Handed) -> None:
        with suppress(StoreError):  # Then it counts as lost.
            deliveries.give_back(self.store, handed.goal, handed.number)
