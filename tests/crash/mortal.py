"""A store whose process dies at one of its commits, or in one of its tools: what would follow is never written."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from goalmode.state.store import Store


class Died(BaseException):
    """The process is gone. No `except Exception` of the code that it ran in holds it back."""


@dataclass(frozen=True, slots=True)
class Death:
    """A point in a process's life, from 0: `begin`, `before` or `after` its commit number `at`, `within` its tool `at`.

    At `begin` the transaction is still to come; `before` is the last moment in it.
    """

    when: str
    at: int

    def __str__(self) -> str:
        return f"{self.when} {self.at}"


class MortalStore(Store):
    """Dies once, for good: whatever its process still does, such as clearing up, is done by nobody.

    Attributes:
        commits: the functions that have begun a transaction that writes, in order.
        tools: how many tools were run.
    """

    def __init__(self, url: str, death: Death | None = None, **options: Any) -> None:
        super().__init__(url, **options)
        self.commits: list[str] = []
        self.tools = 0
        self.dead = False
        self._death = death

    @contextmanager
    def writing(self, *, durable: bool = True) -> Iterator[sa.Connection]:
        self._must_live()
        number = len(self.commits)
        self.commits.append(sys._getframe(2).f_code.co_name)
        self._reach(Death("begin", number))
        with super().writing(durable=durable) as connection:
            yield connection
            self._reach(Death("before", number))
        self._reach(Death("after", number))

    @contextmanager
    def pulsing(self) -> Iterator[sa.Connection]:
        self._must_live()
        with super().pulsing() as connection:
            yield connection

    def in_tool(self) -> None:
        """A tool has done half of its work."""
        self._must_live()
        self.tools += 1
        self._reach(Death("within", self.tools - 1))

    def _must_live(self) -> None:
        if self.dead:
            raise Died

    def _reach(self, point: Death) -> None:
        if point == self._death:
            self._meet()

    def _meet(self) -> None:
        """The process dies here."""
        self.dead = True
        raise Died


class SleepingStore(MortalStore):
    """Its process is stopped at that point by SIGSTOP, or by `stop`, and goes on when it is told to.

    Never within a sign of life: whoever is stopped there holds the store's lock, which is a case of its own.
    """

    def __init__(self, url: str, death: Death | None = None, **options: Any) -> None:
        super().__init__(url, death, **options)
        self._between_beats = threading.Lock()

    @contextmanager
    def pulsing(self) -> Iterator[sa.Connection]:
        with self._between_beats, super().pulsing() as connection:
            yield connection

    def stop(self) -> None:
        with self._between_beats:
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(0.1)  # This thread may run on for a moment.

    def _meet(self) -> None:
        self.stop()
