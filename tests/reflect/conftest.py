"""A goal in a store of its own, and GenericAgent's stand-in that wakes it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from goalmode.domain.contract import Requirement
from goalmode.domain.goal import Goal, GoalSettings, GoalSpec
from goalmode.inspection.why import why
from goalmode.orchestrator.goals import create_goal
from goalmode.reflect import module, session
from goalmode.settings import Settings
from goalmode.state import goals, reading
from goalmode.state.store import Store
from goalmode.testing import ManualClock
from tests.reflect.upstream import Agent, Checkout, Loader, Step, checkout
from tests.stores import Stores

FILE = Path(module.__file__)

SECONDS = 60.0
"""How long anything is waited for before the test has failed: a machine may be busy with something else."""


@dataclass
class World:
    store: Store
    clock: ManualClock
    goal: Goal
    workspace: Path
    checkout: Checkout
    lines: list[str] = field(default_factory=list)

    @property
    def agent(self) -> Agent:
        return self.checkout.agent

    @property
    def client(self) -> Any:
        return self.agent.llmclient

    @property
    def now(self) -> Goal:
        return goals.get(self.store, self.goal.id)

    def reasons(self) -> list[str]:
        """How the goal's wakeups ended, oldest first."""
        with self.store.reading() as connection:
            found = reading.wakeups(connection, self.goal.id)
        return [str(row.exit_reason) for row in sorted(found, key=lambda row: row.seq)]

    def why(self) -> dict[str, Any]:
        return why(self.store, self.goal.id)


Make = Callable[..., World]


@pytest.fixture
def make(tmp_path: Path, new_stores: Stores, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Makes a goal and a session of it: `make([reply, …], checks=("true",), max_turns=5)`."""
    opened: list[Store] = []

    def build(
        steps: Sequence[Step],
        *,
        objective: str = "Write a.txt.",
        checks: tuple[str, ...] = (),
        deliverables: tuple[str, ...] = (),
        workspace: str = "",
        limits: Any = None,
        **settings: Any,
    ) -> World:
        clock = ManualClock()
        store = Store(new_stores.new(tmp_path / "store" / "goals.sqlite"), clock=clock)
        opened.append(store)
        made = checkout(tmp_path / "ga", steps)
        root = Path(workspace) if workspace else tmp_path / "ga" / "temp"
        root.mkdir(parents=True, exist_ok=True)
        contract = tuple(Requirement("", check, check) for check in checks)
        spec = GoalSpec(
            objective, str(root), contract, deliverables, settings=replace(GoalSettings(), **settings)
        )
        goal = create_goal(store, spec if limits is None else replace(spec, limits=limits))
        world = World(store, clock, goal, root, made)
        host = session.Host(made.main, made.hooks, made.agent.stats)
        started = session.Session(host, store, goal.uid, Settings(), world.lines.append)
        monkeypatch.setattr(session, "_session", started)
        return world

    yield build
    session_now = session._session
    if session_now is not None:
        session_now.close()
    for store in opened:
        store.close()


@pytest.fixture
def load(make: Make) -> Callable[..., Loader]:
    """Has the stand-in's loader load our file for a world."""

    def loaded(world: World, path: Path = FILE, **options: Any) -> Loader:
        return Loader(world.agent, path, {"goal": world.goal.uid}, **options)

    return loaded


def wait_for(true: Callable[[], bool]) -> None:
    """Wait for another thread to get somewhere."""
    until = time.monotonic() + SECONDS
    while not true():
        assert time.monotonic() < until, "it did not get there"
        time.sleep(0.005)
