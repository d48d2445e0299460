"""A stop is seen while nothing moves, ends what runs, loses nothing committed, and is stored as what it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
import sqlalchemy as sa

from goalmode.domain.exits import Exit, ExitReason, GoalStatus
from goalmode.domain.goal import Control
from goalmode.domain.messages import Reply, Request, Usage
from goalmode.errors import Fenced, StoreError, charge
from goalmode.orchestrator.goals import resume_goal, stop_goal
from goalmode.orchestrator.skip import Skip
from goalmode.orchestrator.wake import Wake
from goalmode.state import tables as t
from goalmode.testing import ScriptedModel, call, calls, say
from goalmode.wiring import run_wakeup

Make = Callable[..., Any]
WORK = call("shell", command="echo x >> log.txt")


class SilentModel:
    """Answers nothing, for ever; tells when it was asked."""

    def __init__(self) -> None:
        self.asked = anyio.Event()

    async def complete(self, request: Request) -> Reply:
        self.asked.set()
        await anyio.sleep_forever()
        raise AssertionError


def outcomes(world: Any) -> list[tuple[str, str | None]]:
    with world.store.reading() as connection:
        rows = connection.execute(sa.select(t.tool_calls).order_by(t.tool_calls.c.id)).all()
    return [(r.tool, r.outcome) for r in rows]


@pytest.mark.parametrize(
    ("control", "status"), [(Control.PAUSE, GoalStatus.PAUSED), (Control.ABORT, GoalStatus.ABORTED)]
)
def test_stop_from_another_process_is_seen_while_the_model_is_silent(
    make: Make, control: Control, status: GoalStatus
) -> None:
    """Pause and abort end a wakeup whose model says nothing, within a second, as USER_ABORTED."""
    world = make()
    wake, model = world.begin(), SilentModel()

    async def run() -> Exit:
        ending: list[Exit] = []

        async def body() -> None:
            ending.append(await run_wakeup(wake, model))

        async with anyio.create_task_group() as group:
            group.start_soon(body)
            await model.asked.wait()
            stop_goal(world.store, world.now, control)
            with anyio.fail_after(2):
                while not ending:
                    await anyio.lowlevel.checkpoint()
        return ending[0]

    ending = anyio.run(run)

    assert ending.reason is ExitReason.USER_ABORTED
    assert world.now.status is status
    assert world.now.control is Control.NONE


def test_stop_between_turns_costs_no_further_request(make: Make) -> None:
    """B29: a stop after turn 2 means two requests, two turns, and nothing left over in the next context."""
    world = make()

    def stop_after_two(event: Any) -> None:
        if event.kind == "turn" and event.data["turn"] == 2:
            stop_goal(world.store, world.now, Control.PAUSE)

    ending = world.wake([say("hm"), WORK], on_event=stop_after_two)
    resume_goal(world.store, world.now)
    world.wake([WORK, *[say("")] * 4])

    assert ending.reason is ExitReason.USER_ABORTED
    assert "no tool call" not in world.told(0).lower()
    assert world.events[-1].kind == "wakeup_closed"


def test_cancelling_the_task_closes_the_wakeup(make: Make) -> None:
    """B46: a cancelled run is USER_ABORTED, its started tool interrupted, and the same goal starts again."""
    world = make()
    started = world.workspace / "started"
    model = ScriptedModel([calls(call("shell", command=f"touch '{started}'; sleep 90"), WORK)])
    wake = world.begin()

    async def run() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(run_wakeup, wake, model)
            with anyio.fail_after(60):
                while not started.exists():
                    await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()

    anyio.run(run)

    assert world.now.status is GoalStatus.PAUSED
    assert outcomes(world) == [("shell", "interrupted"), ("shell", "skipped")]
    resume_goal(world.store, world.now)
    ending = world.wake([WORK, *[say("")] * 4])
    assert ending.reason is ExitReason.YIELDED
    assert "interrupted" in world.told(0)


def test_signal_in_a_batch_leaves_every_call_with_one_outcome(make: Make) -> None:
    """B104: a stop after two of four calls: two are real, two are marked as not run, and did not run."""
    world = make()
    stopped: list[Exit] = []

    def stop_after_two(event: Any) -> None:
        if event.kind == "tool" and len([e for e in world.events if e.kind == "tool"]) == 2:
            stopped.append(Exit(ExitReason.USER_ABORTED, "Ctrl-C", {"control": "pause"}))

    ending = world.wake(
        [calls(WORK, WORK, WORK, WORK)], on_event=stop_after_two, stop=lambda: stopped[0] if stopped else None
    )

    assert ending.reason is ExitReason.USER_ABORTED
    assert [o for _, o in outcomes(world)] == ["success", "success", "skipped", "skipped"]
    assert (world.workspace / "log.txt").read_text().count("x") == 2


def test_sigterm_interrupts_and_does_not_count(make: Make) -> None:
    """B120: a shutdown leaves the goal active and due, as often as it happens."""
    world = make()
    term = Exit(ExitReason.INTERRUPTED, "SIGTERM", {"requested": True})

    for _ in range(6):
        ending = world.wake([], stop=lambda: term)
        assert ending.reason is ExitReason.INTERRUPTED

    assert world.now.status is GoalStatus.ACTIVE
    assert world.now.next_wakeup_at == world.clock.now()
    assert world.now.failures == 0


def test_two_wakeups_of_one_goal_never_overlap(make: Make) -> None:
    """B48: who comes second is told who has the goal, and changes nothing."""
    world = make()
    first = world.begin()

    second = world.begin()

    assert isinstance(first, Wake)
    assert isinstance(second, Skip)
    assert second.reason == "leased"
    assert world.store.owner.name in second.detail


def test_a_fenced_owner_writes_nothing(make: Make) -> None:
    """Once another owner has the goal, the old one's run ends without a trace in the goal."""
    world = make()
    wake = world.begin()
    with world.store.writing() as connection:
        connection.execute(sa.update(t.wakeups).values(fence=99))

    async def run() -> Exit:
        return await run_wakeup(wake, ScriptedModel([WORK]))

    ending = anyio.run(run)

    assert ending.facts["fenced"] is True
    assert outcomes(world) == []
    assert world.now.spent.turns == 0
    with pytest.raises(Fenced):
        wake.close(ending)


