"""A server, the goal that it works on and what it says meanwhile: for tests that take its store away for a while."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from goalmode.domain.goal import GoalSettings, GoalSpec
from goalmode.orchestrator.goals import create_goal
from goalmode.state.store import Store
from goalmode.testing import Stub, steps
from tests import stores
from tests.crash import invariants
from tests.crash.marks import FILE, SHELL, Marks
from tests.crash.storm import serve
from tests.state.processes import another, until

SHORT_LEASE = {"GOALMODE_LEASE": "1"}
"""So that a wakeup that could not be closed is soon gone on with."""

PORTION = 4
MARKS = 4 * PORTION
"""Each portion, and the claim behind the last one, waits until the test has seen what it wants of those before."""

BIG = 20_000
"""Characters that each reply has, and the store gets."""


@dataclass
class Serving:
    """A server, and the one goal that it works on, portion by portion."""

    held: list[threading.Event]
    url: str
    uid: str
    pid: int
    log: Path
    workspace: Path

    @property
    def marks(self) -> Marks:
        return Marks.of(self.workspace)

    def works(self) -> None:
        """Let it go on to the next portion, and wait until another mark is made."""
        before = len(self.marks.lines)
        next(event for event in self.held if not event.is_set()).set()
        until(lambda: len(self.marks.lines) > before, what="the goal goes on")

    def gives_up(self, what: str) -> None:
        """Wait until the wakeup itself has failed, with these words: a look of the server at its goals may be first.

        What is said is said in lines, without a traceback.
        """
        self._go_on()
        until(
            lambda: any(told["kind"] == "skipped" and what in told["detail"] for told in self.told),
            what=f"the wakeup ends with {what!r}",
        )
        assert "Traceback" not in self.log.read_text()

    @property
    def told(self) -> list[Any]:
        """The whole lines of the log that are JSON, read."""
        lines = self.log.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]

    def finishes(self) -> list[str]:
        """Wait until the goal is done; returns how its wakeups ended. Each mark was made once."""
        self._go_on()
        until(lambda: stores.rows(self.url, "SELECT status FROM goals") == ["DONE"], what="the goal is done")
        done_properly(self.url, self.marks)
        return stores.rows(self.url, "SELECT exit_reason FROM wakeups ORDER BY seq")

    def _go_on(self) -> None:
        for event in self.held:
            event.set()


def done_properly(url: str, marks: Marks) -> None:
    """Nothing is half-written, no call was begun twice, and what began is called that in the store."""
    assert invariants.broken(url) == []
    begun = marks.begun
    outcomes = dict(stores.rows(url, "SELECT idem_key, outcome FROM tool_calls WHERE tool = 'shell'"))
    assert len(begun) == len(set(begun))
    assert {outcomes[key] for key in begun} <= {"success", "interrupted"}
    assert {key for key, outcome in outcomes.items() if outcome == "success"} <= set(begun)
    assert marks.overlaps() == []


@contextmanager
def goal(url: str, root: Path, held: Sequence[threading.Event] = ()) -> Iterator[tuple[str, Path]]:
    """A goal of some sixteen turns and the provider that answers it; its id and its workspace.

    Args:
        held: for each portion of marks, and for the claim: the model is silent until it is set.
    """
    workspace, noise = root / "workspace", "".join(chr(97 + n * n % 26) for n in range(BIG))
    workspace.mkdir()

    def answer(request: Mapping[str, Any], number: int) -> steps.Step:
        done = len(Marks.of(workspace).done)
        if "shell" not in {tool["function"]["name"] for tool in request["tools"]}:
            return steps.tool("update_working_checkpoint", {"key_info": f"{done} marks"})
        command = SHELL.format(word=f"m{done}", work="sleep 0.05")
        step = steps.tool("shell", {"command": command}, text=f"{number} {noise}")
        if done >= MARKS:
            step = steps.tool("complete", {"status": "success", "summary": "All marks are left."})
        return steps.stall(step, until=held[done // PORTION]) if held else step

    with Stub(answer) as stub:
        settings = replace(GoalSettings(), model="openai:stub", base_url=stub.base_url, user_tools=False)
        with Store(url) as store:
            spec = GoalSpec("Leave marks.", str(workspace), (), (FILE,), settings=settings)
            uid = create_goal(store, spec).uid
        yield uid, workspace


@contextmanager
def serving(url: str, root: Path, environment: Mapping[str, str]) -> Iterator[Serving]:
    """The goal, under way."""
    log, held = root / "log", [threading.Event() for _ in range(MARKS // PORTION + 1)]
    with goal(url, root, held) as (uid, workspace), another(serve, url, str(log), environment) as server:
        made = Serving(held, url, uid, server.pid, log, workspace)
        made.works()
        yield made
