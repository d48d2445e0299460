"""What a wakeup has to do with wake sources: no goal is blocked that waits for something, and a wait is one of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from goalmode.domain.exits import ExitReason
from goalmode.errors import Fenced
from goalmode.inspection.wake_sources import of_goal
from goalmode.orchestrator.schedule import every, on_file, schedule, unschedule
from goalmode.state.owner import LEASE_MS
from goalmode.testing import call, say
from tests.loop.conftest import Make, World
from tests.state.builders import rows

BLOCKED = call("complete", status="blocked", summary="No way on.", obstacle="The server is down.")
WORK = call("shell", command="date +%N")
SAVE = call("update_working_checkpoint", key_info="half way")


def meets_it_twice(world: World) -> None:
    """Two wakeups with the same obstacle: it is earned by the next one."""
    for _ in range(2):
        world.wake([WORK, BLOCKED, BLOCKED])


def test_blocked_is_refused_while_something_is_waited_for(make: Make) -> None:
    """However often the obstacle was met; the model is told what may remove it, in the goal's language."""
    for lang, said in (("en", "does not count as blocked: it waits for"), ("zh", "目标不算受阻")):
        world = make(lang=lang)
        meets_it_twice(world)
        schedule(world.store, world.now, on_file(world.store, world.now, "access.token"))

        ending = world.wake([WORK, BLOCKED, WORK, BLOCKED])

        assert ending.reason is ExitReason.YIELDED
        assert said in world.told()
        assert "- S1: file access.token is created, or " in world.told()


def test_blocked_is_accepted_once_nothing_is_waited_for(make: Make) -> None:
    """It was earned before."""
    world = make()
    meets_it_twice(world)
    schedule(world.store, world.now, every("1h", world.clock.now()))
    unschedule(world.store, world.now, "S1")

    assert world.wake([WORK, BLOCKED]).reason is ExitReason.TASK_BLOCKED


def test_a_wait_is_shown_as_a_time_that_the_model_asked_for(make: Make) -> None:
    """It is the goal's next wakeup, and not stored a second time."""
    world = make()
    world.wake([WORK, call("wait", seconds=600, reason="the build")])

    [shown] = of_goal(world.store, world.now)

    due = (world.clock.now() + timedelta(seconds=600)).isoformat()
    assert (shown["id"], shown["kind"], shown["by"], shown["due_at"]) == (None, "at", "model", due)
    assert rows(world.store, "SELECT count(*) FROM wake_sources") == [0]


@pytest.mark.parametrize(
    ("lang", "said"), [("en", "Woken by a wake source"), ("zh", "由用户设置的唤醒源唤醒")]
)
def test_the_model_is_told_what_woke_it(make: Make, lang: str, said: str) -> None:
    """Where a source did; a wakeup that was asked for while one is awaited says nothing of it."""
    world = make(lang=lang, max_turns=1)
    schedule(world.store, world.now, on_file(world.store, world.now, "in.csv"))
    world.wake([WORK, SAVE])
    assert said not in world.told()
    (world.workspace / "in.csv").touch()

    world.wake([WORK, SAVE])

    assert said in world.told()
    assert "S1: file in.csv is created" in world.told()


def test_an_owner_that_is_late_leaves_an_event_and_nothing_else(make: Make) -> None:
    """Another has the goal: the late turn is not stored, its tools are ended, and that it was late is on record."""
    world = make()
    before: list[Any] = []

    def is_overtaken(request: Any) -> Any:
        world.clock.advance(LEASE_MS / 1000 + 1)
        other = world.begin()
        assert other.seq == 2  # type: ignore[union-attr]
        other.let_go()  # type: ignore[union-attr]
        before[:] = [
            rows(world.store, f"SELECT * FROM {table} ORDER BY id") for table in ("goals", "wakeups", "turns")
        ]
        return say("Too late.")

    ending = world.wake([is_overtaken])

    assert (ending.reason, ending.facts) == (ExitReason.INTERRUPTED, {"fenced": True})
    after = [
        rows(world.store, f"SELECT * FROM {table} ORDER BY id") for table in ("goals", "wakeups", "turns")
    ]
    assert after == before
    assert rows(world.store, "SELECT kind, wakeup FROM events ORDER BY id") == [("fenced", 1)]
    [data] = rows(world.store, "SELECT data FROM events")
    assert world.store.owner.name in str(data)


def test_being_late_for_a_goal_that_was_deleted_is_no_error(make: Make) -> None:
    """There is nothing left to write to."""
    world = make()
    wake = world.begin()
    rows(world.store, "DELETE FROM wakeups")
    rows(world.store, "DELETE FROM goals")

    wake.fenced()  # type: ignore[union-attr]

    with pytest.raises(Fenced):
        wake.met_obstacle("x")  # type: ignore[union-attr]
    wake.let_go()  # type: ignore[union-attr]
    assert rows(world.store, "SELECT count(*) FROM events") == [0]
