"""A goal as it runs, as a stream of server-sent events: its turns, and that something else on its page has changed.

The store is read again and again; whoever runs the goal knows nothing of it. A browser that goes away ends its stream,
one that comes back names the last turn that it has (`Last-Event-ID`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import anyio
from anyio import to_thread
from starlette.responses import Response, StreamingResponse

from goalmode.domain.goal import Goal
from goalmode.errors import GoalmodeError
from goalmode.inspection.seen import runs
from goalmode.state import goals, reading
from goalmode.state.reading import WakeupSeen
from goalmode.state.store import Store
from goalmode.state.tables import TurnState
from goalmode.web import turns
from goalmode.web.ask import Ask
from goalmode.web.refusals import Refused
from goalmode.web.words import Words

POLL_SECONDS = 0.5
QUIET_SECONDS = 15.0
"""After so long without an event, a comment shows that the stream lives."""

RETRY_MILLISECONDS = 2_000
AT_ONCE = 50
"""Turns that are sent at once."""

MAX_STREAMS = 32
"""At the same time; each costs a look into the store twice a second."""

Place = tuple[int, int]
"""Of a turn: its wakeup's number and its own."""

_PLACE = re.compile(r"(\d{1,12})\.(\d{1,12})")


@dataclass
class Streams:
    """The streams of this process.

    Attributes:
        stopping: whether the process is about to end; streams end with it.
    """

    stopping: Callable[[], bool] = lambda: False
    open: int = 0

    async def answer(self, ask: Ask) -> Response:
        """Raises UnknownGoal: there is no such goal. Refused: there are too many streams already."""
        if self.open >= MAX_STREAMS:
            raise Refused(503, "refused.streams")
        given = ask.request.headers.get("last-event-id") or ask.request.query_params.get("after", "")
        await to_thread.run_sync(_must_exist, ask)
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        if ask.request.method == "HEAD":
            return Response(headers=headers, media_type="text/event-stream")
        return StreamingResponse(self._events(ask, place_of(given)), 200, headers, "text/event-stream")

    async def _events(self, ask: Ask, place: Place) -> AsyncIterator[str]:
        self.open += 1
        try:
            yield f"retry: {RETRY_MILLISECONDS}\n\n"
            quiet = 0.0
            with ExitStack() as opened:
                alone = partial(opened.enter_context, ask.stores.goal_alone(ask.uid))
                store, goal = await to_thread.run_sync(alone)
                mark = ask.request.query_params.get("mark", "")
                watch = Watch(store, goal, place, _drawn(ask), mark)
                while not self.stopping():
                    found = await to_thread.run_sync(watch.look)
                    for event in found:
                        yield event
                    quiet = 0.0 if found else quiet + POLL_SECONDS
                    if quiet >= QUIET_SECONDS:
                        yield ": still here\n\n"
                        quiet = 0.0
                    await anyio.sleep(POLL_SECONDS)
        except GoalmodeError:
            return  # The browser comes back, and is told what is wrong.
        finally:
            self.open -= 1


@dataclass
class Watch:
    """What of a goal has been sent.

    Attributes:
        place: the newest turn that nothing can change any more.
        drawn: a turn as HTML.
        mark: of the goal as it was last seen (`mark_of`).
    """

    store: Store
    goal: Goal
    place: Place
    drawn: Callable[[dict[str, Any]], str]
    mark: str
    _sent: dict[Place, str] = field(default_factory=dict)

    def look(self) -> list[str]:
        """The events since the last look.

        Raises:
            UnknownGoal: the goal was deleted.
        """
        goal, last = _now(self.store, self.goal.id)
        running = last.seq if last is not None and runs(self.store, last) else None
        events, settled = [], True
        for turn in turns.listed(self.store, goal, after=self.place, limit=AT_ONCE):
            place, html = (turn["wakeup"], turn["seq"]), self.drawn(turn)
            settled = settled and (turn["state"] != TurnState.OPEN or turn["wakeup"] != running)
            if settled:
                self.place = place
            if self._sent.get(place) != html:
                events.append(event("turn", html, self.place))
            self._sent[place] = html
        self._sent = {place: html for place, html in self._sent.items() if place > self.place}
        mark = _mark(self.store, goal, last)
        if mark != self.mark:
            events.append(event("refresh", ""))
        self.mark = mark
        return events


def mark_of(store: Store, goal: Goal) -> str:
    """A mark of all that a goal's page shows beside its turns: the same as long as none of it has changed."""
    return _mark(store, *_now(store, goal.id))


def _mark(store: Store, goal: Goal, last: WakeupSeen | None) -> str:
    running = last is not None and runs(store, last)
    seen = (goal, last.seq if last is not None else 0, running)
    return hashlib.sha256(repr(seen).encode("utf-8", "replace")).hexdigest()[:16]


def _now(store: Store, goal: int) -> tuple[Goal, WakeupSeen | None]:
    with store.reading() as connection:
        return goals.read(connection, goal), reading.last_wakeup(connection, goal)


def event(kind: str, data: str, place: Place | None = None) -> str:
    """One server-sent event; a browser that comes back names the last `place` that it was told."""
    lines = [f"event: {kind}"]
    if place is not None:
        lines.append(f"id: {place[0]}.{place[1]}")
    lines += [f"data: {line}" for line in data.split("\n")]
    return "\n".join(lines) + "\n\n"


def place_of(text: str) -> Place:
    """The turn that `3.12` names; before all turns where it names none."""
    found = _PLACE.fullmatch(text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _must_exist(ask: Ask) -> None:
    with ask.stores.goal(ask.uid):
        pass


def _drawn(ask: Ask) -> Callable[[dict[str, Any]], str]:
    words, uid = Words(ask.lang), ask.uid

    def drawn(turn: dict[str, Any]) -> str:
        values = {"t": words, "base": ask.keys.base, "turn": turn, "uid": uid}
        return ask.templates("turn_fragment.html", values).strip()

    return drawn
