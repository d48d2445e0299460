"""Signs of life for all leases of a process, and what happens when there can be none."""

from __future__ import annotations

import gc
import threading
import weakref
from pathlib import Path

import pytest

from goalmode.errors import StoreBusy
from goalmode.orchestrator.heartbeat import MARGIN_SECONDS, Heartbeat, heartbeat_of
from goalmode.state import wakeups
from goalmode.state.owner import LEASE_MS
from goalmode.state.store import Store
from goalmode.state.wakeups import Claimed
from goalmode.testing import ManualClock
from tests.state.builders import claim, new_goal, rows
from tests.state.processes import until


@pytest.fixture
def claims(store: Store) -> list[Claimed]:
    return [claim(store, new_goal(store)) for _ in range(2)]


@pytest.fixture
def still(store: Store) -> Heartbeat:
    """It beats only when it is told to."""
    return Heartbeat(store, interval=3_600)


def busy(*_: object) -> list[Claimed]:
    raise StoreBusy("locked")


def test_one_beat_renews_every_lease(
    store: Store, still: Heartbeat, claims: list[Claimed], clock: ManualClock
) -> None:
    """All leases of the process, to a minute from now."""
    for claimed in claims:
        still.hold(claimed, lambda: pytest.fail("lost"))
    clock.advance(50)

    assert still.beat()

    assert rows(store, "SELECT lease_ms FROM wakeups") == [clock.lease_ms() + LEASE_MS] * 2


def test_only_the_lost_one_is_told(
    store: Store, still: Heartbeat, claims: list[Claimed], clock: ManualClock
) -> None:
    """Once; the other goes on."""
    told: list[int] = []
    for number, claimed in enumerate(claims):
        still.hold(claimed, lambda number=number: told.append(number))  # type: ignore[misc]
    rows(store, "UPDATE wakeups SET exit_reason = 'INTERRUPTED' WHERE id = ?", claims[0].wakeup)
    clock.advance(20)

    still.beat()
    still.beat()

    assert told == [0]
    assert rows(store, "SELECT lease_ms FROM wakeups WHERE exit_reason IS NULL") == [
        clock.lease_ms() + LEASE_MS
    ]


def test_a_lease_that_was_given_back_is_not_told_as_lost(
    store: Store, still: Heartbeat, claims: list[Claimed]
) -> None:
    """A beat that overtakes a close finds the wakeup closed, and says nothing to it."""
    told: list[str] = []
    still.hold(claims[0], lambda: told.append("lost"))
    renew = wakeups.renew

    def overtaken(store: Store, held: list[Claimed]) -> list[Claimed]:
        rows(store, "UPDATE wakeups SET exit_reason = 'YIELDED'")
        still.release(claims[0])
        return renew(store, held)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wakeups, "renew", overtaken)
        still.beat()

    assert told == []


