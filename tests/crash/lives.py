"""One goal and the processes that wake it one after the other, each of them as long as it lives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import anyio

from goalmode.domain.clock import Clock
from goalmode.domain.exits import Exit, GoalStatus
from goalmode.domain.goal import GoalSettings, GoalSpec
from goalmode.domain.messages import Reply, Request
from goalmode.domain.profile import ModelProfile
from goalmode.errors import ModelError
from goalmode.orchestrator.goals import create_goal
from goalmode.orchestrator.skip import Skip
from goalmode.orchestrator.wake import Wake
from goalmode.state import goals
from goalmode.state.store import Store
from goalmode.testing import ManualClock, ScriptedModel
from goalmode.tools.registry import Tool, ToolContext, tool
from goalmode.wiring import begin_wakeup, run_wakeup, workshop
from tests import stores
from tests.crash.marks import Marks, leave
from tests.crash.mortal import Death, MortalStore
from tests.crash.stories import DELIVERABLES, Look, Story, never_ends

PROFILE = ModelProfile("scripted", "openai", "scripted", "http://127.0.0.1:9/v1")

MANY = 200
"""Requests that no story comes near."""


@dataclass
class Lives:
    """A goal in its store and its workspace. `wake` runs one wakeup by one process.

    Attributes:
        asked: every request that any process has sent.
        paid: how many of them cost something: a refused one does not.
        commits: of the last process.
    """

    url: str
    workspace: Path
    story: Story
    clock: Clock = field(default_factory=ManualClock)
    asked: list[Request] = field(default_factory=list)
    paid: int = 0
    commits: list[str] = field(default_factory=list)
    tools: int = 0
    busy_seconds: float = 60.0
    id: int = 0

    def __post_init__(self) -> None:
        self.workspace.mkdir(parents=True)
        settings = replace(GoalSettings(), **self.story.settings)
        spec = GoalSpec(
            "Mark what is to be marked.", str(self.workspace), (), DELIVERABLES, settings=settings
        )
        if self.story.limits is not None:
            spec = replace(spec, limits=self.story.limits)
        with Store(self.url, clock=self.clock) as store:
            self.id = create_goal(store, spec).id
        for _ in range(self.story.before):
            self.wake(replace(self.story, model=never_ends))

    def wake(self, story: Story | None = None, *, death: Death | None = None) -> Exit | Skip | None:
        """One process wakes the goal, whenever it is due; None if it died."""
        model = (story or self.story).model

        def answer(request: Request) -> Reply:
            look = Look(request, frozenset(self.marks.done), len(self.asked))
            self.asked.append(request)
            try:
                reply = model(look)
            except ModelError as error:
                self.paid += error.usage is not None
                raise
            self.paid += 1
            return reply

        with self.opened(death) as store:
            try:
                return anyio.run(self._wake, store, ScriptedModel([answer] * MANY))
            except BaseException:
                if not store.dead:
                    raise
                self._bury()
                return None
            finally:
                self.commits, self.tools = store.commits, store.tools

    def opened(self, death: Death | None = None) -> MortalStore:
        """The store, for one process."""
        return MortalStore(self.url, death, clock=self.clock, busy_seconds=self.busy_seconds)

    async def _wake(self, store: MortalStore, model: ScriptedModel) -> Exit | Skip:
        goal = goals.get(store, self.id)
        shop = workshop(goal, PROFILE, tools=(marker(store),))
        wake = begin_wakeup(store, goal, profile=PROFILE, only_if_due=False, shop=shop)
        if not isinstance(wake, Wake):
            return wake
        return await run_wakeup(wake, model)

    def wake_until_over(self, most: int = 6) -> None:
        """New processes wake it until it is no longer active."""
        for _ in range(most):
            if self.status is not GoalStatus.ACTIVE:
                return
            ended = self.wake()
            assert ended is not None
        assert self.status is not GoalStatus.ACTIVE, f"after {most} more wakeups"

    @property
    def status(self) -> GoalStatus:
        [status] = self.rows("SELECT status FROM goals WHERE id = ?", self.id)
        return GoalStatus(status)

    @property
    def marks(self) -> Marks:
        return Marks.of(self.workspace)

    def rows(self, statement: str, *values: object) -> list[Any]:
        return stores.rows(self.url, statement, *values)

    def _bury(self) -> None:
        """Its process number belongs to somebody else now."""
        self.rows("UPDATE wakeups SET pid_start = 'long ago' WHERE exit_reason IS NULL")


def marker(store: MortalStore) -> Tool:
    """The tool that leaves marks. Words that begin with `long` have a long result."""

    @tool(effect="write", brief="word")
    async def mark(context: ToolContext, word: Annotated[str, "What to mark."]) -> str:
        """Leave a mark."""
        leave(context.workspace, "begin", context.idempotency_key, word)
        store.in_tool()
        leave(context.workspace, "end", context.idempotency_key, word)
        return f"marked {word}" + " tide" * (600 if word.startswith("long") else 0)

    return mark


def deaths(story: Story) -> Iterable[Death]:
    """Every point at which the first wakeup's process can die between two things that it does."""
    for number in range(len(story.commits)):
        yield Death("before", number)
        yield Death("after", number)
    for number in range(story.tools):
        yield Death("within", number)
