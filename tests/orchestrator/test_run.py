"""Waking one goal until there is nothing more to do for it, in simulated time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from goalmode.domain.budget import Limits
from goalmode.domain.exits import Exit, ExitReason, GoalStatus, SkipReason
from goalmode.domain.goal import Control, Goal, GoalSettings, GoalSpec
from goalmode.domain.profile import ModelProfile
from goalmode.domain.signals import ErrorKind
from goalmode.errors import ModelError
from goalmode.loop.ports import Event
from goalmode.orchestrator.goals import create_goal, stop_goal
from goalmode.orchestrator.run import run_goal
from goalmode.orchestrator.skip import Skip
from goalmode.state import goals
from goalmode.state.store import Store
from goalmode.testing import ManualClock, ScriptedModel, call, say
from goalmode.wiring import begin_wakeup, run_wakeup
from tests.stores import Stores

PROFILE = ModelProfile("scripted", "openai", "scripted", "http://127.0.0.1:9/v1")
WORK = call("shell", command="echo x >> log.txt")
CLAIM = call("complete", status="success", summary="The log is there.")


@pytest.fixture
def store(tmp_path: Path, new_stores: Stores) -> Iterator[Store]:
    with Store(new_stores.new(tmp_path / "goals.sqlite"), clock=ManualClock()) as opened:
        yield opened


def new(store: Store, tmp_path: Path, *, limits: Limits | None = None, **settings: Any) -> Goal:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    spec = GoalSpec("Keep a log.", str(workspace), deliverables=("log.txt",))
    own = replace(GoalSettings(), **settings)
    return create_goal(store, replace(spec, limits=limits or Limits(), settings=own))


def run(
    store: Store, goal: Goal, steps: list[Any], *, max_wait_seconds: float = 3600, stop: Any = None
) -> tuple[Exit | Skip, list[Event]]:
    """`run_goal` with one scripted model for all wakeups; every step must be used."""
    model, events = ScriptedModel(steps), []

    async def wake_once() -> Exit | Skip:
        wake = begin_wakeup(store, goals.get(store, goal.id), profile=PROFILE)
        return wake if isinstance(wake, Skip) else await run_wakeup(wake, model, sink=events.append)

    async def body() -> Exit | Skip:
        return await run_goal(
            store,
            goal.id,
            wake_once,
            max_wait_seconds=max_wait_seconds,
            sink=events.append,
            stop=stop or (lambda: None),
        )

    ending = anyio.run(body)
    model.assert_finished()
    return ending, events


def closed(events: list[Event]) -> list[str]:
    return [e.data["exit_reason"] for e in events if e.kind == "wakeup_closed"]


def test_a_goal_goes_on_over_spent_quotas_to_its_end(store: Store, tmp_path: Path) -> None:
    """B19: quota, quota, done: nobody has to intervene, and each turn is made once."""
    goal = new(store, tmp_path, max_turns=5)

    ending, events = run(
        store, goal, [*[WORK] * 5, say("saved"), *[WORK] * 5, say("saved"), WORK, WORK, CLAIM]
    )

    assert isinstance(ending, Exit)
    assert closed(events) == ["MAX_TURNS_EXCEEDED", "MAX_TURNS_EXCEEDED", "CURRENT_TASK_DONE"]
    assert (Path(goal.workspace) / "log.txt").read_text().count("x") == 12


def test_a_backend_that_comes_back_is_waited_for(store: Store, tmp_path: Path) -> None:
    """B17: a failed call ends the wakeup, the back-off is waited out, and the goal is completed unattended."""
    goal = new(store, tmp_path)
    start = store.clock.now()

    _, events = run(store, goal, [WORK, ModelError(ErrorKind.CONNECTION, "refused"), CLAIM])

    assert closed(events) == ["BACKEND_ERROR", "CURRENT_TASK_DONE"]
    assert (store.clock.now() - start).total_seconds() >= 30
    assert [e.kind for e in events].count("waiting") == 1


@pytest.mark.parametrize(
    "kind", [ErrorKind.AUTH, ErrorKind.PERMISSION, ErrorKind.NOT_FOUND, ErrorKind.BAD_REQUEST]
)
def test_what_no_waiting_cures_blocks_the_goal(store: Store, tmp_path: Path, kind: ErrorKind) -> None:
    """A wrong key is not asked again: the goal is blocked with the provider's words."""
    goal = new(store, tmp_path)

    ending, events = run(store, goal, [ModelError(kind, "no such key", status=401)])

    assert closed(events) == ["BACKEND_ERROR"]
    assert goals.get(store, goal.id).status is GoalStatus.BLOCKED
    assert "no such key" in goals.get(store, goal.id).status_detail
    assert isinstance(ending, Exit)


