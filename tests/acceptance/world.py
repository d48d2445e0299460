"""What the rows' "given" is made of: a store, a workspace, a strict provider, and goals between them.

Everything goes through the public API and over HTTP; only the clock is a manual one.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import anyio

import goalmode
from goalmode import Exit, Goal, GoalSettings, GoalSpec, Limits, ModelProfile, Requirement, Skip, Store
from goalmode.domain.clock import Clock
from goalmode.inspection.show import show
from goalmode.inspection.turns import turns
from goalmode.orchestrator.run import run_goal
from goalmode.state import goals
from goalmode.testing import ManualClock, Stub, steps
from goalmode.testing.steps import AUTO, Completion, Step
from tests import stores
from tests.acceptance import wire
from tests.stores import Stores

HANDOFF = re.compile("turns of this wakeup are used|^本次唤醒的 [0-9]+ 轮已经用尽")
"""By which the request after a spent turn quota is known; a script is not advanced by it."""

SETTLEMENT = re.compile(
    "^This task took 15 or more turns|^The long-term memory update is|^本任务达到 15 轮|^长期记忆的更新"
)
"""By which a request for long-term memories is known, when a long task ends; nor does it advance a script."""

Rule = Callable[[Mapping[str, Any], int], Step | None]


class Provider:
    """A strict provider whose script can be changed between wakeups.

    Attributes:
        on_request: called with each valid request's number before it is answered.
        saves, settles: answers to requests for a handoff and for long-term memories; None leaves them to the script.
    """

    def __init__(self) -> None:
        self.on_request: Callable[[int], None] | None = None
        self.saves: Step = steps.text("saved")
        self.settles: Step | None = steps.text("nothing to keep")
        self._steps: deque[Step] = deque()
        self._then: Step | None = None
        self._rule: Rule | None = None
        self.stub = Stub(self._answer)

    def __enter__(self) -> Provider:
        self.stub.__enter__()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stub.__exit__(*exc_info)

    @property
    def url(self) -> str:
        return self.stub.base_url

    def script(self, *given: Step, then: Step | None = None) -> None:
        """Answer the next requests with `given`, all later ones with `then`; without it they are a fault."""
        self._steps, self._then, self._rule = deque(given), then, None

    def follow(self, rule: Rule) -> None:
        """Answer by a rule over (request, number of requests before)."""
        self._rule = rule

    @property
    def unused(self) -> int:
        return len(self._steps)

    @property
    def requests(self) -> list[dict[str, Any]]:
        return [json.loads(seen.raw) for seen in self.stub.requests if seen.raw]

    def told(self, number: int = -1) -> str:
        """All that the model was told in one request, without the tools."""
        return told(self.requests[number])

    def violations(self) -> list[str]:
        """What was wrong with any request so far, by the stub's rules or by our own."""
        ours = [v for seen in self.stub.requests if seen.raw for v in wire.violations(seen.raw)]
        return [*self.stub.rejected, *ours]

    def _answer(self, request: Mapping[str, Any], number: int) -> Step | None:
        if self.on_request is not None:
            self.on_request(number)
        last = str(request["messages"][-1].get("content"))
        if HANDOFF.search(last):
            return self.saves
        if self.settles is not None and SETTLEMENT.search(last):
            return self.settles
        if self._rule is not None:
            return self._rule(request, number)
        return self._steps.popleft() if self._steps else self._then


