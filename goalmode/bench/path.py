"""goalmode's whole path: its wire format over real HTTP, its store, its dispatch of real tools, and no display."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from goalmode.bench import material
from goalmode.bench.measure import Failed, Reading, between, peak_memory
from goalmode.bench.recall import recalled
from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.goal import Goal, GoalSettings, GoalSpec
from goalmode.domain.profile import ModelProfile
from goalmode.loop.ports import Event, Sink
from goalmode.orchestrator.goals import create_goal, resume_goal
from goalmode.orchestrator.skip import Skip
from goalmode.state import goals
from goalmode.state.store import Store
from goalmode.tools.registry import Tool, tool
from goalmode.wiring import Workshop, begin_wakeup, open_model, run_wakeup, workshop

OBJECTIVE = "Read every record of the archive, one after the other, and keep notes of what is new in each."
NARROW = 12_000
"""Tokens of the narrow work window."""


QUOTA = 180
"""Turns of one wakeup: as many as a goal has that says nothing of it."""


@dataclass
class Tools:
    """The tools of a measured goal, and what was told to the one that asks for facts."""

    known: str = ""
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def made(self) -> list[Tool]:
        @tool(effect="read")
        async def look(about: str) -> str:
            """Look a record up."""
            return material.result(next(self.numbers))

        @tool(effect="write")
        async def put(about: str) -> str:
            """Put a record into the archive."""
            return material.result(next(self.numbers))

        @tool(effect="read")
        async def facts(known: str) -> str:
            """Say all the facts that you know."""
            self.known = known
            return f"{recalled(known)} facts"

        return [look, put, facts]


@dataclass(frozen=True)
class Measured:
    """A goal, and what its wakeups are run with."""

    store: Store
    goal: Goal
    profile: ModelProfile
    tools: Tools

    @classmethod
    def new(cls, store: Store, directory: str, base_url: str, **settings: Any) -> Measured:
        workspace = Path(directory) / "workspace"
        workspace.mkdir(exist_ok=True)
        goal = create_goal(
            store, GoalSpec(OBJECTIVE, str(workspace), settings=GoalSettings("bench", **settings))
        )
        return cls.known(store, goal, base_url)

    @classmethod
    def known(cls, store: Store, goal: Goal, base_url: str) -> Measured:
        return cls(store, goal, ModelProfile("bench", "openai", "bench", base_url), Tools())

    async def take(self, turns: int, sink: Sink) -> None:
        """So many turns more, in as many wakeups as that needs.

        Raises:
            Failed: a wakeup ended for another reason than its quota.
        """
        for quota in (*[QUOTA] * (turns // QUOTA), turns % QUOTA):
            if quota:
                goal = goals.get(self.store, self.goal.id)
                resume_goal(self.store, goal, settings=replace(goal.settings, max_turns=quota))
                ending = await self.wake(sink)
                if ending.reason is not ExitReason.MAX_TURNS_EXCEEDED:
                    raise Failed(f"a wakeup ended with {ending.reason}: {ending.detail}")

    def shop(self) -> Workshop:
        return workshop(goals.get(self.store, self.goal.id), self.profile, tools=self.tools.made())

    async def wake(self, sink: Sink, stop: Callable[[], Exit | None] | None = None) -> Exit:
        """One whole wakeup, with connections of its own, as every command makes it."""
        shop = self.shop()
        wake = begin_wakeup(self.store, shop.goal, profile=self.profile, shop=shop, only_if_due=False)
        if isinstance(wake, Skip):
            raise Failed(f"the goal was not woken: {wake.detail}")
        model = open_model(self.profile, None, clock=self.store.clock)
        try:
            return await run_wakeup(wake, model, sink=sink, stop=stop)
        finally:
            await model.aclose()


class Turns:
    """Counts a goal's turns, and reads what was used up after some of them."""

    def __init__(self, *marks: int) -> None:
        self.count = 0
        self.readings: dict[int, Reading] = {}
        self._marks = marks

    def __call__(self, event: Event) -> None:
        if event.kind == "turn":
            self.count += 1
            if self.count in self._marks:
                self.readings[self.count] = Reading.now()


def turns(
    *, base_url: str, directory: str, turns: int, warm: int, window: int | None = None
) -> dict[str, Any]:
    """Take `turns` turns of a new goal after `warm` that are not counted.

    Returns what each cost, the bytes of the whole store for each turn that it holds, and the memory.
    """
    path = Path(directory) / "goals.sqlite"
    counted = Turns(warm, warm + turns)
    with Store(str(path)) as store:
        goal = Measured.new(store, directory, base_url, work_window=window, max_turns=warm + turns)
        anyio.run(partial(goal.wake, counted))
    found = between(counted.readings[warm], counted.readings[warm + turns], turns)
    return {**found, "stored": path.stat().st_size / counted.count, "memory": peak_memory()}
