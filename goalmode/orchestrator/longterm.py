"""What one wakeup does with long-term memory, and the ending that stands while it settles. Every write is fenced."""

from __future__ import annotations

from collections.abc import Callable

from goalmode.domain.goal import Goal
from goalmode.domain.memory import Memory, MemoryKind, Remembered, SettlementState
from goalmode.domain.messages import Usage
from goalmode.domain.snapshot import Snapshot
from goalmode.state import goals, memory, settlement
from goalmode.state.settlement import Pending
from goalmode.state.store import Store
from goalmode.state.wakeups import Claimed


class LongTerm:
    """See `goalmode.loop.longterm.LongTerm`.

    Args:
        seen: what the wakeup began with; memories that are newer than it were shown to nobody here.
        turn: number of the turn that is being taken.
    """

    def __init__(self, store: Store, claimed: Claimed, seen: Snapshot, turn: Callable[[], int]) -> None:
        self._store, self._claimed, self._seen, self._turn = store, claimed, seen, turn
        self.held: Pending | None = None

    def goal(self) -> Goal:
        return goals.get(self._store, self._claimed.goal)

    def remember(self, kind: MemoryKind, text: str, replaces: str) -> Remembered:
        goal = self._seen.goal
        return memory.remember(
            self._store,
            self._claimed,
            kind,
            text,
            goal=goal.uid,
            workspace=goal.workspace,
            turn=self._turn(),
            replaces=replaces,
            shown=self._seen.memory_head,
            now=self._store.clock.now(),
        )

    def recall(self, query: str) -> tuple[Memory, ...]:
        with self._store.reading() as connection:
            return memory.recall(connection, self._seen.goal.workspace, query)

    def current(self) -> tuple[Memory, ...]:
        with self._store.reading() as connection:
            goal = goals.read(connection, self._claimed.goal)
            return memory.current(connection, goal.workspace, goal.objective)

    def start(self) -> None:
        settlement.start(self._store, self._claimed, now=self._store.clock.now())

    def hold(self, pending: Pending) -> None:
        settlement.hold(self._store, self._claimed, pending, now=self._store.clock.now())
        self.held = pending

    def attempt(self, usage: Usage) -> None:
        settlement.attempt(self._store, self._claimed, usage)

    def finish(self, state: SettlementState) -> None:
        settlement.finish(self._store, self._claimed, state, now=self._store.clock.now())

    def withdraw(self) -> None:
        settlement.withdraw(self._store, self._claimed)
        self.held = None
