"""A store whose process dies at one of its commits, or in one of its tools: what would follow is never written."""

from __future__ import annotations

import sys
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
    """Where a process ends: `before` or `after` its commit number `at`, or `within` its tool number `at`, from 0."""

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
            self.dead = True
            raise Died
