"""The store, open for reading as long as it stays the same, and for writing only where a form asks for a change."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from goalmode.domain.clock import Clock
from goalmode.domain.goal import Goal
from goalmode.domain.redact import Redactor
from goalmode.errors import StoreError, UnknownGoal
from goalmode.state import goals
from goalmode.state import reading as rows
from goalmode.state.store import Store

BUSY_SECONDS = 5.0
"""How long a page waits for a store that somebody else holds."""

KEPT_SECONDS = 30.0
"""How long the store is read without being opened anew, which is half of what a page costs. A store that another
goalmode has upgraded is noticed after that, one in whose place there is another file at once."""


@dataclass(frozen=True, slots=True)
class _Kept:
    """An open store, the file that it is, and when it was opened."""

    store: Store
    file: tuple[int, int] | None
    since: float


class Stores:
    """Where the goals are.

    Args:
        url: as for `Store`. redact: strikes secrets out of all that is stored and shown.
        learn: told of each goal that is looked at: it may name a key.
        clock: for tests.
    """

    def __init__(
        self,
        url: str | None,
        *,
        redact: Redactor,
        learn: Callable[[Goal], None] = lambda goal: None,
        clock: Clock | None = None,
    ) -> None:
        self._url, self.redact, self._learn, self._clock = url, redact, learn, clock
        self.name = rows.name_of(url)
        self._kept: _Kept | None = None
        self._lock = threading.Lock()

    def exist(self) -> bool:
        """Whether there is a store yet. Reading never makes one."""
        return rows.exists(self._url)

    @contextmanager
    def reading(self) -> Iterator[Store]:
        """The store, for reading.

        Raises:
            StoreError: there is none, or none that this goalmode can read.
        """
        try:
            yield self._to_read()
        except StoreError:
            self.close()
            raise

    @contextmanager
    def goal(self, uid: str) -> Iterator[tuple[Store, Goal]]:
        """A goal by its whole id, and its store, for reading.

        Raises:
            UnknownGoal: there is no such goal, or no store.
        """
        self._must_exist(uid)
        with self.reading() as store:
            yield store, self._find(store, uid)

    @contextmanager
    def goal_alone(self, uid: str, *, writing: bool = False) -> Iterator[tuple[Store, Goal]]:
        """The same in a store that is opened for this block alone: to write, or to follow a goal for long.

        Raises:
            UnknownGoal: there is no such goal, or no store.
        """
        self._must_exist(uid)
        with self._open(readonly=not writing) as store:
            yield store, self._find(store, uid)

    def close(self) -> None:
        """Let go of what is open. It is opened again when it is needed."""
        with self._lock:
            self._let_go()

    def _to_read(self) -> Store:
        with self._lock:
            kept, now = self._kept, time.monotonic()
            if kept is None or kept.file != _file(kept.store) or now - kept.since >= KEPT_SECONDS:
                self._let_go()
                store = self._open(readonly=True)
                kept = self._kept = _Kept(store, _file(store), now)
            return kept.store

    def _let_go(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.store.close()

    def _must_exist(self, uid: str) -> None:
        if not self.exist():
            raise UnknownGoal(f"no goal {uid!r}: there is no store at {self.name} yet")

    def _find(self, store: Store, uid: str) -> Goal:
        goal = goals.find(store, uid)
        if goal.uid != uid:
            raise UnknownGoal(f"no goal {uid!r} in {store.name}")
        self._learn(goal)
        return goal

    def _open(self, *, readonly: bool) -> Store:
        return Store(
            self._url, readonly=readonly, clock=self._clock, redact=self.redact, busy_seconds=BUSY_SECONDS
        )


def _file(store: Store) -> tuple[int, int] | None:
    """By which a file is known from another one in its place; None of a store on a server."""
    if store.path is None:
        return None
    try:
        found = store.path.stat()
    except OSError:
        return (0, 0)
    return found.st_dev, found.st_ino
