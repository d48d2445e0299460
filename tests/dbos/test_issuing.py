"""Reapers at the same moment: what one of them issues, no other finds."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from goalmode import Store
from goalmode.state import deliveries
from tests.dbos.conftest import Fleet

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

REAPERS = 6
GOALS = 40


def test_many_reapers_issue_each_goal_once(fleet: Fleet) -> None:
    """All of them look at the same moment, again and again; some hold their transaction open for a while."""
    for _ in range(GOALS):
        fleet.goal()
    label = fleet.store.owner.host_label
    at_once = threading.Barrier(REAPERS)

    def reap(number: int) -> list[tuple[int, int]]:
        def slowly(connection: Any, _: Any) -> None:
            connection.exec_driver_sql("SELECT pg_sleep(0.002)")

        with Store(fleet.url) as store:
            found = []
            for _ in range(5):
                at_once.wait(120)
                found += deliveries.issue(store, [label], slowly, ahead=7 * (number + 1))
            return [(one.goal, one.number) for one in found]

    with ThreadPoolExecutor(REAPERS) as threads:
        issued = [one for found in threads.map(reap, range(REAPERS)) for one in found]

    assert Counter(issued) == {(goal.id, 1): 1 for goal in fleet.goals}
    assert fleet.rows("SELECT DISTINCT delivery FROM goals") == [1]
