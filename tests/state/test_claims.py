"""Claiming a wakeup: exactly one gets it, and only as long as the goal is what the context was rendered from."""

from __future__ import annotations

import threading
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Control, Goal
from goalmode.errors import StoreError
from goalmode.state import goals, wakeups
from goalmode.state import tables as t
from goalmode.state.goals import Edit
from goalmode.state.owner import LEASE_MS, Owner
from goalmode.state.store import Store
from goalmode.testing import ManualClock
from tests import stores
from tests.state.builders import CONTEXT, RESERVE, claim, close, new_goal, rows, take_turn, try_claim
from tests.state.processes import another
from tests.stores import Stores


def test_a_claim_stores_wakeup_context_and_reservation_at_once(store: Store, clock: ManualClock) -> None:
    """One commit: the grown fence, the owner, the lease, the context and what the first call may cost."""
    goal = new_goal(store)

    claimed = claim(store, goal)

    assert (claimed.goal, claimed.seq, claimed.fence) == (goal.id, 1, 1)
    lease, own, *reserved = rows(
        store, "SELECT lease_ms, owner, reserved_input, reserved_output FROM wakeups"
    )[0]
    assert (lease, own, reserved) == (clock.lease_ms() + LEASE_MS, store.owner.name, [400, 200])
    assert rows(store, "SELECT tokens, n FROM contexts") == [(100, 0)]
    assert goals.get(store, goal.id).spent.wakeups == 1


def test_a_goal_that_somebody_has_cannot_be_claimed(store: Store) -> None:
    """B48: the second claim gets nothing and changes nothing."""
    goal = new_goal(store)
    claim(store, goal)

    assert try_claim(store, goal) is None
    assert rows(store, "SELECT seq FROM wakeups") == [1]
    assert goals.get(store, goal.id).fence == 1


@pytest.mark.parametrize(
    "status",
    [s for s in GoalStatus if s is not GoalStatus.ACTIVE],
)
def test_only_an_active_goal_can_be_claimed(store: Store, status: GoalStatus) -> None:
    """Every other status refuses."""
    goal = new_goal(store)
    with store.writing() as connection:
        connection.execute(t.goals.update().values(status=status))

    assert try_claim(store, goal) is None


def test_a_claim_is_superseded_by_an_edit(store: Store, clock: ManualClock) -> None:
    """A context rendered from another revision than the goal now has starts no wakeup."""
    stale = new_goal(store)
    goals.edit(store, stale, Edit(stale.revision, "Write two reports."), now=clock.now())

    claimed = wakeups.claim(
        store, stale, seq=1, context=CONTEXT, reserve=RESERVE, counted=True, now=clock.now()
    )

    assert claimed is None
    assert rows(store, "SELECT count(*) FROM wakeups UNION ALL SELECT count(*) FROM contexts") == [0, 0]
    assert goals.get(store, stale.id).spent.wakeups == 0


def test_a_claim_is_superseded_by_an_earlier_wakeup(store: Store) -> None:
    """A context rendered before another wakeup ran is stale, although the goal is free again."""
    stale = new_goal(store)
    close(store, claim(store, stale))

    again = wakeups.claim(
        store, stale, seq=1, context=CONTEXT, reserve=RESERVE, counted=True, now=store.clock.now()
    )

    assert again is None


def test_a_claim_is_refused_while_a_stop_is_asked_for(store: Store) -> None:
    """B118: between a user's stop and its effect no wakeup starts."""
    goal = new_goal(store)
    with store.writing() as connection:
        connection.execute(t.goals.update().values(control=Control.PAUSE))

    assert try_claim(store, goal) is None


