"""A store of many goals, a clock that moves by hand, and a server whose looks are asked for one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from goalmode.domain.exits import Exit, GoalStatus
from goalmode.domain.goal import Goal, GoalSettings, GoalSpec
from goalmode.domain.messages import Request
from goalmode.domain.profile import ModelProfile
from goalmode.loop.ports import Event, Sink
from goalmode.orchestrator.goals import create_goal
from goalmode.orchestrator.run import Ending
from goalmode.orchestrator.skip import Skip
from goalmode.scheduler.daemon import Daemon
from goalmode.state import goals
from goalmode.state.store import Store
from goalmode.testing import ManualClock, ScriptedModel, call
from goalmode.wiring import begin_wakeup, run_wakeup, workshop
from tests.state.builders import rows
from tests.state.conftest import clock, empty_store, store

__all__ = ["clock", "empty_store", "store"]

PROFILE = ModelProfile("scripted", "openai", "scripted", "http://127.0.0.1:9/v1")


def mark(command: str = "echo x >> marks") -> Any:
    return call("shell", command=command)


def done(summary: str = "Done.") -> Any:
    return call("complete", status="success", summary=summary, evidence=["marks"])


@dataclass
class Park:
    """Goals with scripts, and what a server told of them.

    Attributes:
        scripts: by goal: the replies of its wakeups, in order, over all of them.
        events: of the server's log.
    """

    store: Store
    clock: ManualClock
    workspace: Path
    scripts: dict[int, ScriptedModel] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    broken: dict[int, Exception] = field(default_factory=dict)
    at_once: int = 0
    most_at_once: int = 0

    def goal(self, *steps: Any, objective: str = "Write the report.", **settings: Any) -> Goal:
        spec = GoalSpec(objective, str(self.workspace), settings=replace(GoalSettings(), **settings))
        made = create_goal(self.store, spec)
        self.scripts[made.id] = ScriptedModel(steps)
        return made

    def server(self, **options: Any) -> Daemon:
        options.setdefault("labels", [self.store.owner.host_label])
        options.setdefault("sink", self.events.append)
        return Daemon(self.store, self.wake, **options)

    async def wake(
        self, goal_id: int, sink: Sink, stop: Callable[[], Exit | None], delivery: int | None = None
    ) -> Ending:
        """As the command does it, with the goal's script for a model."""
        if goal_id in self.broken:
            raise self.broken[goal_id]
        goal = goals.get(self.store, goal_id)
        shop = workshop(goal, PROFILE)
        begin = partial(begin_wakeup, self.store, goal, profile=PROFILE, shop=shop, delivery=delivery)
        wake = await to_thread.run_sync(begin)
        if isinstance(wake, Skip):
            return wake
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await run_wakeup(wake, self.scripts[goal_id], sink=sink, stop=stop)
        finally:
            self.at_once -= 1

    def tick(self, *servers: Daemon) -> list[int]:
        """One look of each server at the same moment, and the wakeups that it starts, to their ends."""

        async def look() -> list[int]:
            started: list[int] = []

            async def one(server: Daemon, group: Any) -> None:
                started.append(await server.tick(group))

            async with anyio.create_task_group() as group:
                for server in servers:
                    group.start_soon(one, server, group)
            return started

        return anyio.run(look)

    def intervals(self, server: Daemon, count: int, seconds: float = 60) -> int:
        """So many simulated intervals; returns the wakeups in them."""
        before = self.wakeups()
        for _ in range(count):
            self.clock.advance(seconds)
            self.tick(server)
        return self.wakeups() - before

    def wakeups(self) -> int:
        return int(rows(self.store, "SELECT count(*) FROM wakeups")[0])

    def endings(self, goal: Goal) -> list[str]:
        return list(rows(self.store, "SELECT exit_reason FROM wakeups WHERE goal = ? ORDER BY seq", goal.id))

    def requests(self, goal: Goal) -> int:
        return len(self.scripts[goal.id].requests)

    def now(self, goal: Goal) -> Goal:
        return goals.get(self.store, goal.id)

    def status(self, goal: Goal) -> GoalStatus:
        return self.now(goal).status

    def told(self, kind: str) -> list[dict[str, Any]]:
        return [dict(event.data) for event in self.events if event.kind == kind]

    @property
    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]

    def beside(self, reply: Any) -> Callable[[Request], Any]:
        """A reply that does not come before two goals have been under way at the same time."""

        async def answer(request: Request) -> Any:
            while self.most_at_once < 2:  # noqa: ASYNC110 - another goal's begin is what is waited for
                await anyio.sleep(0.01)
            return reply

        return answer

    def marks(self) -> int:
        path = self.workspace / "marks"
        return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.fixture
def park(store: Store, clock: ManualClock, tmp_path: Path) -> Park:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return Park(store, clock, workspace)


def uids(goals: Iterable[Goal]) -> list[str]:
    return [goal.uid for goal in goals]
