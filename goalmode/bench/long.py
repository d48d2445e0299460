"""One goal over many wakeups: what its turns cost later on, what a resume reads, and what it still knows at its end."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import anyio

from goalmode.bench.measure import Failed, Reading, between, own_directory, peak_memory
from goalmode.bench.path import Measured, Turns
from goalmode.bench.provider import told
from goalmode.bench.recall import recalled
from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.goal import Goal
from goalmode.loop.ports import Event
from goalmode.orchestrator.goals import resume_goal
from goalmode.state import snapshot
from goalmode.state.goals import Unreadable, every
from goalmode.state.store import Store

WARM = 20


def pursue(
    *, base_url: str, directory: str, steps: Sequence[int], window: int | None = None
) -> dict[str, Any]:
    """Take a new goal's turns, up to the last of `steps`; the store as it was at each of them is kept beside it.

    The facts that the model saved early are asked for in a wakeup behind the last one.

    Returns how many facts were told then, the provider's ledger and the peak memory before it, and at each step what
    the turns up to it cost (`between`) and the bytes of the store for each turn (`stored`).
    """
    found: dict[str, Any] = {"steps": {}}
    with Store(str(Path(directory) / "goals.sqlite")) as store:
        goal = Measured.new(store, directory, base_url, work_window=window)

        async def run() -> None:
            taken = 0
            for step in steps:
                start = Reading.now()
                await goal.take(step - taken, Turns())
                cost = between(start, Reading.now(), step - taken)
                taken = step
                copy = store_at(directory, step)
                store.database.copy_to(copy)
                found["steps"][str(step)] = {**cost, "stored": copy.stat().st_size / step}
            found["memory"] = peak_memory()
            found["ledger"] = told(base_url, "ledger")
            told(base_url, "ask")
            await goal.take(1, Turns())

        anyio.run(run)
    return {**found, "recalled": recalled(goal.tools.known)}


def store_at(directory: str, turns: int) -> Path:
    """Where `pursue` keeps the store as it was after so many turns."""
    return Path(directory) / f"after-{turns}.sqlite"


def going_on(*, base_url: str, store: str, turns: int) -> dict[str, float]:
    """Take `turns` turns more of the goal in a store.

    Returns what each cost after a few that are not counted, and the peak memory.
    """
    counted = Turns(WARM, WARM + turns)
    with _copy_of(store) as path, Store(path) as opened:
        anyio.run(partial(_the_goal(opened, base_url).take, WARM + turns, counted))
    cost = between(counted.readings[WARM], counted.readings[WARM + turns], turns)
    return {**cost, "memory": peak_memory()}


def resumed(*, base_url: str, store: str, times: int) -> dict[str, float]:
    """Wake the goal in a store again and again, each time up to its first request.

    Returns the median CPU and wall time from the opened store to that request, and the pages that a cold connection
    reads to load the goal's state.
    """
    readings, pages = [], []
    with _copy_of(store) as path:
        for _ in range(times + 1):
            pages.append(_pages_of_state(path))
            with Store(path) as opened:
                readings.append(_to_the_first_request(_the_goal(opened, base_url)))
    costs = readings[1:]  # The first has loaded what every process loads once.
    found = {name: median(cost[name] for cost in costs) for name in ("cpu_ms", "wall_ms")}
    known = [number for number in pages[1:] if number is not None]
    return found | ({"pages": median(known)} if known else {})


def _pages_of_state(path: str) -> float | None:
    """Pages that are read to load the goal's state, on a connection that has read none."""
    with Path(path).open("rb") as file:
        page_size = int.from_bytes(file.read(18)[16:], "big")
    with Store(path) as store:
        (goal,) = every(store)
        before = Reading.now()
        snapshot.snapshot(store, _known(goal).id, now=store.clock.now())
        after = Reading.now()
    return None if before.read is None or after.read is None else (after.read - before.read) / page_size


def _to_the_first_request(goal: Measured) -> dict[str, float]:
    asked: list[Reading] = []

    def note(event: Event) -> None:
        if event.kind == "asking":
            asked.append(Reading.now())

    def stop() -> Exit | None:
        return Exit(ExitReason.USER_ABORTED, "measured", {"control": "pause"}) if asked else None

    resume_goal(goal.store, goal.goal)
    start = Reading.now()
    anyio.run(partial(goal.wake, note, stop))
    return between(start, asked[0], 1)


def _the_goal(store: Store, base_url: str) -> Measured:
    (goal,) = every(store)
    return Measured.known(store, _known(goal), base_url)


def _known(goal: Goal | Unreadable) -> Goal:
    if isinstance(goal, Unreadable):
        raise Failed(goal.problem)
    return goal


@contextmanager
def _copy_of(store: str) -> Iterator[str]:
    """A copy of a store that nobody has open, for as long as the block lasts."""
    with own_directory() as directory:
        yield str(shutil.copy(store, Path(directory) / "goals.sqlite"))
