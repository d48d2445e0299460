"""A server of many goals: look, wake what is due, up to so many at once, until it is told to stop.

Several servers on one store need not know of each other: claiming a goal decides who wakes it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from datetime import datetime
from typing import Any

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from goalmode.domain.exits import Exit, SkipReason
from goalmode.errors import GoalmodeError, StoreError, StoreUnreadable
from goalmode.loop.ports import Event, Sink
from goalmode.orchestrator.run import Ending
from goalmode.orchestrator.skip import Skip
from goalmode.scheduler.lookout import Lookout
from goalmode.scheduler.patience import Patience
from goalmode.scheduler.stopping import Stopping, Turnwise
from goalmode.state.due import Due
from goalmode.state.store import Store

CONCURRENCY = 4
POLL_SECONDS = 1.0
GRACE_SECONDS = 10.0

STEP_SECONDS = 0.2
"""How soon a stop, or the end of a wakeup, is seen between two looks."""

WakeGoal = Callable[[int, Sink, Callable[[], Exit | None]], Awaitable[Ending]]
"""Wakes the goal with this number if it is due. Told what to tell its events to, and what to ask whether to stop."""


class Daemon:
    """Wakes goals as they become due.

    Args:
        labels: host labels whose goals are woken.
        concurrency: wakeups at once.
        sink: is told what happens: `claimed`, `ended`, `skipped`, `recovered`, `taken_over`, `source`,
            `store`, `stopping`.
        lookout: finds what there is to do; None for looking at the store.
    """

    def __init__(
        self,
        store: Store,
        wake_goal: WakeGoal,
        *,
        labels: Collection[str],
        concurrency: int = CONCURRENCY,
        sink: Sink,
        lookout: Lookout | None = None,
    ) -> None:
        self._store, self._wake_goal, self._sink = store, wake_goal, sink
        self._concurrency = concurrency
        self._lookout = lookout or Lookout(store, tuple(labels))
        self._patience = Patience()
        self._running: set[int] = set()
        self._woken: set[int] = set()
        self._trouble = ""
        self._freed = False
        self.stopping = Stopping(store.clock.monotonic)

    @property
    def running(self) -> int:
        """Goals that are being woken."""
        return len(self._running)

    async def serve(
        self,
        stop: Callable[[], Exit | None],
        *,
        poll_seconds: float = POLL_SECONDS,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        """Look and wake until `stop` asks for an end; returns once every wakeup is closed."""
        async with anyio.create_task_group() as group:
            while (asked := stop()) is None:
                try:
                    await self.tick(group)
                except StoreError as error:
                    self._store_trouble(str(error))
                except Exception as error:  # noqa: BLE001 - a row that nobody can read stops no server
                    self._store_trouble(f"{type(error).__name__}: {error}")
                await self._pause(poll_seconds, stop)
            self._stop(asked, grace_seconds)

    async def once(self, stop: Callable[[], Exit | None], *, grace_seconds: float = GRACE_SECONDS) -> None:
        """Wake every goal that is due now, each of them once; returns once every wakeup is closed.

        Raises:
            StoreError: the store cannot be read; what was begun is closed all the same.
        """
        started = self._store.clock.now()
        trouble: Exception | None = None
        async with anyio.create_task_group() as group:
            while (asked := stop()) is None:
                try:
                    begun = await self.tick(group, due_by=started)
                except Exception as error:  # noqa: BLE001 - raised once what was begun is closed
                    trouble = error
                    break
                if not begun and not self._running:
                    break
                await self._pause(POLL_SECONDS, stop)
            else:
                self._stop(asked, grace_seconds)
        if trouble is not None:
            raise trouble

    async def tick(self, group: TaskGroup, *, due_by: datetime | None = None) -> int:
        """Look once, and start waking what is due as far as there is room; returns how many were started.

        Args:
            due_by: only what was due by then and was not woken yet.

        Raises:
            StoreError: the store cannot be read.
        """
        room = self._concurrency - len(self._running)
        if room <= 0:
            return 0
        passing = self._running | self._patience.passed_over(self._store.clock.monotonic())
        if due_by is not None:
            passing |= self._woken
        trouble = await self._watch()
        found = await to_thread.run_sync(lambda: self._lookout.due(passing, room, now=due_by))
        self._store_trouble(trouble)
        for due in found:
            self._running.add(due.goal)
            if due_by is not None:
                self._woken.add(due.goal)
            group.start_soon(self._wake, due)
        return len(found)

    async def _watch(self) -> str:
        """Fire the sources that came; returns what is wrong with one that nobody can read: goals are due without it."""
        try:
            came = await to_thread.run_sync(self._lookout.watch)
        except StoreUnreadable as error:
            return str(error)
        for event in came:
            self._sink(event)
        return ""

    async def _wake(self, due: Due) -> None:
        turnwise = Turnwise(self.stopping)

        def told(event: Event) -> None:
            turnwise.note(event)
            self._relay(due, event)

        try:
            ending = await self._wake_goal(due.goal, told, turnwise)
        except GoalmodeError as error:
            self._passed_over(due, type(error).__name__, str(error))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this goal's trouble, not the server's
            self._passed_over(due, "goalmode itself failed", f"{type(error).__name__}: {error}")
        else:
            self._over(due, ending)
        finally:
            self._running.discard(due.goal)

    def _relay(self, due: Due, event: Event) -> None:
        """Of a wakeup's events, the two that are a server's: how it began and how it ended."""
        match event.kind:
            case "wakeup_started":
                self._patience.forget(due.goal)
                self._lookout.crowd.in_time()
                since = due.since and due.since.isoformat()
                self._tell("claimed", goal=due.uid, wakeup=event.data["wakeup"], why=due.why, due_at=since)
            case "wakeup_closed":
                self._tell("ended", **event.data)

    def _over(self, due: Due, ending: Ending) -> None:
        """A wakeup that ended leaves room. So does one that somebody else was faster with; that is not worth a line."""
        match ending:
            case Exit():
                self._freed = True
                if ending.facts.get("fenced"):
                    self._tell("taken_over", goal=due.uid, detail=ending.detail)
            case Skip(SkipReason.LEASED | SkipReason.SUPERSEDED):
                self._freed = True
                self._lookout.crowd.too_late()
            case Skip() if due.dead and ending.reason is not SkipReason.TOOL_STILL_RUNNING:
                self._tell("recovered", goal=due.uid, why=due.why, detail=ending.detail)
            case Skip(SkipReason.NOT_DUE):
                pass
            case Skip():
                self._passed_over(due, ending.reason.value, ending.detail)

    def _passed_over(self, due: Due, cause: str, detail: str) -> None:
        now = self._store.clock.monotonic()
        if self._patience.pass_over(due.goal, f"{cause}: {detail}", now):
            self._tell("skipped", goal=due.uid, reason=cause, detail=detail)

    def _stop(self, asked: Exit, grace_seconds: float) -> None:
        self.stopping.ask(asked, grace_seconds)
        self._tell("stopping", why=asked.detail, running=self.running)

    def _store_trouble(self, detail: str) -> None:
        """A store that cannot be read is looked at again and again, and told of once."""
        if detail and detail != self._trouble:
            self._tell("store", detail=detail)
        self._trouble = detail

    async def _pause(self, seconds: float, stop: Callable[[], Exit | None]) -> None:
        """Wait for the next look; it comes sooner where a wakeup that ended has left room."""
        left = seconds
        while left > 0 and not self._freed and stop() is None:
            await anyio.sleep(min(left, STEP_SECONDS))
            left -= STEP_SECONDS
        self._freed = False

    def hurry(self) -> None:
        """Look again at once. From any thread."""
        self._freed = True

    def _tell(self, kind: str, **data: Any) -> None:
        self._sink(Event(kind, data))
