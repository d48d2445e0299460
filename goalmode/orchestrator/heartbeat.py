"""Signs of life: one thread and one transaction for all the leases that this process holds on one store."""

from __future__ import annotations

import threading
from collections.abc import Callable
from weakref import WeakValueDictionary

from goalmode.state import wakeups
from goalmode.state.store import Store
from goalmode.state.wakeups import Claimed

BEATS = 4
"""Renewals within the length of a lease: three may fail before it runs out."""

RETRY_SECONDS = 1.0
"""How soon a renewal that failed is tried again."""

MARGIN_SECONDS = 5.0
"""A lease that could not be renewed is given up this long before it runs out; a short one with a quarter of it left."""


_of_stores: WeakValueDictionary[int, Heartbeat] = WeakValueDictionary()


def heartbeat_of(store: Store) -> Heartbeat:
    """The one heartbeat of this process for `store`. It lives as long as somebody holds a lease with it."""
    return _of_stores.setdefault(id(store), Heartbeat(store))


class Heartbeat:
    """Renews leases until they are given back. A lost one is told through its `on_lost`, on the heartbeat's thread.

    Args:
        interval: seconds between two renewals; None for what the store's leases need.
    """

    def __init__(self, store: Store, interval: float | None = None) -> None:
        lease = store.lease_length / 1000
        self._store = store
        self._interval = lease / BEATS if interval is None else interval
        self._patience = lease - min(MARGIN_SECONDS, lease / BEATS)
        self._held: dict[Claimed, tuple[Callable[[], None], float]] = {}
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def hold(self, claimed: Claimed, on_lost: Callable[[], None]) -> None:
        with self._lock:
            self._held[claimed] = (on_lost, self._now())
            if self._thread is None:
                self._start()

    def release(self, claimed: Claimed) -> None:
        with self._lock:
            self._drop(claimed)

    def beat(self) -> bool:
        """Renew once; give up what is lost, and what could not be renewed for too long. False if nothing could be."""
        with self._lock:
            held = dict(self._held)
        renewed = True
        began = self._now()  # A lease runs from within the renewal, not from its end.
        try:
            lost = wakeups.renew(self._store, list(held))
        except Exception:  # noqa: BLE001 - whatever it is, the leases of all goals depend on the next beat
            renewed = False
            too_old = self._now() - self._patience
            lost = [claimed for claimed, (_, at) in held.items() if at <= too_old]
        else:
            with self._lock:
                for claimed in held.keys() & self._held.keys():
                    self._held[claimed] = (held[claimed][0], began)
        for claimed in lost:
            with self._lock:
                still_held = self._drop(claimed)
            if still_held:
                held[claimed][0]()
        return renewed

    def _drop(self, claimed: Claimed) -> bool:
        found = self._held.pop(claimed, None) is not None
        if not self._held:
            self._wake.set()
        return found

    def _start(self) -> None:
        self._wake.clear()
        self._thread = threading.Thread(target=self._run, name="goalmode heartbeat", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        wait = self._interval
        while not self._wake.wait(wait):
            wait = self._interval if self.beat() else min(RETRY_SECONDS, self._interval)
        with self._lock:
            self._thread = None
            if self._held:  # Taken between the last release and here.
                self._start()

    def _now(self) -> float:
        return self._store.clock.lease_ms() / 1000
