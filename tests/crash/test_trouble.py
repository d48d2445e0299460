"""A server whose store is locked, full or gone for a while: it says so in one line, and goes on when it is back."""

from __future__ import annotations

import json
import resource
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from goalmode.domain.goal import GoalSettings, GoalSpec
from goalmode.orchestrator.goals import create_goal
from goalmode.state.store import Store
from goalmode.testing import Stub, steps
from tests import stores
from tests.crash import invariants
from tests.crash.marks import FILE, SHELL, Marks
from tests.crash.storm import serve
from tests.state.processes import another, until

pytestmark = [pytest.mark.slow, pytest.mark.sqlite]

SHORT_LEASE = {"GOALMODE_LEASE": "1"}
"""So that a wakeup that could not be closed is soon gone on with."""

MARKS = 15
BIG = 20_000
"""Characters that each reply has, and the store gets."""


@dataclass
class Serving:
    """A server, and the one goal that it works on."""

    path: Path
    pid: int
    log: Path
    workspace: Path

    @property
    def marks(self) -> Marks:
        return Marks.of(self.workspace)

    def works(self) -> None:
        """Wait until another mark is made."""
        before = len(self.marks.lines)
        until(lambda: len(self.marks.lines) > before, what="the goal goes on")

    def says(self, what: str) -> None:
        """Wait for a line that has these words; there is no traceback beside it."""
        until(lambda: what in self.log.read_text(), what=f"the server says {what!r}")
        assert "Traceback" not in self.log.read_text()
        assert all(json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{"))

    def finishes(self) -> list[str]:
        """Wait until the goal is done; returns how its wakeups ended. Each mark was made once."""
        url = str(self.path)
        until(lambda: stores.rows(url, "SELECT status FROM goals") == ["DONE"], what="the goal is done")
        assert invariants.broken(url) == []
        begun = self.marks.begun
        outcomes = dict(stores.rows(url, "SELECT idem_key, outcome FROM tool_calls WHERE tool = 'shell'"))
        assert len(begun) == len(set(begun))
        assert {outcomes[key] for key in begun} <= {"success", "interrupted"}
        assert {key for key, outcome in outcomes.items() if outcome == "success"} <= set(begun)
        assert self.marks.overlaps() == []
        return stores.rows(url, "SELECT exit_reason FROM wakeups ORDER BY seq")


@contextmanager
def serving(tmp_path: Path, environment: Mapping[str, str]) -> Iterator[Serving]:
    """A goal of some fifteen turns, under way."""
    workspace, noise = tmp_path / "workspace", "".join(chr(97 + n * n % 26) for n in range(BIG))
    workspace.mkdir()

    def answer(request: Mapping[str, Any], number: int) -> steps.Step:
        done = len(Marks.of(workspace).done)
        if "shell" not in {tool["function"]["name"] for tool in request["tools"]}:
            return steps.tool("update_working_checkpoint", {"key_info": f"{done} marks"})
        if done >= MARKS:
            return steps.tool("complete", {"status": "success", "summary": "All marks are left."})
        command = SHELL.format(word=f"m{done}", work="sleep 0.05")
        return steps.tool("shell", {"command": command}, text=f"{number} {noise}")

    path, log = tmp_path / "state" / "goals.sqlite", tmp_path / "log"
    with Stub(answer) as stub:
        settings = replace(GoalSettings(), model="openai:stub", base_url=stub.base_url, user_tools=False)
        with Store(str(path)) as store:
            create_goal(store, GoalSpec("Leave marks.", str(workspace), (), (FILE,), settings=settings))
        with another(serve, str(path), str(log), environment) as server:
            made = Serving(path, server.pid, log, workspace)
            made.works()
            yield made


def test_a_lock_for_a_while_is_waited_out(tmp_path: Path) -> None:
    """B53: nothing is lost and nothing is said; the wakeup goes on where it was."""
    with serving(tmp_path, {}) as served:
        with closing(sqlite3.connect(served.path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            time.sleep(3)
            other.execute("ROLLBACK")

        assert served.finishes() == ["CURRENT_TASK_DONE"]
        assert "locked" not in served.log.read_text()


def test_a_full_disk_is_told_and_gone_on_from(tmp_path: Path) -> None:
    """B55: the server lives on; with room again the goal goes on, and what could not be stored did not run."""
    with serving(tmp_path, SHORT_LEASE) as served:
        beside = served.path.parent.glob(f"{served.path.name}*")
        largest = max(file.stat().st_size for file in beside if file.is_file())
        _, hard = resource.prlimit(served.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(served.pid, resource.RLIMIT_FSIZE, (largest + BIG, hard))
        served.says("disk")
        assert str(served.path) in served.log.read_text()

        resource.prlimit(served.pid, resource.RLIMIT_FSIZE, (hard, hard))
        *interrupted, last = served.finishes()

    assert set(interrupted) == {"INTERRUPTED"}
    assert last == "CURRENT_TASK_DONE"


def test_a_store_that_is_gone_is_told_and_gone_on_from(tmp_path: Path) -> None:
    """B55: nothing is written where nobody would see it; with the file back in its place the goal goes on."""
    with serving(tmp_path, SHORT_LEASE) as served:
        away = served.path.with_name("away")
        served.path.rename(away)
        served.says("was deleted or replaced while it was open")
        assert not served.path.exists()

        away.rename(served.path)
        *interrupted, last = served.finishes()

    assert set(interrupted) == {"INTERRUPTED"}
    assert last == "CURRENT_TASK_DONE"
