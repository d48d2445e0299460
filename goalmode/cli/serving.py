"""Waking any goal of a store, each with the model that the user has configured for it, and telling of it in lines."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import anyio
from anyio import to_thread

from goalmode.cli.options import Common
from goalmode.cli.output import say, say_json
from goalmode.cli.running import configured_for
from goalmode.cli.tracing import Traced
from goalmode.configured import Configured
from goalmode.credentials import Credentials
from goalmode.domain.exits import Exit
from goalmode.domain.goal import Goal
from goalmode.domain.redact import Redactor
from goalmode.domain.text import counted, one_line
from goalmode.loop.ports import Event, Sink
from goalmode.orchestrator.run import Ending
from goalmode.orchestrator.skip import Skip
from goalmode.orchestrator.wake import Wake
from goalmode.state import goals
from goalmode.state.store import Store
from goalmode.wiring import begin_wakeup, open_model, run_wakeup, workshop


class Waker:
    """Wakes goals of one store. Configuration is read anew for each wakeup, and what once let somebody in is never
    forgotten: goals of many models share one store.
    """

    def __init__(self, store: Store, common: Common, traced: Traced) -> None:
        self._store, self._common, self._traced = store, common, traced
        self._credentials = Credentials()
        self._wakes: set[Wake] = set()

    async def __call__(
        self, goal_id: int, sink: Sink, stop: Callable[[], Exit | None], delivery: int | None = None
    ) -> Ending:
        """Wake the goal if it is due; see `goalmode.scheduler.daemon.WakeGoal`. `delivery`: by which it came here.

        Raises:
            GoalmodeError: its model is not configured, its rows are of unknown shape, or the store fails.
        """
        goal, configured = await to_thread.run_sync(self._prepare, goal_id)
        self._credentials |= configured.credentials
        shop = workshop(
            goal,
            configured.profile,
            environ=os.environ,
            known=self._credentials,
            redact=self._store.redact,
            prompts=configured.prompts,
            sandboxing=configured.sandboxing,
            servers=configured.servers,
        )
        begin = partial(begin_wakeup, self._store, goal, profile=shop.profile, shop=shop, delivery=delivery)
        model = open_model(
            configured.profile, configured.key, clock=self._store.clock, lang=goal.settings.lang
        )
        try:
            wake = await to_thread.run_sync(begin)
            if isinstance(wake, Skip):
                return wake
            self._wakes.add(wake)
            try:
                with self._traced(sink) as told:
                    return await run_wakeup(wake, model, sink=told, stop=stop)
            finally:
                self._wakes.discard(wake)
        finally:
            with anyio.CancelScope(shield=True):
                await model.aclose()

    def _prepare(self, goal_id: int) -> tuple[Goal, Configured]:
        goal = goals.get(self._store, goal_id)
        return goal, configured_for(goal, self._common)

    def end_tools(self) -> None:
        """The last thing that a process does which cannot wait any longer."""
        for wake in list(self._wakes):
            wake.end_tools()


class Log:
    """Tells of events on standard output, one line each; goes quiet once nobody reads any more."""

    def __init__(self, store: Store, common: Common) -> None:
        self._store, self._common = store, common

    def __call__(self, event: Event) -> None:
        if self._common.quiet and not self._common.json:
            return
        at = self._store.clock.now().astimezone()
        data = _struck(event.data, self._store.redact)
        with suppress(OSError, ValueError):
            if self._common.json:
                say_json({"kind": event.kind, "at": at.isoformat(), **data}, indent=None)
            else:
                say(f"{at.isoformat(sep=' ', timespec='seconds')}  {one_line(told(event.kind, data))}")


def told(kind: str, data: Mapping[str, Any]) -> str:
    """An event of a server as a line."""
    match kind:
        case "serving":
            labels = ", ".join(data["labels"])
            return f"serving the goals of {labels} as {data['owner']}, up to {data['concurrency']} at once"
        case "claimed":
            return f"{data['goal']}: wakeup {data['wakeup']} begins ({data['why']})"
        case "ended":
            detail = f" ({one_line(data['detail'], 300)})" if data["detail"] else ""
            turns = counted(data["turns"], "turn")
            ending = f"wakeup {data['wakeup']} ended after {turns}: {data['exit_reason']}"
            return f"{data['goal']}: {ending}{detail}"
        case "skipped":
            return f"{data['goal']}: not woken ({data['reason']}): {data['detail']}"
        case "recovered":
            return f"{data['goal']}: {data['why']}; {data['detail']}"
        case "source":
            return f"{data['goal']}: {data['reason']}"
        case "taken_over":
            return f"{data['goal']}: {data['detail']}"
        case "stopping":
            return f"stopping ({data['why']}), {counted(data['running'], 'wakeup runs', 'wakeups run')} still"
        case "stopped":
            return "stopped"
        case _:
            return f"{kind}: {data.get('detail', '')}"


def _struck(value: Any, redact: Redactor) -> Any:
    match value:
        case str():
            return redact(value)
        case Mapping():
            return {key: _struck(item, redact) for key, item in value.items()}
        case list() | tuple():
            return [_struck(item, redact) for item in value]
        case _:
            return value
