"""Servers that are in each other's way: alone the oldest first, among others some of the oldest."""

from __future__ import annotations

import random

from goalmode.domain.exits import SkipReason
from goalmode.orchestrator.skip import Skip
from goalmode.scheduler.crowd import FURTHEST, Crowd
from tests.scheduler.conftest import Park, done, mark

GOALS = list(range(100))


def test_alone_the_first_are_taken() -> None:
    """However many there are."""
    assert Crowd().some(GOALS, 3) == [0, 1, 2]
    assert Crowd().some(GOALS[:2], 3) == [0, 1]


def test_whoever_is_too_late_looks_further_and_comes_back() -> None:
    """Twice as far each time, up to a bound; each success halves it."""
    crowd, depths = Crowd(), []
    for _ in range(8):
        crowd.too_late()
        depths.append(crowd.depth)
    assert depths == [1, 3, 7, 15, 31, 63, FURTHEST, FURTHEST]

    for _ in range(7):
        crowd.in_time()
    assert crowd.depth == 0


def test_among_others_nobody_is_left_out_for_ever() -> None:
    """Any of those found, in their order, and all of them where there is room."""
    crowd = Crowd(random.Random(1))
    crowd.too_late()

    picked = [crowd.some(GOALS[:4], 2) for _ in range(50)]

    assert all(pick == sorted(pick) and len(pick) == 2 for pick in picked)
    assert {goal for pick in picked for goal in pick} == {0, 1, 2, 3}
    assert crowd.some(GOALS[:2], 2) == [0, 1]


def test_a_server_that_came_too_late_looks_again_at_once_and_further_down(park: Park) -> None:
    """What others were faster with is no reason to wait for the next look; a success leads back to the oldest."""
    first, second = park.goal(mark(), done()), park.goal(mark(), done())
    wake = park.wake

    async def beaten(*_: object, **__: object) -> Skip:
        return Skip(SkipReason.SUPERSEDED, "somebody else was faster")

    park.wake = beaten  # type: ignore[method-assign, assignment]
    server = park.server(concurrency=1)
    park.tick(server)
    assert server._lookout.crowd.depth == 1
    assert server._freed
    assert park.events == []

    server._wake_goal = wake
    park.tick(server)
    assert server._lookout.crowd.depth == 0
    park.tick(server)
    assert park.endings(first) == park.endings(second) == ["CURRENT_TASK_DONE"]
