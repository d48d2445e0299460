"""One goal in a real store and a real workspace, run with a scripted model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from goalmode.domain.contract import Requirement
from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.goal import Goal, GoalSettings, GoalSpec
from goalmode.domain.messages import Assistant, Request, System, User
from goalmode.domain.outside import Server
from goalmode.domain.profile import ModelProfile
from goalmode.loop.ports import Event
from goalmode.orchestrator.goals import create_goal
from goalmode.orchestrator.skip import Skip
from goalmode.orchestrator.wake import Wake
from goalmode.state import goals
from goalmode.state.store import Store
from goalmode.testing import ManualClock, ScriptedModel
from goalmode.tools.registry import Tool
from goalmode.wiring import begin_wakeup, run_wakeup, workshop
from tests.stores import Stores

PROFILE = ModelProfile("scripted", "openai", "scripted", "http://127.0.0.1:9/v1")


@dataclass
class World:
    """A store, a clock, a workspace and one goal; `wake` runs one wakeup of it."""

    store: Store
    clock: ManualClock
    workspace: Path
    goal: Goal
    profile: ModelProfile = PROFILE
    tools: tuple[Tool, ...] = ()
    servers: tuple[Server, ...] = ()
    events: list[Event] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)

    def wake(
        self,
        steps: Iterable[Any],
        *,
        stop: Callable[[], Exit | None] | None = None,
        on_event: Callable[[Event], None] | None = None,
        finished: bool = True,
    ) -> Exit:
        """Run one wakeup against `steps`; all of them must be used unless `finished` is False."""
        model = ScriptedModel(steps)
        wake = self.begin()
        assert isinstance(wake, Wake), wake

        def sink(event: Event) -> None:
            self.events.append(event)
            if on_event is not None:
                on_event(event)

        async def run() -> Exit:
            return await run_wakeup(wake, model, sink=sink, stop=stop)

        ending = anyio.run(run)
        self.requests = model.requests
        assert ending.reason is not ExitReason.ENGINE_ERROR, ending.facts["traceback"]
        if finished:
            model.assert_finished()
        return ending

    def begin(self) -> Wake | Skip:
        shop = workshop(self.now, self.profile, tools=self.tools, servers=self.servers)
        return begin_wakeup(self.store, self.now, profile=self.profile, only_if_due=False, shop=shop)

    @property
    def now(self) -> Goal:
        """The goal as it is stored now."""
        return goals.get(self.store, self.goal.id)

    def told(self, number: int = -1) -> str:
        """All text of one request, one message a paragraph."""
        return "\n\n".join(_text(m) for m in self.requests[number].messages)

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]


Make = Callable[..., World]


@pytest.fixture
def make(tmp_path: Path, new_stores: Stores) -> Iterator[Make]:
    """Makes worlds: `make(deliverables=("a",), checks=("true",), limits=…, max_turns=5, …)`."""
    opened: list[Store] = []

    def build(
        objective: str = "Write the report.",
        *,
        deliverables: tuple[str, ...] = (),
        checks: tuple[str, ...] = (),
        requirements: tuple[str, ...] = (),
        limits: Any = None,
        profile: ModelProfile = PROFILE,
        tools: tuple[Tool, ...] = (),
        **settings: Any,
    ) -> World:
        clock = ManualClock(datetime(2030, 1, 1, tzinfo=UTC))
        root = tmp_path / f"world-{len(opened)}"
        workspace = root / "workspace"
        workspace.mkdir(parents=True)
        store = Store(new_stores.new(root / "store" / "goals.sqlite"), clock=clock)
        opened.append(store)
        spec = GoalSpec(
            objective,
            str(workspace),
            tuple(Requirement("", text) for text in requirements)
            + tuple(Requirement("", check, check) for check in checks),
            deliverables,
            settings=replace(GoalSettings(), **settings),
        )
        spec = spec if limits is None else replace(spec, limits=limits)
        return World(store, clock, workspace, create_goal(store, spec), profile, tools)

    yield build
    for store in opened:
        store.close()


def _text(message: object) -> str:
    match message:
        case System(text) | User(text):
            return text
        case Assistant(text, calls):
            return "\n".join([text, *(f"{c.name} {c.arguments}" for c in calls)])
        case _:
            return getattr(message, "text", "")
