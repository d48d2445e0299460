"""What a server finds to do when it looks at the store: dead owners, due goals, defaults, and sources that came."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime

from goalmode.loop.ports import Event
from goalmode.orchestrator.sources import fire_what_came
from goalmode.scheduler.crowd import Crowd
from goalmode.state import due, wake_sources
from goalmode.state.due import Due
from goalmode.state.store import Store

LOOKED_AT = 500
"""Wake sources that one look asks the file system and the process table about; the next look goes on behind them."""


@dataclass
class Lookout:
    """Looks at one store, for the goals of some host labels. One look is a few statements, each with its index."""

    store: Store
    labels: Collection[str]
    crowd: Crowd = field(default_factory=Crowd)
    _beyond: int = field(default=0, init=False)
    _told: set[str] = field(default_factory=set, init=False)
    _untold: list[str] = field(default_factory=list, init=False)

    def watch(self) -> list[Event]:
        """Fire the sources that only looking tells of; returns what is to be told of it: what nobody can read, once."""
        with self.store.reading() as connection:
            found, faults, self._beyond = wake_sources.to_watch(
                connection, self.labels, beyond=self._beyond, limit=LOOKED_AT
            )
        self._note(faults)
        fired = fire_what_came(self.store, found)
        untold, self._untold = self._untold, []
        return [Event("store", {"detail": fault}) for fault in untold] + [
            Event("source", {"goal": f.open.uid, "source": f.open.source.label, "reason": f.reason})
            for f in fired
        ]

    def due(self, passing: Collection[int], limit: int, *, now: datetime | None = None) -> list[Due]:
        """Whom to wake, at most `limit`: first goals whose owner died, then those that have been due for longest.

        Where other servers are faster, some of the first are left to them.

        Args:
            now: what is due by then; None for the present.
        """
        now = self.store.clock.now() if now is None else now
        most = limit + self.crowd.depth
        abandoned, faults = due.abandoned(self.store, self.labels)
        self._note(faults)  # Told with the next look.
        dead = [one for one in abandoned if one.goal not in passing]
        asked = [one for one in due.defaults_due(self.store, self.labels, now) if one.goal not in passing]
        waiting = due.goals_due(self.store, self.labels, now, limit=most, passing=passing)
        oldest = sorted([*asked, *waiting], key=lambda one: (one.since or now, one.goal))
        return self.crowd.some([*dead, *oldest][:most], limit)

    def _note(self, faults: Collection[str]) -> None:
        """What nobody can read is told of once."""
        new = [fault for fault in faults if fault not in self._told]
        self._told.update(new)
        self._untold += new
