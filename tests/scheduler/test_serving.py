"""Serving until it is told to stop: turns that run may end if there is time, wakeups are closed, goals stay active."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from goalmode.domain.exits import Exit, ExitReason, GoalStatus
from goalmode.domain.messages import Request
from goalmode.errors import StoreBusy, StoreError
from goalmode.loop.ports import Event
from goalmode.scheduler.lookout import Lookout
from goalmode.scheduler.stopping import CLOSING_SECONDS, Stopping, Turnwise
from goalmode.state.due import Due
from goalmode.testing import ManualClock
from tests.scheduler.conftest import Park, done, mark

pytestmark = pytest.mark.slow

SIGTERM = Exit(ExitReason.INTERRUPTED, "SIGTERM", {"requested": True})


class Asked:
    """A stop that is asked for by the test."""

    def __init__(self) -> None:
        self.exit: Exit | None = None
        self.told = 0

    def __call__(self) -> Exit | None:
        self.told += self.exit is not None
        return self.exit


def asks_to_stop(asked: Asked, reply: Any) -> Callable[[Request], Any]:
    """A reply during which the server is told to stop; it comes once the server knows."""

    async def answer(request: Request) -> Any:
        asked.exit = SIGTERM
        while asked.told < 2:  # noqa: ASYNC110 - that the server has looked is what is waited for
            await anyio.sleep(0.01)
        return reply

    return answer


def test_an_idle_server_ends_at_once(park: Park) -> None:
    """Nothing is claimed after the stop, and it says that it stops."""
    asked = Asked()
    asked.exit = SIGTERM
    park.goal()

    anyio.run(park.server().serve, asked)

    assert park.kinds == ["stopping"]
    assert park.told("stopping") == [{"why": "SIGTERM", "running": 0}]
    assert park.wakeups() == 0


def test_the_turn_that_runs_may_end(park: Park) -> None:
    """Its tool runs and its outcome is stored; no further request; the goal is active and due."""
    asked = Asked()
    goal = park.goal(mark(), asks_to_stop(asked, mark("echo two >> marks")), mark())

    anyio.run(park.server().serve, asked)

    assert park.marks() == 2
    assert park.endings(goal) == ["INTERRUPTED"]
    assert park.requests(goal) == 2
    after = park.now(goal)
    assert (after.status, after.failures) == (GoalStatus.ACTIVE, 0)
    assert after.next_wakeup_at == park.clock.now()
    assert park.kinds == ["claimed", "stopping", "ended"]
    assert park.told("ended")[0]["facts"] == {"requested": True}


def test_a_turn_that_takes_too_long_is_interrupted(park: Park) -> None:
    """The wakeup is closed all the same, without another request."""
    asked = Asked()

    async def never(request: Request) -> Any:
        asked.exit = SIGTERM
        await anyio.Event().wait()

    goal = park.goal(mark(), never)
    server = park.server()

    async def serve() -> None:
        with anyio.fail_after(60):
            await server.serve(asked, grace_seconds=0)

    anyio.run(serve)

    assert park.endings(goal) == ["INTERRUPTED"]
    assert park.status(goal) is GoalStatus.ACTIVE
    assert park.told("ended")[0]["turns"] == 1


def test_stops_do_not_count_against_a_goal(park: Park) -> None:
    """A server that is restarted ten times blocks nobody: ten interruptions that were asked for."""
    steps = []
    stops = [Asked() for _ in range(10)]
    for asked in stops:
        steps += [asks_to_stop(asked, mark(f"echo {len(steps)} >> marks"))]
    goal = park.goal(*steps, mark("ls"), done())

    for asked in stops:
        anyio.run(park.server().serve, asked)

    assert park.endings(goal) == ["INTERRUPTED"] * 10
    assert (park.now(goal).failures, park.status(goal)) == (0, GoalStatus.ACTIVE)
    park.tick(park.server())
    assert park.status(goal) is GoalStatus.DONE


def test_a_wakeup_that_ends_leaves_room_at_once(park: Park) -> None:
    """A long poll does not hold up the queue: five goals one after the other, with an hour between looks."""
    made = [park.goal(mark(), done()) for _ in range(5)]
    server = park.server(concurrency=1)

    def stop() -> Exit | None:
        return SIGTERM if all(any(park.endings(goal)) for goal in made) else None

    async def serve() -> None:
        with anyio.fail_after(60):
            await server.serve(stop, poll_seconds=3600)

    anyio.run(serve)

    assert [park.endings(goal) for goal in made] == [["CURRENT_TASK_DONE"]] * 5


def test_a_store_that_fails_for_a_while_is_told_once_and_outlasted(
    park: Park, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service goes on; another trouble is told again."""
    goal = park.goal(mark(), done())
    troubles = [
        StoreBusy("store x: is locked"),
        StoreBusy("store x: is locked"),
        StoreError("store x: disk full"),
    ]
    look = Lookout.due

    def fails(self: Lookout, *args: Any, **named: Any) -> list[Due]:
        if troubles:
            raise troubles.pop(0)
        return look(self, *args, **named)

    monkeypatch.setattr(Lookout, "due", fails)

    async def serve() -> None:
        with anyio.fail_after(60):
            await park.server().serve(lambda: SIGTERM if any(park.endings(goal)) else None, poll_seconds=0.05)

    anyio.run(serve)

    assert park.endings(goal) == ["CURRENT_TASK_DONE"]
    assert [told["detail"] for told in park.told("store")] == ["store x: is locked", "store x: disk full"]


