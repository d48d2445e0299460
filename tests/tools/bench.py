"""Replies of one wakeup, dispatched over the built-in tools."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from goalmode.domain.calls import CallOutcome, CallRecord, Effect
from goalmode.domain.messages import ToolCall
from goalmode.tools.builtin import builtin_tools
from goalmode.tools.cache import Cache
from goalmode.tools.dispatch import Dispatched, dispatch
from goalmode.tools.registry import Registry, Tool, ToolContext


@dataclass
class Bench:
    """Dispatches calls over the built-in tools and `extra`, and keeps what was reported. One cache for all replies."""

    context: ToolContext
    reported: list[CallRecord] = field(default_factory=list)
    stop: Callable[[], bool] = lambda: False
    skip: Callable[[ToolCall], str] = lambda call: ""
    before_report: Callable[[], Awaitable[None]] | None = None
    allowed: frozenset[Effect] = frozenset(Effect)
    cache: Cache = field(default_factory=Cache)
    turn: int = 0

    async def run(self, *calls: tuple[str, dict[str, Any]], extra: tuple[Tool, ...] = ()) -> Dispatched:
        async def on_record(record: CallRecord) -> None:
            if self.before_report is not None:
                await self.before_report()
            self.reported.append(record)

        self.turn += 1
        return await dispatch(
            [ToolCall(f"c{n}", name, json.dumps(arguments)) for n, (name, arguments) in enumerate(calls)],
            registry=Registry([*builtin_tools(), *extra]),
            context=self.context,
            allowed=self.allowed,
            wakeup=4,
            on_record=on_record,
            key=lambda call_id: f"goal:4:1:{call_id}",
            stop=lambda: self.stop(),
            skip=lambda call: self.skip(call),
            cache=self.cache,
            turn=self.turn,
        )

    @property
    def outcomes(self) -> list[CallOutcome]:
        return [record.outcome for record in self.reported]
