"""The pages of a goal of 10,000 turns read as many rows, and hold as much, as those of one of 1,200."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.inspection.lives import live, reads
from tests.web.conftest import Pages

pytestmark = pytest.mark.long

PATHS = (
    "",
    "?wakeups=3",
    "/wakeups.json",
    "/turns",
    "/turns?page=4",
    "/turns?wakeup=7",
    "/turns/300/1",
    "/contexts/300",
    "/contexts/300?diff=7",
    "/abort",
)


@pytest.mark.sqlite
def test_no_page_reads_more_of_a_long_life(open_pages: Callable[..., Pages]) -> None:
    """Row for row the same statements, and no page that grows with the goal; nor does the list."""
    seen: list[dict[str, tuple[list[int], int]]] = []
    for wakeups in (600, 5_000):
        pages = open_pages()
        live(pages.world.store, pages.world.goal, wakeups=wakeups, turns=2)
        pages.page()
        found = {}
        for path in (*(f"{pages.goal}{path}" for path in PATHS), f"{pages.keys.base}/"):
            assert pages.stores._kept is not None
            with reads(pages.stores._kept.store) as read:
                response = pages.get(path)
            assert response.status_code == 200, response.text
            found[path.removeprefix(pages.goal).replace(pages.keys.base, "list")] = (
                read.rows,
                len(response.text),
            )
        seen.append(found)
    short, long = seen

    assert {path: rows for path, (rows, _) in long.items()} == {
        path: rows for path, (rows, _) in short.items()
    }
    assert max(max(rows) for rows, _ in long.values()) <= 1_000
    assert [path for path in long if long[path][1] > 1.1 * short[path][1] + 500] == []
