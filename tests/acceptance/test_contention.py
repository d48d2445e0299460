"""Row B58: many threads and processes share one store, and nobody is told of its locks."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from goalmode import Exit, ExitReason, Goal, Skip, Store
from goalmode.inspection.show import show
from goalmode.testing.steps import Step
from tests.acceptance.processes import Children
from tests.acceptance.world import World, complete, mark, results

pytestmark = pytest.mark.sqlite

THREADS, PROCESSES, TURNS = 8, 4, 20
LOOKS_A_SECOND = 20
LARGEST_WAL = 3 * 2**20
"""Bytes. About twice as much is written in all; SQLite makes room at each megabyte, unless readers hold it up."""


def to_its_end(request: Mapping[str, Any], number: int) -> Step:
    """A marker in each turn, each another one, and a claim in the last."""
    done = len(results(request))
    return mark(word=f"x{done}") if done < TURNS - 1 else complete()


class Inspector(threading.Thread):
    """Looks at goal after goal, through a store that only reads, as somebody's `show` and `watch` do."""

    def __init__(self, path: Path, goals: list[Goal]) -> None:
        super().__init__()
        self.looks, self.wal = 0, 0
        self.trouble: list[BaseException] = []
        self._path, self._goals, self._end = path, goals, threading.Event()

    def run(self) -> None:
        log = self._path.with_name(f"{self._path.name}-wal")
        with Store(str(self._path), readonly=True) as store:
            while not self._end.wait(1 / LOOKS_A_SECOND):
                try:
                    show(store, self._goals[self.looks % len(self._goals)].id)
                except BaseException as error:  # noqa: BLE001 - told by the test
                    self.trouble.append(error)
                with suppress(FileNotFoundError):
                    self.wal = max(self.wal, log.stat().st_size)
                self.looks += 1

    def end(self) -> None:
        self._end.set()
        self.join()


def test_threads_processes_and_an_inspector_share_one_store(real_world: World, children: Children) -> None:
    """B58: each of twelve goals ends as its script says, with exactly its turns, and the log stays small."""
    world, provider = real_world, real_world.provider
    provider.follow(to_its_end)
    goals = []
    for number in range(THREADS + PROCESSES):
        workspace = world.root / f"workspace-{number}"
        workspace.mkdir()
        goals.append(world.goal(f"Goal {number}.", deliverables=["marks"], workspace=workspace))

    inspector = Inspector(world.store_path, goals)
    inspector.start()
    endings: list[Exit | Skip] = []
    try:
        others = [children.wake(world, goal) for goal in goals[THREADS:]]
        with ThreadPoolExecutor(THREADS) as threads:
            endings += threads.map(world.wake, goals[:THREADS])
        codes = [child.ended() for child in others]
    finally:
        inspector.end()

    assert codes == [0] * PROCESSES, [child.err for child in others]
    assert [ending.reason for ending in endings] == [ExitReason.CURRENT_TASK_DONE] * THREADS
    assert inspector.trouble == []
    assert inspector.looks > 0
    for number, goal in enumerate(goals):
        seen = world.inspect(goal)
        marks = (world.root / f"workspace-{number}" / "marks").read_text("utf-8")
        assert [w["exit_reason"] for w in seen["wakeups"]] == ["CURRENT_TASK_DONE"]
        assert seen["spent"]["turns"] == TURNS
        assert [turn["purpose"] for turn in world.turns(world.now(goal))] == ["work"] * TURNS + ["settlement"]
        assert marks.split() == [f"x{done}" for done in range(TURNS - 1)]
    assert 0 < inspector.wal <= LARGEST_WAL
    assert world.intact()
