"""Rows B16, B17, B19: an unattended goal goes on by itself, and nothing goes on that nobody asked for."""

from __future__ import annotations

from typing import Any

from goalmode import ExitReason, GoalStatus, Store
from goalmode.inspection.listing import listing
from goalmode.inspection.show import show
from goalmode.inspection.turns import turns
from goalmode.inspection.why import why
from goalmode.state import goals
from goalmode.testing import steps
from tests import stores
from tests.acceptance.world import World, complete, mark


def test_reading_starts_nothing_and_changes_nothing(world: World) -> None:
    """B16: a store opened read-only shows everything; no request, and not a byte of the file differs."""
    goal = world.goal(max_turns=2)
    world.provider.script(mark(), mark())
    world.wake(goal)
    world.store.close()
    before = stores.content(world.store.url)

    with Store(world.store.url, readonly=True, clock=world.clock) as store:
        found = goals.find(store, goal.uid[:6])
        shown = [f(store, found.id) for f in (show, why)] + [listing(store), turns(store, found)]

    assert all(shown)
    assert stores.content(world.store.url) == before
    assert len(world.provider.requests) == 3


def test_a_network_drop_is_survived_by_retries(world: World) -> None:
    """B17: cut in the middle, refused for a while, then back: the wakeup itself goes on, and no tool runs twice."""
    goal = world.goal(deliverables=["marks"])
    cut = steps.cut(steps.text("I was about to say something longer"), after_chars=10)
    world.provider.script(mark(), cut, mark(), complete())

    def network(error: Any, wait: float, attempt: int) -> None:
        if attempt == 1:
            world.provider.stub.refuse()
        if attempt == 3:
            world.provider.stub.listen()

    ending = world.wake(goal, on_retry=network)

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert world.marks() == 2
    assert world.now(goal).spent.turns == 3


def test_a_long_network_drop_is_survived_by_the_schedule(world: World) -> None:
    """B17: when the retries are spent the goal stays active, and is woken again without anybody's help."""
    goal = world.goal(deliverables=["marks"])
    cut = steps.cut(steps.text("I was about to say something longer"), after_chars=10)
    world.provider.script(mark(), cut, mark(), complete())
    endings = []

    def goes_down(error: Any, wait: float, attempt: int) -> None:
        world.provider.stub.refuse()

    def comes_back(event: Any) -> None:
        if event.kind == "wakeup_closed":
            endings.append((event.data["exit_reason"], world.now(goal).status))
            world.provider.stub.listen()

    ending = world.run(goal, on_event=comes_back, on_retry=goes_down)

    assert endings[0] == ("BACKEND_ERROR", GoalStatus.ACTIVE)
    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert world.marks() == 2


def test_quotas_are_no_failures(world: World) -> None:
    """B19: twelve turns of work at five a wakeup: two spent quotas, then done, and every turn happened once."""
    goal = world.goal(deliverables=["marks"], max_turns=5)
    world.provider.script(*[mark()] * 12, complete())

    ending = world.run(goal)

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    reasons = [r for (r,) in world.rows("SELECT exit_reason FROM wakeups ORDER BY seq")]
    assert reasons == ["MAX_TURNS_EXCEEDED", "MAX_TURNS_EXCEEDED", "CURRENT_TASK_DONE"]
    assert world.marks() == 12
