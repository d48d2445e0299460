"""The clock on the wall is set back ten years and on thirty, in the middle of a wakeup of a process that lives on."""

from __future__ import annotations

from pathlib import Path

from freezegun import freeze_time

from goalmode.state import goals, wakeups
from goalmode.state.invariants import check
from goalmode.state.store import Store
from tests.state.builders import claim, close, new_goal, rows, take_turn, try_claim
from tests.stores import Stores


def test_a_wakeup_does_not_go_by_the_clock_on_the_wall(new_stores: Stores, tmp_path: Path) -> None:
    """Its lease neither ends nor becomes endless; turns, signs of life and the ending are stored as ever."""
    url = new_stores.new(tmp_path / "goals.sqlite")
    with freeze_time("2030-01-01") as wall, Store(url) as store, Store(url) as other:
        goal = new_goal(store)
        claimed = claim(store, goal)
        for turn, year in enumerate(("2020", "2050", "2030"), 1):
            wall.move_to(f"{year}-01-01")
            with other.reading() as connection:
                running = wakeups.open_wakeup(connection, goal.id)
            assert running is not None
            assert not other.is_void(running.lease)
            assert try_claim(other, goals.get(other, goal.id)) is None
            assert wakeups.renew(store, [claimed]) == []
            take_turn(store, claimed, turn)
        wall.move_to("2020-01-01")
        close(store, claimed)

        assert goals.get(store, goal.id).spent.turns == 3
        assert rows(store, "SELECT exit_reason FROM wakeups") == ["MAX_TURNS_EXCEEDED"]
        assert check(store).findings == ()
        claim(other, goals.get(other, goal.id))
