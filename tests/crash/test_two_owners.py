"""Eight processes over the goals of one store: no goal has two owners, no tool runs beside another of its goal."""

from __future__ import annotations

import os
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from goalmode.domain.exits import ExitReason
from goalmode.domain.goal import GoalSettings, GoalSpec
from goalmode.orchestrator.goals import create_goal
from goalmode.state.store import Store
from tests import stores
from tests.crash import invariants
from tests.crash.conftest import Report
from tests.crash.crowd import TURNS, Told, serves
from tests.crash.marks import FILE, Marks
from tests.state.processes import another
from tests.stores import Stores

pytestmark = pytest.mark.slow

PROCESSES = 8
GOALS = int(os.environ.get("GOALMODE_CRASH_GOALS", "200"))
WAKEUPS = int(os.environ.get("GOALMODE_CRASH_WAKEUPS", "600")) // GOALS
"""Of each goal."""

SECONDS = max(300.0, GOALS * WAKEUPS * 0.5)
"""For all of them."""


def test_no_goal_has_two_owners(new_stores: Stores, tmp_path: Path, report: Report) -> None:
    """B48: from the journal no wakeup overlaps another, from the tools' own files no tool does, and none is lost."""
    url = new_stores.new(tmp_path / "state" / "goals.sqlite")
    workspaces = _goals(url, tmp_path)

    seconds, told = _crowd(url)

    assert invariants.broken(url) == []
    endings = stores.rows(url, "SELECT goal, seq, exit_reason FROM wakeups ORDER BY goal, seq")
    wanted = [ExitReason.MAX_TURNS_EXCEEDED] * (WAKEUPS - 1) + [ExitReason.CURRENT_TASK_DONE]
    assert [reason for _, _, reason in endings] == wanted * GOALS
    assert [seq for _, seq, _ in endings] == list(range(1, WAKEUPS + 1)) * GOALS
    succeeded = set(
        stores.rows(url, "SELECT idem_key FROM tool_calls WHERE tool = 'mark' AND outcome = 'success'")
    )
    assert len(succeeded) == GOALS * WAKEUPS
    for workspace in workspaces:
        marks = Marks.of(workspace)
        assert [(m.what, m.word) for m in marks.lines] == [
            (what, f"w{seq}") for seq in range(1, WAKEUPS + 1) for what in ("begin", "end")
        ]
        assert succeeded.issuperset(marks.begun)
    shared = Counter(stores.rows(url, "SELECT COUNT(DISTINCT owner) FROM wakeups GROUP BY goal"))
    assert sum(shared[n] for n in shared if n > 1) > GOALS / 2  # Else nobody was in anybody's way.
    _report(report, seconds, told)


def _goals(url: str, root: Path) -> list[Path]:
    settings = replace(GoalSettings(), max_turns=TURNS, user_tools=False)
    workspaces = [root / f"w{number}" for number in range(GOALS)]
    with Store(url) as store:
        for workspace in workspaces:
            workspace.mkdir()
            create_goal(store, GoalSpec("Leave marks.", str(workspace), (), (FILE,), settings=settings))
    return workspaces


def _crowd(url: str) -> tuple[float, list[Told]]:
    """Let all of them work until no goal is active; returns how long that took and what each has told."""
    with ExitStack() as stack:
        crowd = [stack.enter_context(another(serves, url, WAKEUPS)) for _ in range(PROCESSES)]
        for one in crowd:
            assert one.hear() == "ready"
        began = time.monotonic()
        for one in crowd:
            one.tell()
        while stores.rows(url, "SELECT 1 FROM goals WHERE status = 'ACTIVE' LIMIT 1"):
            assert time.monotonic() < began + SECONDS, invariants.endings(url)
            assert all(one.process.is_alive() for one in crowd)
            time.sleep(0.1)
        seconds = time.monotonic() - began
        for one in crowd:
            one.tell()
        return seconds, [one.hear() for one in crowd]


def _report(report: Report, seconds: float, told: list[Told]) -> None:
    claiming = sorted(s for one in told for s in one.claiming)
    skipped = sum((one.skipped for one in told), Counter())
    trouble = sum((one.trouble for one in told), Counter())
    assert len(claiming) == GOALS * WAKEUPS
    middle, late, last = (1000 * claiming[int((len(claiming) - 1) * q)] for q in (0.5, 0.99, 1))
    report(
        f"{PROCESSES} processes, {GOALS} goals, {len(claiming)} wakeups in {seconds:.1f} s: "
        f"{len(claiming) / seconds:.0f} claims/s; a claim takes {middle:.0f} ms, p99 {late:.0f} ms, "
        f"at most {last:.0f} ms; 0 overlaps; skipped {dict(skipped)}, told {dict(trouble)}"
    )
