"""Servers in processes of their own, DBOS between them, one store on PostgreSQL, and a provider on loopback."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from goalmode import Goal, GoalSettings, GoalSpec, Limits, Store, create_goal
from goalmode.testing import steps
from goalmode.testing.steps import Step
from tests import stores
from tests.acceptance.processes import Child, Children
from tests.acceptance.world import Provider, complete, told
from tests.stores import Stores

WORKER = Path(__file__).with_name("worker.py")
LEASE_SECONDS = 4
UNCLAIMED_SECONDS = 6

MARK = 'echo "$GOALMODE_IDEMPOTENCY_KEY" >> marks; sleep 0.05'

_NUMBER = re.compile(r"Keep book (\d+)")


@pytest.fixture(autouse=True)
def _needs() -> None:
    if not stores.SERVER or find_spec("dbos") is None:
        pytest.skip("it needs PostgreSQL and the extra dbos: make test-dbos")


@dataclass
class Fleet:
    """Goals and the servers that wake them.

    Attributes:
        turns: of each goal, until it claims success: every turn but the last leaves a mark.
        befalls: what befalls the process that sends the first request after so many turns.
    """

    store: Store
    url: str
    home: Path
    provider: Provider
    children: Children
    turns: int = 24
    goals: list[Goal] = field(default_factory=list)
    befalls: dict[int, Callable[[int], None]] = field(default_factory=dict)

    def goal(self, label: str | None = None, **settings: Any) -> Goal:
        number = len(self.goals)
        workspace = self.home / f"book{number}"
        workspace.mkdir()
        own = replace(GoalSettings(model="openai:stub", base_url=self.provider.url, max_turns=6), **settings)
        spec = GoalSpec(f"Keep book {number}", str(workspace), (), ("marks",), Limits(), own)
        goal = create_goal(self.store, spec)
        if label is not None:
            self.rows("UPDATE goals SET host_label = ? WHERE id = ?", label, goal.id)
        self.goals.append(goal)
        return goal

    def answer(self, request: Mapping[str, Any], number: int) -> Step:
        found = _NUMBER.search(told(request))
        assert found, "the request names no book"
        for turns in tuple(self.befalls):
            if self.turns_done() >= turns and (befall := self.befalls.pop(turns, None)):
                goal = self.goals[int(found[1])].id
                [pid] = self.rows("SELECT pid FROM wakeups WHERE exit_reason IS NULL AND goal = ?", goal)
                befall(pid)
        done = len(self.marks(int(found[1]))) >= self.turns - 1
        return complete() if done else steps.tool("shell", {"command": MARK})

    def marks(self, number: int) -> list[str]:
        """The keys of the calls that ran, as the tools themselves wrote them."""
        path = self.home / f"book{number}" / "marks"
        return path.read_text().split() if path.exists() else []

    def worker(self, *options: str, dies: bool = False, label: str = "") -> Child:
        fate = "DIES" if dies else "LIVES"
        own = ["--store", self.url, "--poll", "0.3s", "--json", "--concurrency", "2", *options]
        environment = {
            "GOALMODE_LEASE": str(LEASE_SECONDS),
            **({"GOALMODE_HOST_LABEL": label} if label else {}),
        }
        return self.children.start(
            [sys.executable, str(WORKER), str(UNCLAIMED_SECONDS), fate, *own], **environment
        )

    def rows(self, statement: str, *values: object) -> list[Any]:
        return stores.rows(self.url, statement, *values)

    def turns_done(self) -> int:
        return int(self.rows("SELECT sum(spent_turns) FROM goals")[0])

    def statuses(self) -> Counter[str]:
        return Counter(self.rows("SELECT status FROM goals"))

    def endings(self) -> Counter[str]:
        return Counter(self.rows("SELECT exit_reason FROM wakeups"))

    def all_done(self) -> bool:
        return self.statuses() == {"DONE": len(self.goals)}


@pytest.fixture
def fleet(tmp_path: Path, new_stores: Stores) -> Iterator[Fleet]:
    children = Children()
    with Provider() as provider, Store(new_stores.new(tmp_path / "goals.sqlite")) as store:
        made = Fleet(store, store.url, tmp_path, provider, children)
        provider.follow(made.answer)
        made.rows("SELECT 1")  # Connected now: several threads ask later on.
        try:
            yield made
        finally:
            children.end()
    assert provider.violations() == []
