"""Results of one wakeup, served again to equal calls until something writes. Nothing of it is stored.

Two calls are equal if the tool, the arguments (as values, not as written) and the tool's fingerprint are: for the
file tools inode, size and modification time of what they look at.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import anyio

from goalmode.domain.calls import CacheUse, CallOutcome, Effect
from goalmode.tools.execute import Executed
from goalmode.tools.plan import Planned
from goalmode.tools.registry import Fingerprint, ToolContext, ToolOutput
from goalmode.tools.thread import in_daemon_thread

MAX_RESULTS = 256
MAX_CHARACTERS = 1_000_000
"""Of all results that are kept: at most 4 MB of memory. A larger result is not kept."""

FINGERPRINT_SECONDS = 5.0
"""After which a call is not cached: a file system that hangs must not hold it up twice."""

Key = tuple[str, bytes, Hashable]


@dataclass(frozen=True, slots=True)
class _Kept:
    output: ToolOutput
    turn: int


class Cache:
    """What the cacheable calls of one wakeup returned. What was not used for longest goes first.

    Args:
        results, characters: kept at most.
    """

    def __init__(self, *, results: int = MAX_RESULTS, characters: int = MAX_CHARACTERS) -> None:
        self._results, self._characters = results, characters
        self._kept: dict[Key, _Kept] = {}
        self._size = 0

    async def answer(
        self,
        planned: Planned,
        context: ToolContext,
        *,
        turn: int,
        run: Callable[[], Awaitable[Executed]],
    ) -> Executed:
        """What an equal call of this wakeup returned; else what `run` returns, which is kept for the next.

        Every write, whatever came of it, empties the cache. Calls that are not cacheable pass through.

        Args:
            turn: noted on what is kept, for the model to find it.
        """
        if planned.outcome is None and planned.tool is not None and planned.tool.effect is Effect.WRITE:
            try:
                return await run()
            finally:
                self.clear()
        key = await key_of(planned, context)
        if key is None:
            return await run()
        kept = self._get(key)
        if kept is not None:
            return Executed(CallOutcome.SUCCESS, kept.output, cache=CacheUse(kept.turn))
        executed = await run()
        self._keep(key, executed, turn)
        return replace(executed, cache=CacheUse())

    def clear(self) -> None:
        self._kept.clear()
        self._size = 0

    def _get(self, key: Key) -> _Kept | None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._kept[key] = kept
        return kept

    def _keep(self, key: Key, executed: Executed, turn: int) -> None:
        """Keep a plain success; a failure may pass, and an ending or a change of state is not had twice."""
        output = executed.output
        plain = executed.outcome is CallOutcome.SUCCESS and output.exit is None and output.patch is None
        if not plain or len(output.text) > self._characters:
            return
        self._drop(key)
        self._kept[key] = _Kept(output, turn)
        self._size += len(output.text)
        while len(self._kept) > self._results or self._size > self._characters:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: Key) -> None:
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._size -= len(kept.output.text)


async def key_of(planned: Planned, context: ToolContext) -> Key | None:
    """By what an equal call is known; None for a call that is not cached."""
    tool = planned.tool
    if tool is None or planned.arguments is None or not tool.cacheable or tool.effect is not Effect.READ:
        return None
    seen: Hashable = ()
    if tool.fingerprint is not None:
        seen = await _fingerprint(tool.fingerprint, context, planned.arguments)
    canonical = json.dumps(planned.arguments, sort_keys=True, separators=(",", ":"))
    return None if seen is None else (tool.name, hashlib.sha256(canonical.encode()).digest(), seen)


def marked(shown: str, cache: CacheUse | None) -> str:
    """A result as the model sees it: one that was served again says so in its first line."""
    if cache is None or cache.turn is None:
        return shown
    return f"[cached: same result as turn {cache.turn}]\n{shown}"


async def _fingerprint(
    fingerprint: Fingerprint, context: ToolContext, arguments: Mapping[str, Any]
) -> Hashable:
    def take() -> Hashable:
        seen = fingerprint(context, arguments)
        hash(seen)
        return seen

    with anyio.move_on_after(FINGERPRINT_SECONDS):
        try:
            return await in_daemon_thread(take)
        except (Exception, SystemExit):  # noqa: BLE001 - the tool itself will say what is wrong
            return None
    return None
