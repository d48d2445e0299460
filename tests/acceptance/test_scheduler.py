"""Rows B17, B61, B92, B100: a server of goals, over HTTP, in simulated intervals in which nobody intervenes."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import anyio
import pytest

from goalmode import Exit, Goal, GoalStatus, Skip
from goalmode.scheduler.daemon import Daemon
from goalmode.state import goals
from goalmode.testing import steps
from tests.acceptance.world import World, complete, mark


class Server:
    """A server on a world's store. It looks when it is told to, and once at each simulated interval."""

    def __init__(self, world: World, **options: Any) -> None:
        self.world, self.began = world, dict[int, list[datetime]]()
        self.on_event: Any = None
        self.on_retry: Any = None
        labels = [world.store.owner.host_label]
        self.daemon = Daemon(world.store, self._wake, labels=labels, sink=lambda _: None, **options)

    async def _wake(self, goal_id: int, sink: Any, stop: Any) -> Exit | Skip:
        def told(event: Any) -> None:
            sink(event)
            if event.kind == "wakeup_started":
                self.began.setdefault(goal_id, []).append(self.world.clock.now())
            if self.on_event is not None:
                self.on_event(event)

        return await self.world._wake(goals.get(self.world.store, goal_id), stop, told, self.on_retry, True)

    def look(self) -> None:
        async def once() -> None:
            async with anyio.create_task_group() as group:
                await self.daemon.tick(group)

        anyio.run(once)

    def intervals(self, count: int, seconds: float = 60) -> None:
        for _ in range(count):
            self.look()
            self.world.clock.advance(seconds)

    def gaps(self, goal: Goal) -> list[float]:
        """Seconds between the beginnings of the goal's wakeups."""
        began = self.began.get(goal.id, [])
        return [(b - a).total_seconds() for a, b in pairwise(began)]


def test_a_network_drop_stops_no_unattended_goal(world: World) -> None:
    """B17: the connection is cut and then refused until the retries are spent; the server wakes the goal again."""
    goal = world.goal(deliverables=["marks"])
    cut = steps.cut(steps.text("I was about to say something longer"), after_chars=10)
    world.provider.script(mark(), cut, mark(), complete())
    server = Server(world)

    def comes_back(event: Any) -> None:
        if event.kind == "wakeup_closed":
            world.provider.stub.listen()

    server.on_event, server.on_retry = comes_back, lambda *_: world.provider.stub.refuse()

    server.intervals(5)

    reasons = [w["exit_reason"] for w in world.inspect(goal)["wakeups"]]
    assert reasons == ["BACKEND_ERROR", "CURRENT_TASK_DONE"]
    assert world.marks() == 2
    assert world.now(goal).spent.turns == 3


def test_an_overflow_that_does_not_go_away_is_no_busy_loop(world: World) -> None:
    """B61: never success, few requests a wakeup, and the schedule pauses with the cause shown."""
    overflow = {
        "error": {"code": "context_length_exceeded", "message": "too long", "type": "invalid_request_error"}
    }
    goal = world.goal()
    world.provider.script(then=steps.status(400, overflow))
    server = Server(world)

    server.intervals(10)

    shown = world.inspect(goal)
    assert {w["exit_reason"] for w in shown["wakeups"]} == {"CONTEXT_OVERFLOW"}
    assert len(world.provider.stub.requests) <= 2 * len(shown["wakeups"])
    assert (shown["status"], len(shown["wakeups"])) == ("BLOCKED", 3)
    assert "CONTEXT_OVERFLOW" in shown["status_reason"]


def test_a_refusal_is_not_tried_again(world: World) -> None:
    """B92: its text is kept, and the goal is left alone until somebody resumes it."""
    goal = world.goal()
    world.provider.script(then=steps.text("I cannot help with that.", finish="content_filter"))
    server = Server(world)

    server.intervals(10)

    shown = world.inspect(goal)
    [wakeup] = shown["wakeups"]
    assert wakeup["exit_reason"] == "MODEL_REFUSED"
    assert "I cannot help with that." in wakeup["exit_detail"]
    assert shown["status"] == "BLOCKED"
    assert len(world.provider.requests) <= 2


@pytest.mark.parametrize("ahead", [5, 3600])
def test_a_quota_that_resets_is_waited_for(world: World, ahead: int) -> None:
    """B100: two goals at once. A near reset is waited for in the wakeup, a later one is when the next begins."""
    made = [world.goal(f"Goal {n}.", deliverables=["marks"]) for n in range(2)]
    spent = world.clock.now()
    resets = spent + timedelta(seconds=ahead)
    seen: list[datetime] = []

    def answer(request: Any, number: int) -> Any:
        if world.clock.now() < resets:
            left = (resets - world.clock.now()).total_seconds()
            return steps.status(429, {"error": {"message": "limit"}}, {"retry-after": f"{left:.0f}"})
        seen.append(world.clock.now())
        return complete() if any(m["role"] == "tool" for m in request["messages"]) else mark()

    world.provider.follow(answer)
    server = Server(world)

    server.intervals(ahead // 60 + 5)

    for goal in made:
        assert world.now(goal).status is GoalStatus.DONE
        began = server.began[goal.id]
        if ahead > 300:
            assert len(began) == 2
            assert timedelta(0) <= began[1] - resets <= timedelta(seconds=60)
        else:
            assert len(began) == 1
    assert resets <= min(seen) <= resets + timedelta(seconds=90)


def test_a_provider_that_stays_away_is_asked_less_and_less(world: World) -> None:
    """Back-offs grow, are stored, and never end the goal: a server that comes back tomorrow finds it active."""
    goal = world.goal()
    world.provider.script(then=steps.status(503))
    server = Server(world)

    server.intervals(120)

    gaps = server.gaps(goal)
    assert world.now(goal).status is GoalStatus.ACTIVE
    assert len(gaps) >= 3
    assert all(later > 0.99 * earlier for earlier, later in pairwise(gaps)), (
        "but for the poll that finds it due"
    )
    assert gaps[-1] >= 8 * gaps[0]