@dataclass
class World:
    """A store, a workspace and a provider. `goal` makes goals, `wake` runs one wakeup of one."""

    root: Path
    provider: Provider
    store: Store
    workspace: Path
    clock: Any
    profile: ModelProfile
    tools: tuple[Any, ...] = ()
    events: list[Any] = field(default_factory=list)

    @property
    def store_path(self) -> Path:
        return self.store.path

    def goal(
        self,
        objective: str = "Write the report.",
        *,
        deliverables: Iterable[str] = (),
        checks: Iterable[str] = (),
        limits: Limits | None = None,
        workspace: Path | None = None,
        **settings: Any,
    ) -> Goal:
        own = replace(GoalSettings(model="openai:stub", base_url=self.provider.url), **settings)
        contract = tuple(Requirement("", check, check) for check in checks)
        where = str(workspace or self.workspace)
        spec = GoalSpec(objective, where, contract, tuple(deliverables), limits or Limits(), own)
        return goalmode.create_goal(self.store, spec)

    def wake(
        self,
        goal: Goal,
        *,
        stop: Callable[[], Exit | None] | None = None,
        on_event: Callable[[Any], None] | None = None,
        on_retry: Callable[[Any, float, int], None] | None = None,
        only_if_due: bool = False,
    ) -> Exit | Skip:
        """One wakeup, to its ending."""
        return anyio.run(lambda: self._wake(goal, stop, on_event, on_retry, only_if_due))

    def run(
        self,
        goal: Goal,
        *,
        on_event: Callable[[Any], None] | None = None,
        on_retry: Callable[[Any, float, int], None] | None = None,
    ) -> Exit | Skip:
        """Wakeup after wakeup as they become due, until the goal is done, waits, or is blocked: nobody intervenes."""

        def sink(event: Any) -> None:
            if on_event is not None:
                on_event(event)

        async def run() -> Exit | Skip:
            wake_once = partial(self._wake, goal, None, on_event, on_retry, True)
            return await run_goal(self.store, goal.id, wake_once, sink=sink, stop=lambda: None)

        return anyio.run(run)

    async def _wake(
        self, goal: Goal, stop: Any, on_event: Any, on_retry: Any, only_if_due: bool
    ) -> Exit | Skip:
        begun = goalmode.begin_wakeup(
            self.store, self.now(goal), profile=self.profile, tools=self.tools, only_if_due=only_if_due
        )
        if isinstance(begun, Skip):
            return begun
        model = goalmode.open_model(self.profile, None, clock=self.clock, on_retry=on_retry)

        def sink(event: Any) -> None:
            self.events.append(event)
            if on_event is not None:
                on_event(event)

        async with aclosing(model):
            return await goalmode.run_wakeup(begun, model, sink=sink, stop=stop)

    def now(self, goal: Goal) -> Goal:
        """The goal as it is stored now."""
        return goals.get(self.store, goal.id)

    def inspect(self, goal: Goal) -> dict[str, Any]:
        """What `goalmode show --json` prints."""
        return show(self.store, goal.id)

    def turns(self, goal: Goal, *, full: bool = False) -> list[dict[str, Any]]:
        """What `goalmode turns --json` prints."""
        return turns(self.store, goal, full=full)

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Rows of the store, read past the package."""
        found = stores.rows(self.store.url, statement, *values)
        return [row if isinstance(row, tuple) else (row,) for row in found]

    def outcomes(self, tool: str | None = None) -> list[str | None]:
        """The outcomes of all calls, in the order in which they were asked for."""
        rows = self.rows("SELECT tool, outcome FROM tool_calls ORDER BY id")
        return [outcome for name, outcome in rows if tool in (None, name)]

    def intact(self) -> bool:
        return self.store.path is None or self.rows("PRAGMA integrity_check") == [("ok",)]

    def marks(self, name: str = "marks") -> int:
        """How often the marker really ran."""
        path = self.workspace / name
        return len(path.read_text("utf-8").splitlines()) if path.exists() else 0


def mark(text: str = "", *, word: str = "x", **changes: Any) -> Completion:
    """A call that adds one line to a file for each real execution."""
    return steps.tool("shell", {"command": f"echo {word} >> marks"}, text=text, **changes)


def write(path: str, content: str, **changes: Any) -> Completion:
    return steps.tool("write_file", {"path": path, "content": content}, **changes)


def complete(summary: str = "Written as wanted.", **arguments: Any) -> Completion:
    return steps.tool("complete", {"status": "success", "summary": summary, **arguments})


def checkpoint(usage: Mapping[str, Any] | str | None = AUTO, **fields: Any) -> Completion:
    return steps.tool("update_working_checkpoint", fields, usage=usage)


def told(request: Mapping[str, Any]) -> str:
    """All text of one request's messages, with the calls' arguments."""
    parts: list[str] = []
    for message in request["messages"]:
        parts.append(message.get("content") or "")
        parts += [c["function"]["arguments"] for c in message.get("tool_calls") or ()]
    return "\n\n".join(parts)


def results(request: Mapping[str, Any]) -> list[str]:
    """The tools' results that one request holds."""
    return [m["content"] for m in request["messages"] if m["role"] == "tool"]


def open_world(
    root: Path, provider: Provider, new_stores: Stores, clock: Clock | None = None
) -> Iterator[World]:
    """A world below `root`."""
    workspace = root / "workspace"
    workspace.mkdir(parents=True)
    profile = ModelProfile("openai:stub", "openai", "stub", provider.url)
    clock = clock or ManualClock()
    with Store(new_stores.new(root / "state" / "goals.sqlite"), clock=clock) as store:
        yield World(root, provider, store, workspace, clock, profile)


def sentences(texts: Iterable[str]) -> Sequence[str]:
    """The sentences of some texts."""
    return [s.strip() for text in texts for s in re.split(r"(?<=[.!?。！？])\s*", text) if s.strip()]
