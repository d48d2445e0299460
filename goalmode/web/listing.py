"""The page with all goals: how they stand, what they have used up, what waits for an answer."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from goalmode.domain.goal import Goal
from goalmode.inspection import listing, questions
from goalmode.state import goals
from goalmode.state.store import Store
from goalmode.web import figures
from goalmode.web.ask import Ask

PER_PAGE = 25
MAX_ASKED = 10
"""Open questions shown above the list."""


def index(ask: Ask) -> Response:
    """The list, newest first. Without a store there are no goals yet; reading makes none."""
    page = ask.number("page", 1) or 1
    if not ask.stores.exist():
        return ask.page("list.html", goals=[], asked=[], more_asked=0, page=page, more=False, now=None)
    with ask.stores.reading() as store:
        found, more = _rows(store, (page - 1) * PER_PAGE)
        asked = questions.open_everywhere(store)
        now = store.clock.now()
    return ask.page(
        "list.html",
        goals=found,
        asked=asked[:MAX_ASKED],
        more_asked=max(0, len(asked) - MAX_ASKED),
        page=page,
        more=more,
        now=now,
    )


def _rows(store: Store, offset: int) -> tuple[list[dict[str, Any]], bool]:
    """The goals of one page, and whether there are older ones."""
    found = listing.listing(store, limit=PER_PAGE + 1, offset=offset)
    known = {
        goal.uid: goal for goal in goals.every(store, limit=PER_PAGE, offset=offset) if isinstance(goal, Goal)
    }
    now = store.clock.now()
    rows: list[dict[str, Any]] = []
    for row in found[:PER_PAGE]:
        goal = known.get(row["id"])
        rows.append(
            {
                **row,
                "title": row.get("title", "") if goal is None else figures.heading(goal.objective),
                "spends": [] if goal is None else figures.spends(goal, now, only_limited=True),
                "until": figures.until(row.get("next_wakeup_at"), now),
                "unreadable": row["status"] == listing.UNREADABLE,
            }
        )
    return rows, len(found) > PER_PAGE
