"""Many processes that serve the goals of one store at the same time, and what each of them has to tell at its end."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection

import anyio
from anyio import to_thread

from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.messages import Reply, Request
from goalmode.loop.ports import Sink
from goalmode.model.scripted import ScriptedModel
from goalmode.orchestrator.run import Ending
from goalmode.orchestrator.skip import Skip
from goalmode.scheduler.daemon import Daemon
from goalmode.state import goals
from goalmode.state.store import Store
from goalmode.testing import call
from goalmode.tools.registry import ToolContext, tool
from goalmode.wiring import begin_wakeup, run_wakeup, workshop
from tests.crash.lives import PROFILE
from tests.crash.marks import leave

POLL_SECONDS = 0.1
CONCURRENCY = 2
TURNS = 2
"""Of each wakeup: one that works, one that saves."""

STOP = Exit(ExitReason.INTERRUPTED, "the crowd goes home", {"requested": True})


@dataclass
class Told:
    """Of one process. `claiming` are the seconds that each claim took, from finding the goal to holding it."""

    claiming: list[float] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    trouble: Counter[str] = field(default_factory=Counter)


@tool(effect="write", brief="word")
async def mark(context: ToolContext, word: str) -> str:
    """Leave a mark, and take a moment for it."""
    leave(context.workspace, "begin", context.idempotency_key, word)
    await anyio.sleep(0.002)
    leave(context.workspace, "end", context.idempotency_key, word)
    return f"marked {word}"


def serves(pipe: Connection, url: str, wakeups: int) -> None:
    """Serve until the other end says so, then tell. Each goal is done with its wakeup number `wakeups`."""
    told = Told()
    with Store(url) as store:
        daemon = Daemon(
            store,
            partial(_wake, store, told, wakeups),
            labels=(store.owner.host_label,),
            concurrency=CONCURRENCY,
            sink=lambda event: told.trouble.update(
                [event.kind] if event.kind in ("skipped", "store") else []
            ),
        )
        pipe.send("ready")
        pipe.recv()
        anyio.run(partial(daemon.serve, lambda: STOP if pipe.poll() else None, poll_seconds=POLL_SECONDS))
    pipe.send(told)


async def _wake(
    store: Store, told: Told, wakeups: int, goal_id: int, sink: Sink, stop: Callable[[], Exit | None]
) -> Ending:
    goal = await to_thread.run_sync(goals.get, store, goal_id)
    began = time.perf_counter()
    shop = workshop(goal, PROFILE, tools=(mark,))
    wake = await to_thread.run_sync(partial(begin_wakeup, store, goal, profile=PROFILE, shop=shop))
    if isinstance(wake, Skip):
        told.skipped[wake.reason] += 1
        return wake
    told.claiming.append(time.perf_counter() - began)
    last = wake.seq == wakeups

    def answer(request: Request) -> Reply:
        if len(model.requests) == 1:
            return call("mark", word=f"w{wake.seq}")
        return call("complete", status="success", summary="All marks are left.") if last else SAVE

    model = ScriptedModel([answer] * TURNS)
    return await run_wakeup(wake, model, sink=sink, stop=stop)


SAVE = call("update_working_checkpoint", key_info="one mark more")