def test_threads_that_race_for_a_goal_get_it_once(store: Store) -> None:
    """Of eight threads with the same context exactly one has the goal."""
    goal = new_goal(store)
    start, won = threading.Barrier(8), []

    def race() -> None:
        start.wait()
        claimed = wakeups.claim(
            store, goal, seq=1, context=CONTEXT, reserve=RESERVE, counted=True, now=store.clock.now()
        )
        if claimed is not None:
            won.append(claimed)

    threads = [threading.Thread(target=race) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(won) == 1
    assert rows(store, "SELECT fence FROM goals") == [1]


def racer(pipe: Connection, path: str, goal: Goal) -> None:
    with Store(path) as store:
        pipe.send("ready")
        pipe.recv()
        claimed = wakeups.claim(
            store, goal, seq=1, context=CONTEXT, reserve=RESERVE, counted=True, now=store.clock.now()
        )
        pipe.send(claimed)


def test_processes_that_race_for_a_goal_get_it_once(store: Store) -> None:
    """B48: of three processes exactly one has the goal, and the row names it."""
    goal, path = new_goal(store), store.url
    with another(racer, path, goal) as a, another(racer, path, goal) as b, another(racer, path, goal) as c:
        others = (a, b, c)
        for other in others:
            assert other.hear() == "ready"
        for other in others:
            other.tell()
        won = {other.pid: claimed for other in others if (claimed := other.hear()) is not None}

        assert len(won) == 1
        assert rows(store, "SELECT pid FROM wakeups") == list(won)


def opener(pipe: Connection, path: str) -> None:
    pipe.send("ready")
    pipe.recv()
    try:
        with Store(path) as store:
            pipe.send(new_goal(store).uid)
    except StoreError as error:
        pipe.send(error)


def test_processes_that_make_one_store_at_the_same_time_all_get_it(
    new_stores: Stores, tmp_path: Path
) -> None:
    """The first use of a store from several processes at once loses nobody's goal."""
    url = new_stores.nothing(tmp_path / "fresh.sqlite")
    with another(opener, url) as a, another(opener, url) as b, another(opener, url) as c:
        others = (a, b, c)
        for other in others:
            assert other.hear() == "ready"
        for other in others:
            other.tell()
        made = [other.hear() for other in others]

    assert sorted(stores.rows(url, "SELECT uid FROM goals")) == sorted(made)


def test_two_open_wakeups_of_a_goal_cannot_be_stored(store: Store) -> None:
    """The schema itself forbids it, whatever the code does."""
    claim(store, new_goal(store))
    columns = [c.name for c in t.wakeups.columns if c.name not in ("id", "seq", "fence")]
    listed = ", ".join(columns)

    with pytest.raises(StoreError, match=r"(?i)unique"), store.writing() as connection:
        connection.exec_driver_sql(
            f"INSERT INTO wakeups (seq, fence, {listed}) SELECT 2, 2, {listed} FROM wakeups"
        )


def test_a_lease_lasts_a_minute_on_the_lease_clock(store: Store, clock: ManualClock) -> None:
    """B50: a living owner elsewhere keeps its goal for 60 s of the lease's clock, whatever the wall clock says."""
    goal = new_goal(store)
    claim(store, goal)
    with store.reading() as connection:
        running = wakeups.open_wakeup(connection, goal.id)
    assert running is not None
    elsewhere = replace(store.owner, host_label="elsewhere")

    clock.advance(LEASE_MS / 1000, wall=-7_200)
    assert not running.lease.is_void(clock.lease_ms(), elsewhere)

    clock.advance(0.001)
    assert running.lease.is_void(clock.lease_ms(), elsewhere)


def test_every_commit_of_a_wakeup_renews_its_lease(store: Store, clock: ManualClock) -> None:
    """The guard is a renewal: a wakeup that writes needs no other sign of life."""
    claimed = claim(store, new_goal(store))
    clock.advance(50)

    take_turn(store, claimed, 1)

    assert rows(store, "SELECT lease_ms FROM wakeups") == [clock.lease_ms() + LEASE_MS]


def test_the_owner_is_this_process(store: Store) -> None:
    """Host label, boot, pid and start time are stored, so that its death can be seen."""
    claim(store, new_goal(store))

    found = rows(store, "SELECT owner, host_label, pid, pid_start, boot_id FROM wakeups")[0]

    assert Owner(*found) == Owner.current()