def test_a_spent_account_waits_for_its_reset(store: Store, tmp_path: Path) -> None:
    """B98: quota is told from a rate limit; the goal stays active, due an hour later, and this run goes home."""
    goal = new(store, tmp_path)

    ending, _ = run(
        store, goal, [ModelError(ErrorKind.QUOTA, "insufficient_quota", status=429)], max_wait_seconds=60
    )

    now = goals.get(store, goal.id)
    assert now.status is GoalStatus.ACTIVE
    assert now.next_wakeup_at is not None
    assert (now.next_wakeup_at - store.clock.now()).total_seconds() == 3600
    assert isinstance(ending, Exit)
    assert ending.facts["kind"] == "QUOTA"


def test_overflow_for_ever_is_bounded(store: Store, tmp_path: Path) -> None:
    """B61: a provider that always says the context is too long gets three requests, then the goal is blocked."""
    goal = new(store, tmp_path)
    overflow = ModelError(ErrorKind.CONTEXT_OVERFLOW, "context_length_exceeded", status=400)

    _, events = run(store, goal, [overflow] * 3)

    assert closed(events) == ["CONTEXT_OVERFLOW"] * 3
    assert goals.get(store, goal.id).status is GoalStatus.BLOCKED


def test_a_done_goal_is_not_woken(store: Store, tmp_path: Path) -> None:
    """B08: after success no further request is made, however often it is run."""
    goal = new(store, tmp_path)
    run(store, goal, [WORK, CLAIM])

    for _ in range(3):
        store.clock.advance(3600)  # type: ignore[attr-defined]
        ending, events = run(store, goal, [])
        assert isinstance(ending, Skip)
        assert ending.reason is SkipReason.DONE
        assert events == []


def test_a_pause_during_the_wait_is_seen(store: Store, tmp_path: Path) -> None:
    """B118: a goal that is paused while a run waits for it is not woken again."""
    goal = new(store, tmp_path)
    model = ScriptedModel([ModelError(ErrorKind.SERVER, "down", status=503)])
    seen: list[Event] = []

    async def wake_once() -> Exit | Skip:
        wake = begin_wakeup(store, goals.get(store, goal.id), profile=PROFILE)
        return wake if isinstance(wake, Skip) else await run_wakeup(wake, model)

    def sink(event: Event) -> None:
        seen.append(event)
        stop_goal(store, goals.get(store, goal.id), Control.PAUSE)

    async def body() -> Exit | Skip:
        return await run_goal(store, goal.id, wake_once, sink=sink, stop=lambda: None)

    ending = anyio.run(body)

    assert isinstance(ending, Exit)
    assert goals.get(store, goal.id).status is GoalStatus.PAUSED
    assert [e.kind for e in seen] == ["waiting"]


def test_a_wait_that_is_too_long_is_not_waited(store: Store, tmp_path: Path) -> None:
    """A goal due in a week is left alone, with its due time."""
    goal = new(store, tmp_path)
    wait = call("wait", seconds=7 * 24 * 3600, reason="the quarterly numbers")
    run(store, goal, [WORK, wait])

    ending, _ = run(store, goal, [])

    assert isinstance(ending, Skip)
    assert ending.reason is SkipReason.NOT_DUE
    assert ending.due_at == goals.get(store, goal.id).next_wakeup_at


def test_the_last_wakeup_of_a_budget(store: Store, tmp_path: Path) -> None:
    """A wakeup limit ends the goal with the limit named; a further run makes no request."""
    goal = new(store, tmp_path, limits=Limits(wakeups=1), max_turns=3)

    ending, events = run(store, goal, [WORK, WORK, say("saved")])

    assert closed(events) == ["GOAL_BUDGET_EXHAUSTED"]
    assert isinstance(ending, Exit)
    assert ending.facts["limit"] == "wakeups"


def test_a_stop_between_wakeups_ends_the_run(store: Store, tmp_path: Path) -> None:
    """A signal while the run waits ends it without a further wakeup."""
    goal = new(store, tmp_path)
    stopped: list[Exit] = []
    interrupt = Exit(ExitReason.INTERRUPTED, "SIGTERM", {"requested": True})

    ending, events = run(
        store,
        goal,
        [ModelError(ErrorKind.SERVER, "down", status=503)],
        stop=lambda: stopped.append(interrupt) or interrupt,
    )

    assert closed(events) == ["BACKEND_ERROR"]
    assert isinstance(ending, Exit)


def test_a_known_reset_is_waited_for_by_each_goal_once(store: Store, tmp_path: Path) -> None:
    """B100: two goals whose account is spent get one new wakeup each at the reset, not before, and complete."""
    start = store.clock.now()
    reset = start + timedelta(seconds=5)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        goal = new(store, tmp_path / name)
        spent = ModelError(ErrorKind.QUOTA, "usage limit", status=429, reset_at=reset)

        _, events = run(store, goal, [WORK, spent, CLAIM])

        assert closed(events) == ["BACKEND_ERROR", "CURRENT_TASK_DONE"]
        assert store.clock.now() >= reset
        assert [e.kind for e in events].count("wakeup_started") == 2
    assert (store.clock.now() - start).total_seconds() < 60