def test_what_cannot_be_renewed_is_given_up_before_it_runs_out(
    still: Heartbeat, claims: list[Claimed], clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B53: with the store locked, tools end at the lease less 5 s, not after somebody else could have the goal."""
    told: list[str] = []
    still.hold(claims[0], lambda: told.append("lost"))
    monkeypatch.setattr(wakeups, "renew", busy)

    clock.advance(LEASE_MS / 1000 - MARGIN_SECONDS - 0.1)
    assert not still.beat()
    assert told == []

    clock.advance(0.1)
    assert not still.beat()
    assert told == ["lost"]


def test_a_short_lease_is_given_up_with_a_quarter_of_it_left(
    store: Store, monkeypatch: pytest.MonkeyPatch, clock: ManualClock
) -> None:
    """Also where the lease is shorter than the margin of a long one; and it is renewed four times in its length."""
    store.lease_length = 2_000
    told: list[str] = []
    still = Heartbeat(store, interval=3_600)
    still.hold(claim(store, new_goal(store)), lambda: told.append("lost"))
    assert rows(store, "SELECT lease_ms FROM wakeups") == [clock.lease_ms() + 2_000]
    monkeypatch.setattr(wakeups, "renew", busy)

    clock.advance(1.4)
    assert not still.beat()
    assert told == []

    clock.advance(0.1)
    assert not still.beat()
    assert told == ["lost"]


def test_a_store_that_is_free_again_in_time_costs_nothing(
    store: Store, still: Heartbeat, claims: list[Claimed], clock: ManualClock
) -> None:
    """Failed beats are no loss as long as one gets through."""
    still.hold(claims[0], lambda: pytest.fail("lost"))
    for _ in range(4):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(wakeups, "renew", busy)
            clock.advance(40)
            assert not still.beat()
        clock.advance(10)
        assert still.beat()

    assert rows(store, "SELECT max(lease_ms) FROM wakeups") == [clock.lease_ms() + LEASE_MS]


def test_the_thread_lives_as_long_as_a_lease_is_held(
    store: Store, claims: list[Claimed], clock: ManualClock
) -> None:
    """One thread for all; it ends with the last release and starts again with the next hold."""
    heartbeat = Heartbeat(store, interval=0.01)
    others = set(threading.enumerate())  # Of which some may end meanwhile.

    def threads() -> int:
        return len(set(threading.enumerate()) - others)

    for claimed in claims:
        heartbeat.hold(claimed, lambda: pytest.fail("lost"))
    assert threads() == 1

    clock.advance(10)
    until(
        lambda: rows(store, "SELECT min(lease_ms) FROM wakeups") == [clock.lease_ms() + LEASE_MS],
        what="renewed",
    )
    for claimed in claims:
        heartbeat.release(claimed)
    until(lambda: threads() == 0, what="ended")

    heartbeat.hold(claims[0], lambda: pytest.fail("lost"))
    assert threads() == 1
    heartbeat.release(claims[0])
    until(lambda: threads() == 0, what="ended again")


def test_holding_again_at_once_keeps_the_thread_beating(
    store: Store, claims: list[Claimed], clock: ManualClock
) -> None:
    """A release and a hold in one breath leave no lease without signs of life."""
    heartbeat = Heartbeat(store, interval=0.01)
    for _ in range(20):
        heartbeat.hold(claims[0], lambda: pytest.fail("lost"))
        heartbeat.release(claims[0])
        heartbeat.hold(claims[0], lambda: pytest.fail("lost"))
        clock.advance(5)
        until(
            lambda: (
                rows(store, "SELECT lease_ms FROM wakeups WHERE id = ?", claims[0].wakeup)
                == [clock.lease_ms() + LEASE_MS]
            ),
            what="renewed",
        )
        heartbeat.release(claims[0])


def test_a_process_has_one_heartbeat_for_a_store(store: Store, tmp_path: Path) -> None:
    """Another store has its own, and one that nobody uses is forgotten."""
    first = heartbeat_of(store)
    assert heartbeat_of(store) is first
    with Store(str(tmp_path / "other.sqlite")) as other:
        assert heartbeat_of(other) is not first

    forgotten = weakref.ref(first)
    del first
    gc.collect()
    assert forgotten() is None


def test_a_renewal_counts_from_when_it_began(
    store: Store, still: Heartbeat, claims: list[Claimed], clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit that takes its time makes no lease longer: it is given up before somebody else may take the goal."""
    told: list[str] = []
    still.hold(claims[0], lambda: told.append("lost"))
    renew = wakeups.renew

    def slow(store: Store, held: list[Claimed]) -> list[Claimed]:
        lost = renew(store, held)
        clock.advance(10)
        return lost

    monkeypatch.setattr(wakeups, "renew", slow)
    assert still.beat()
    monkeypatch.setattr(wakeups, "renew", busy)

    clock.advance(LEASE_MS / 1000 - MARGIN_SECONDS - 11)
    still.beat()
    assert told == []
    clock.advance(1)
    still.beat()
    assert told == ["lost"]


def test_whatever_goes_wrong_the_next_beat_comes(
    store: Store, still: Heartbeat, claims: list[Claimed], clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that nobody foresaw ends no thread on which all leases of the process depend; it counts as a failed one."""

    def broken(*_: object) -> list[Claimed]:
        raise OSError("too many open files")

    told: list[str] = []
    still.hold(claims[0], lambda: told.append("lost"))
    monkeypatch.setattr(wakeups, "renew", broken)

    assert not still.beat()
    clock.advance(LEASE_MS / 1000 - MARGIN_SECONDS)
    assert not still.beat()

    assert told == ["lost"]