def test_an_unwritable_store_is_no_ending(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """B55: when a commit fails the run stops at once, runs no tool, closes nothing, and the next claim recovers."""
    world = make()
    wake = world.begin()

    def full(*_: object, **__: object) -> None:
        raise StoreError("store goals.sqlite: the disk is full")

    monkeypatch.setattr(wake, "intent", full)

    async def run() -> Exit:
        return await run_wakeup(wake, ScriptedModel([WORK]))

    with pytest.raises(StoreError, match="disk is full"):
        anyio.run(run)

    assert not Path(world.workspace / "log.txt").exists()


def test_our_own_failure_is_stored_with_its_traceback(make: Make) -> None:
    """ENGINE_ERROR blocks the goal and keeps where it happened."""
    world = make()
    wake = world.begin()

    async def run() -> Exit:
        return await run_wakeup(wake, ScriptedModel([lambda request: 1 / 0]))

    ending = anyio.run(run)

    assert ending.reason is ExitReason.ENGINE_ERROR
    assert "ZeroDivisionError" in str(ending.facts["traceback"])
    assert world.now.status is GoalStatus.BLOCKED


class HalfSaidModel:
    """Begins to answer and is then cut off by whoever cancels it."""

    def __init__(self) -> None:
        self.asked = anyio.Event()

    async def complete(self, request: Request) -> Reply:
        self.asked.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class() as cancelled:
            charge(cancelled, Usage(input=900, output=30, estimated=True))
            raise
        raise AssertionError


def test_a_reply_that_had_begun_is_charged_when_it_is_stopped(make: Make) -> None:
    """An attempt is charged once its response stream began, also if the user stops it; it is no turn."""
    world = make()
    wake, model = world.begin(), HalfSaidModel()
    stopped: list[Exit] = []

    async def run() -> Exit:
        async with anyio.create_task_group() as group:

            async def stop() -> None:
                await model.asked.wait()
                stopped.append(Exit(ExitReason.USER_ABORTED, "Ctrl-C", {"control": "pause"}))

            group.start_soon(stop)
            return await run_wakeup(wake, model, stop=lambda: stopped[0] if stopped else None)

    ending = anyio.run(run)

    assert ending.reason is ExitReason.USER_ABORTED
    assert (world.now.spent.turns, world.now.spent.tokens) == (0, 930)
