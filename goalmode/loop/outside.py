"""Tools from outside: on offer as long as a wakeup runs, which begins once it is known what there is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict, replace
from functools import partial

from goalmode.domain.exits import Exit, ExitReason
from goalmode.errors import ContextDoesNotFit, Stopped
from goalmode.loop.turn import Run
from goalmode.tools.mcp import Offer
from goalmode.tools.workers import in_worker


async def with_outside(run: Run, body: Callable[[Run], Awaitable[Exit]]) -> Exit:
    """Run `body` with the goal's servers running, if it has any and a call will be made at all.

    They are started after the claim, under its gate: whoever takes the goal over ends them. A server that is not there
    ends nothing; the model is told.
    """
    if run.ports.outside is None or run.wake.over is not None:
        return await body(run)
    async with run.ports.outside.running(run.wake.gate) as offer:
        await _put_on_offer(run, offer)
        return await body(run)


async def _put_on_offer(run: Run, offer: Offer) -> None:
    """Render the wakeup's context again, now that it is known which tools it is sent with."""
    run.ports = replace(run.ports, registry=run.ports.equip(offer.tools))
    servers = [{**asdict(seen), "told": str(seen)} for seen in offer.servers]
    try:
        await in_worker(partial(run.wake.render_again, servers))
    except ContextDoesNotFit as error:
        raise Stopped(Exit(ExitReason.CONTEXT_OVERFLOW, str(error), error.facts)) from None
    run.begin()
    for server in servers:
        run.emit("server", **server)
    if offer.missing:
        entries = tuple(seen.problem for seen in offer.missing)
        run.say(run.prompt("servers_missing", entries=entries))