def test_once_does_what_is_due_and_ends(park: Park, clock: ManualClock) -> None:
    """Each goal once, also one that is due again right afterwards; what becomes due later is left."""
    again = park.goal(*[mark(f"echo {n}") for n in range(5)], max_turns=1)
    others = [park.goal(mark(), done()) for _ in range(5)]
    server = park.server(concurrency=2)

    anyio.run(server.once, lambda: None)

    assert park.endings(again) == ["MAX_TURNS_EXCEEDED"]
    assert [park.endings(goal) for goal in others] == [["CURRENT_TASK_DONE"]] * 5


def test_once_with_nothing_due_ends_quietly(park: Park) -> None:
    """No event at all."""
    anyio.run(park.server().once, lambda: None)

    assert park.events == []


def test_once_passes_over_what_cannot_be_woken(park: Park) -> None:
    """It is told, and does not keep the server."""
    goal, other = park.goal(), park.goal(mark(), done())
    park.broken[goal.id] = StoreError("no")

    anyio.run(park.server(concurrency=1).once, lambda: None)

    assert park.endings(other) == ["CURRENT_TASK_DONE"]
    assert len(park.told("skipped")) == 1


def test_once_tells_of_a_store_that_cannot_be_read(park: Park, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs it by the clock sees that nothing was done."""

    def fails(*_: object, **__: object) -> list[Due]:
        raise StoreError("store x: disk full")

    monkeypatch.setattr(Lookout, "due", fails)

    with pytest.raises(StoreError, match="disk full"):
        anyio.run(park.server().once, lambda: None)


@pytest.mark.parametrize("error", [StoreError("store x: the disk is full"), ValueError("a row that is none")])
def test_once_closes_what_it_has_begun_whatever_the_next_look_meets(
    park: Park, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """No goal is left paused, as a cancelled wakeup would leave it, because another one's row cannot be read."""
    looks: list[int] = []
    look = Lookout.due

    def fails(*args: Any, **named: Any) -> Any:
        looks.append(1)
        if len(looks) > 1:
            raise error
        return look(*args, **named)

    async def waits(request: Request) -> Any:
        while len(looks) < 2:  # noqa: ASYNC110 - the look that fails is what is waited for
            await anyio.sleep(0.01)
        return mark()

    monkeypatch.setattr(Lookout, "due", fails)
    goal = park.goal(waits, done())

    with pytest.raises(type(error), match=str(error)):
        anyio.run(park.server().once, lambda: None)

    assert park.endings(goal) == ["CURRENT_TASK_DONE"]


def test_once_can_be_stopped(park: Park) -> None:
    """Like a server that goes on."""
    asked = Asked()
    first = park.goal(asks_to_stop(asked, mark()), mark())
    second = park.goal(mark())

    anyio.run(park.server(concurrency=1).once, asked)

    assert park.endings(first) == ["INTERRUPTED"]
    assert park.endings(second) == []


def test_between_turns_a_stop_is_heard_at_once_within_one_only_in_a_hurry(clock: ManualClock) -> None:
    """What is kept of the grace is for closing."""
    stopping = Stopping(clock.monotonic)
    idle, busy = Turnwise(stopping), Turnwise(stopping)
    busy.note(Event("asking"))
    assert (idle(), busy()) == (None, None)

    stopping.ask(SIGTERM, 10)
    assert (idle(), busy()) == (SIGTERM, None)
    clock.advance(10 - CLOSING_SECONDS - 0.001)
    assert busy() is None
    clock.advance(0.001)
    assert busy() is SIGTERM


def test_a_turn_that_ends_hears_of_the_stop(clock: ManualClock) -> None:
    """Before the next request is made."""
    stopping = Stopping(clock.monotonic)
    wakeup = Turnwise(stopping)
    stopping.ask(SIGTERM, 3600)
    for kind, heard in (
        ("asking", None),
        ("reply", None),
        ("tool", None),
        ("turn", SIGTERM),
        ("asking", None),
    ):
        wakeup.note(Event(kind))
        assert wakeup() is heard


def test_a_grace_of_nothing_interrupts_at_once(clock: ManualClock) -> None:
    """And a second stop changes nothing of the first."""
    stopping = Stopping(clock.monotonic)
    wakeup = Turnwise(stopping)
    wakeup.note(Event("asking"))

    stopping.ask(SIGTERM, 0)
    stopping.ask(Exit(ExitReason.USER_ABORTED, "other"), 3600)

    assert wakeup() is SIGTERM
