"""Many goals: what claiming, listing and showing one costs beside many others, and many that run at once."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from statistics import median
from typing import Any

import anyio

from goalmode.bench.measure import Failed, Reading, between, peak_memory
from goalmode.bench.path import NARROW, Measured, Turns
from goalmode.domain.exits import Exit, ExitReason
from goalmode.inspection.listing import listing
from goalmode.inspection.show import show
from goalmode.orchestrator.skip import Skip
from goalmode.orchestrator.wake import close_wakeup
from goalmode.scheduler.lookout import Lookout
from goalmode.state import goals
from goalmode.state.goals import new_uid
from goalmode.state.store import Store
from goalmode.wiring import begin_wakeup

NOBODY = "http://127.0.0.1:9/v1"
"""Of goals that make no request."""

_OF_A_GOAL = ("goal_revisions", "requirements", "deliverables", "protected_files")
_CONCURRENCY = 4
_LISTED = 50
_DUE = 1_000
"""Goals of a crowd that are due while a server looks at it again and again; the others are due a day later."""


def among(*, directory: str, count: int, times: int = 15) -> dict[str, float]:
    """In a store of `count` goals that are all due: CPU milliseconds to find what is due, to claim and close a goal, to
    list a page of goals, and to show one; then, with at most a thousand due, to look as a server does. Medians.
    """
    path = Path(directory) / f"{count}-goals.sqlite"
    with Store(str(path)) as store:
        first = Measured.new(store, directory, NOBODY).goal
    multiply(path, count)
    with Store(str(path)) as store:
        owner = store.owner.host_label
        lookout = Lookout(store, (owner,))
        middle = goals.get(store, (count + 1) // 2)
        _refuse_other_shape(show(store, first.id), show(store, middle.id))
        found = {
            "due": _cpu_ms(times, lambda: lookout.due((), _CONCURRENCY)),
            "claim": _cpu_ms(times, lambda: _claim_and_close(Measured.known(store, middle, NOBODY))),
            "list": _cpu_ms(times, lambda: listing(store, limit=_LISTED)),
            "show": _cpu_ms(times, lambda: show(store, middle.id)),
        }
        _postpone(path)
        return {**found, "look": _cpu_ms(times, lambda: (lookout.watch(), lookout.due((), _CONCURRENCY)))}


def multiply(path: Path, count: int) -> None:
    """Make the store's one goal `count`: its rows copied, each under a public id of its own.

    Creating them one by one would take minutes and store the same, which `among` holds against a goal that was created.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        columns = _columns(connection, "goals", "id", "uid")
        copied = f"INSERT INTO goals (uid, {columns}) SELECT ?, {columns} FROM goals WHERE id = 1"
        connection.executemany(copied, ((new_uid(),) for _ in range(count - 1)))
        for table in _OF_A_GOAL:
            columns = _columns(connection, table, "goal")
            own = f"(SELECT {columns} FROM {table} WHERE goal = 1)"
            connection.execute(
                f"INSERT INTO {table} (goal, {columns}) SELECT others.id, own.* "
                f"FROM {own} AS own, (SELECT id FROM goals WHERE id > 1) AS others"
            )
        connection.execute("COMMIT")


def _postpone(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        later = "strftime('%Y-%m-%d %H:%M:%f000', next_wakeup_at, '+1 day')"
        connection.execute(f"UPDATE goals SET next_wakeup_at = {later} WHERE id > {_DUE}")


def together(*, base_url: str, directory: str, count: int, turns: int) -> dict[str, float]:
    """Pursue `count` goals at once in this process, `turns` turns each. Returns what a turn cost, and the memory."""
    with Store(str(Path(directory) / f"{count}-at-once.sqlite")) as store:

        def new(quota: int) -> Measured:
            return Measured.new(store, directory, base_url, work_window=NARROW, max_turns=quota)

        measured = [new(turns) for _ in range(count)]
        readings: list[Reading] = []

        async def run() -> None:
            await new(5).wake(Turns())  # What every process loads once.
            readings.append(Reading.now())
            async with anyio.create_task_group() as group:
                for one in measured:
                    group.start_soon(one.wake, Turns())
            readings.append(Reading.now())

        anyio.run(run)
        taken = sum(goals.get(store, one.goal.id).spent.turns for one in measured)
        if taken != count * turns:
            raise Failed(f"{count} goals took {taken} turns, not {count * turns}")
        return {**between(readings[0], readings[1], taken), "memory": peak_memory()}


def _claim_and_close(measured: Measured) -> None:
    shop = measured.shop()
    wake = begin_wakeup(measured.store, shop.goal, profile=measured.profile, shop=shop, only_if_due=False)
    if isinstance(wake, Skip):
        raise Failed(f"the goal was not woken: {wake.detail}")
    close_wakeup(wake, Exit(ExitReason.MAX_TURNS_EXCEEDED, "measured"))


def _cpu_ms(times: int, action: Callable[[], Any]) -> float:
    """The median of several runs; the first, which loads what every process loads once, is not among them."""
    spent = []
    for _ in range(times + 1):
        start = time.process_time()
        action()
        spent.append((time.process_time() - start) * 1000)
    return median(spent[1:])


def _columns(connection: sqlite3.Connection, table: str, *without: str) -> str:
    """The table's columns but those, as they stand in a statement; copied by name, whatever the schema has more."""
    found = connection.execute(f"SELECT name FROM pragma_table_info('{table}')").fetchall()
    return ", ".join(f'"{name}"' for (name,) in found if name not in without)


def _refuse_other_shape(created: dict[str, Any], copied: dict[str, Any]) -> None:
    """A copy that is not what the created goal is would measure something else."""
    differ = [key for key in created if key != "id" and created[key] != copied[key]]
    if differ:
        raise Failed(f"a copied goal differs from a created one in {', '.join(differ)}")
