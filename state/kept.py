"""An engine that keeps its connections at hand: to lend one and take it back costs more than a transaction."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import TimeoutError


class KeptEngine(sa.Engine):
    """Threads may share it. A connection in which anything failed is not kept, but closed: give it a `NullPool`.

    Args:
        most: transactions at once; further threads wait for their turn.
        wait_seconds: how long they do.
    """

    def __init__(self, *given: Any, most: int, wait_seconds: float, **more: Any) -> None:
        super().__init__(*given, **more)
        self._idle: list[sa.Connection] = []
        self._most, self._wait_seconds = most, wait_seconds
        self._turns = threading.Semaphore(most)
        self._open = True

    @contextmanager
    def begin(self) -> Iterator[sa.Connection]:
        """One transaction.

        Raises:
            TimeoutError: SQLAlchemy's; the others took too long.
        """
        if not self._turns.acquire(timeout=self._wait_seconds):
            raise TimeoutError(f"{self._most} transactions have not ended in {self._wait_seconds:g} seconds")
        try:
            with self._transaction() as connection:
                yield connection
        finally:
            self._turns.release()

    @contextmanager
    def _transaction(self) -> Iterator[sa.Connection]:
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self.connect()
        try:
            with connection.begin():
                yield connection
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        if not self._open:
            self._close_idle()

    def dispose(self, close: bool = True) -> None:
        """Close the connections that nobody uses; the others are closed as they come back."""
        self._open = False
        self._close_idle()
        super().dispose(close)

    def _close_idle(self) -> None:
        with suppress(IndexError):
            while True:
                self._idle.pop().close()
