"""An engine that keeps its connections at hand: to lend one and take it back costs more than a transaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import sqlalchemy as sa


class KeptEngine(sa.Engine):
    """Threads may share it. A connection in which anything failed is given back to the pool, and not kept."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._idle: list[sa.Connection] = []
        self._open = True

    @contextmanager
    def begin(self) -> Iterator[sa.Connection]:
        """One transaction."""
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
