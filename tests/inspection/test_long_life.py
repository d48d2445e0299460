"""A goal of 10,000 turns is looked at as quickly as one of 1,000: by the rows that are read, not by a clock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from goalmode.domain.goal import Goal
from goalmode.inspection import contexts, follow, listing, report, show, timeline, turns, why
from goalmode.state import spend
from goalmode.state.store import Store
from tests import stores
from tests.inspection.lives import Read, live, reads
from tests.orchestrator.builders import new_goal

pytestmark = [pytest.mark.sqlite, pytest.mark.long]

Lived = tuple[Store, Goal]

LOOKS: dict[str, Callable[[Store, Goal], Any]] = {
    "list": lambda store, goal: listing.listing(store, limit=50),
    "show": lambda store, goal: show.show(store, goal.id),
    "why": lambda store, goal: why.why(store, goal.id),
    "why, an old wakeup": lambda store, goal: why.why(store, goal.id, wakeup=1),
    "timeline": lambda store, goal: timeline.timeline(store, goal.id),
    "timeline, later": lambda store, goal: timeline.timeline(store, goal.id, offset=50),
    "turns, the newest": lambda store, goal: turns.turns(store, goal, limit=50, newest=True),
    "turns, a page": lambda store, goal: turns.turns(store, goal, limit=50, offset=100, full=True),
    "turns, one wakeup": lambda store, goal: turns.turns(store, goal, wakeup=7),
    "turns, those that come": lambda store, goal: follow.newer(store, goal, (499, 1)),
    "context": lambda store, goal: contexts.stored_contexts(store, goal, None),
    "report": lambda store, goal: report.report(store, goal.id),
}


@pytest.fixture(scope="module")
def lived(_stores: stores.Stores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Lived, Lived]]:
    """A goal of 1,200 turns and one of 10,000, two turns a wakeup."""
    root = tmp_path_factory.mktemp("lives")
    made = []
    for wakeups in (600, 5_000):
        store = Store(_stores.new(root / str(wakeups) / "goals.sqlite"))
        made.append((store, new_goal(store, root)))
        live(*made[-1], wakeups=wakeups, turns=2)
    yield made[0], made[1]
    for store, _ in made:
        store.close()


def seen(look: Callable[[Store, Goal], Any], one: Lived) -> Read:
    with reads(one[0]) as read:
        look(*one)
    assert read.rows
    return read


@pytest.mark.parametrize("name", LOOKS)
def test_no_more_rows_are_read_of_a_long_life(lived: tuple[Lived, Lived], name: str) -> None:
    """Every statement gives as many rows of the goal with eight times the turns."""
    short, long = (seen(LOOKS[name], one) for one in lived)

    assert long.rows == short.rows
    assert max(long.rows) <= 1_000


@pytest.mark.parametrize("name", LOOKS)
def test_the_database_does_no_more_either(
    lived: tuple[Lived, Lived], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By SQLite's own steps; but for the sums by purpose, one walk over the turns that takes 2 ms for 10,000."""
    monkeypatch.setattr(spend, "by_purpose", lambda connection, goal: [])
    short, long = (seen(LOOKS[name], one) for one in lived)

    assert long.steps <= 1.25 * short.steps


def test_a_walk_is_noticed(lived: tuple[Lived, Lived]) -> None:
    """The tests above would see one: all wakeups, and the sums by purpose."""
    short, long = (
        seen(lambda store, goal: timeline.wakeups(store, goal.id, limit=700), one) for one in lived
    )
    assert (max(short.rows), max(long.rows)) == (600, 700)

    short, long = (seen(LOOKS["show"], one) for one in lived)
    assert long.steps > 2 * short.steps


def test_show_says_how_many_wakeups_there_are(lived: tuple[Lived, Lived]) -> None:
    """The newest, oldest first, and the number of all; the report says how many it leaves out."""
    store, goal = lived[1]
    found = show.show(store, goal.id)

    assert [w["seq"] for w in found["wakeups"]] == list(range(4_951, 5_001))
    assert found["wakeups_in_all"] == 5_000
    assert report.report(store, goal.id)["wakeups_left_out"] == 4_500


@pytest.mark.parametrize("page", [1, 3, 7, 200])
def test_all_turns_come_a_page_at_a_time(
    lived: tuple[Lived, Lived], monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    """Each once and in order, whatever the pages; no statement reads more than a page."""
    monkeypatch.setattr(turns, "PAGE", page)
    store, goal = lived[0]
    every = range(1_200) if page > 100 else range(5, 29)
    window: dict[str, Any] = {} if page > 100 else {"offset": 5, "limit": 24}
    with reads(store) as read:
        found = [(one["wakeup"], one["seq"]) for one in turns.each(store, goal, **window)]

    assert found == [(n // 2 + 1, n % 2 + 1) for n in every]
    assert max(read.rows) <= max(page, turns.LOOK_BACK)
