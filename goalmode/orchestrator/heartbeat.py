"""Signs of life: one thread and one transaction for all the leases that this process holds on one store."""

from __future__ import annotations

import threading
from collections.abc import Callable
from weakref import WeakKeyDictionary

from goalmode.errors import StoreError
from goalmode.state import wakeups
from goalmode.state.owner import LEASE_MS
from goalmode.state.store import Store
from goalmode.state.wakeups import Claimed

INTERVAL_SECONDS = LEASE_MS / 1000 / 4
"""How often leases are renewed: three renewals may fail before a lease runs out."""

MARGIN_SECONDS = 5.0
"""A lease that could not be renewed is given up this long before it runs out."""


_of_stores: WeakKeyDictionary[Store, Heartbeat] = WeakKeyDictionary()


def heartbeat_of(store: Store) -> Heartbeat:
    """The one heartbeat of this process for `store`."""
    return _of_stores.setdefault(store, Heartbeat(store))


class Heartbeat:
    """Renews leases until they are given back. A lost one is told through its `on_lost`, on the heartbeat's thread."""

    def __init__(self, store: Store, interval: float = INTERVAL_SECONDS) -> None:
        self._store, self._interval = store, interval
        self._held: dict[Claimed, tuple[Callable[[], None], float]] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def hold(self, claimed: Claimed, on_lost: Callable[[], None]) -> None:
        with self._lock:
            self._held[claimed] = (on_lost, self._now())
            if self._thread is None:
                self._wake.clear()
                self._thread = threading.Thread(target=self._run, name="goalmode heartbeat", daemon=True)
                self._thread.start()

    def release(self, claimed: Claimed) -> None:
        with self._lock:
            self._held.pop(claimed, None)
            if not self._held:
                self._wake.set()

    def beat(self) -> None:
        """Renew once; give up what is lost, and what could not be renewed for too long."""
        with self._lock:
            held = dict(self._held)
        try:
            lost = wakeups.renew(self._store, list(held))
        except StoreError:
            too_old = self._now() - (LEASE_MS / 1000 - MARGIN_SECONDS)
            lost = [claimed for claimed, (_, renewed) in held.items() if renewed <= too_old]
        else:
            with self._lock:
                for claimed in held.keys() & self._held.keys():
                    self._held[claimed] = (held[claimed][0], self._now())
        for claimed in lost:
            self.release(claimed)
            held[claimed][0]()

    def _run(self) -> None:
        while not self._wake.wait(self._interval):
            self.beat()
        with self._lock:
            self._thread = None
            if self._held:  # Taken between the last release and here.
                self._wake.clear()
                self._thread = threading.Thread(target=self._run, name="goalmode heartbeat", daemon=True)
                self._thread.start()

    def _now(self) -> float:
        return self._store.clock.lease_ms() / 1000
