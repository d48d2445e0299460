"""Events beside the turns: which wakeup each belongs to, in this store and in any other."""

from __future__ import annotations

import pytest

from goalmode.domain.goal import Goal
from goalmode.state import events, outside, transfer
from goalmode.state.store import Store
from goalmode.state.transfer import Left
from goalmode.state.wakeups import Claimed
from tests.state.builders import CONTEXT, RESERVE, claim, close, new_goal, rows

GONE = {"name": "files", "problem": "it is gone", "tools": 0}


@pytest.fixture
def second(store: Store) -> Goal:
    """A goal whose wakeups have other ids than numbers."""
    close(store, claim(store, new_goal(store)))
    return new_goal(store)


def begins_with(store: Store, claimed: Claimed, *servers: dict[str, object]) -> None:
    now = store.clock.now()
    outside.render_again(store, claimed, CONTEXT, reserve=RESERVE, inbox_seen=0, servers=servers, now=now)


def test_every_kind_names_its_wakeup_by_number(store: Store, second: Goal) -> None:
    """Also in a document: an id means nothing in another store."""
    claimed = claim(store, second)
    assert claimed.wakeup != claimed.seq

    begins_with(store, claimed, GONE)
    events.fenced(store, claimed, store.clock.now())

    assert rows(store, "SELECT kind, wakeup FROM events ORDER BY id") == [("servers", 1), ("fenced", 1)]
    with store.reading() as connection:
        document = transfer.read(connection, second.id, left=Left("INTERRUPTED", ""))
    assert [(event["kind"], event["wakeup"]) for event in document["events"]] == [
        ("servers", 1),
        ("fenced", 1),
    ]


def test_each_wakeup_has_its_own_servers(store: Store, second: Goal) -> None:
    """Those that it was rendered with last; a wakeup of the same number of another goal has none of them."""
    claimed = claim(store, second)
    begins_with(store, claimed)
    begins_with(store, claimed, GONE)
    close(store, claimed)
    later = claim(store, second)

    with store.reading() as connection:
        assert outside.servers_of(connection, claimed.wakeup) == [GONE]
        assert outside.servers_of(connection, later.wakeup) == []
        assert outside.servers_of(connection, 1) == []
