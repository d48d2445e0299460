"""Stopping a wakeup in the middle: by the user, a signal, another owner or the clock. Seen even while nothing moves."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio

from goalmode.domain import budget
from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.goal import Control
from goalmode.errors import Fenced, Stopped, StoreError
from goalmode.loop.ports import Ports, Wakeup
from goalmode.tools.workers import in_worker

WATCH_SECONDS = 0.25
"""How often the watcher looks. A stop asked from another process is seen within a second."""


def asked_to_stop(control: Control) -> Exit | None:
    """The ending that a user's request from another process leads to."""
    if control is Control.NONE:
        return None
    return Exit(ExitReason.USER_ABORTED, f"{control.value} by the user", {"control": control.value})


@dataclass
class _Cause:
    exit: Exit | None = None
    lost: bool = False


async def under_watch(body: Callable[[], Awaitable[Exit]], wake: Wakeup, ports: Ports) -> Exit:
    """Run `body` until it is done or a reason to stop turns up.

    Raises:
        Stopped: with the reason. Fenced: another owner has the goal. And whatever `body` raises.
    """
    cause, caught, exit = _Cause(), None, None
    async with anyio.create_task_group() as group:
        group.start_soon(_watch, cause, wake, ports, group.cancel_scope)
        try:
            exit = await body()
        except (Exception, Stopped, Fenced) as error:  # noqa: BLE001 - carried out of the group, which would wrap it
            caught = error
        group.cancel_scope.cancel()
    if caught is not None:
        raise caught
    if exit is not None:
        return exit
    if cause.lost:
        raise Fenced
    assert cause.exit is not None, "cancelled without a cause"
    raise Stopped(cause.exit)


async def _watch(cause: _Cause, wake: Wakeup, ports: Ports, scope: anyio.CancelScope) -> None:
    started = ports.clock.monotonic()
    active_before = wake.goal.spent.active_seconds
    while True:
        cause.lost = wake.lost
        cause.exit = ports.stop() or _out_of_time(
            wake, ports, active_before + ports.clock.monotonic() - started
        )
        if cause.exit is None and not cause.lost:
            cause.exit = asked_to_stop(await _control(wake))
        if cause.exit is not None or cause.lost:
            scope.cancel()
            return
        await anyio.sleep(WATCH_SECONDS)


async def _control(wake: Wakeup) -> Control:
    """What the user asks for; a store that cannot be read just now is no reason to stop: the next commit will tell."""
    try:
        return await in_worker(wake.control)
    except StoreError:
        return Control.NONE


def _out_of_time(wake: Wakeup, ports: Ports, active_seconds: float) -> Exit | None:
    limits = wake.goal.limits
    now = ports.clock.now()
    timed = budget.Limits(active_seconds=limits.active_seconds, deadline=limits.deadline)
    hit = budget.reached(timed, budget.Spent(active_seconds=active_seconds), now)
    return None if hit is None else exhausted(hit, wrap_up="skipped")


def exhausted(hit: budget.LimitHit, *, wrap_up: str) -> Exit:
    """The ending of a wakeup whose goal has used up a limit. `wrap_up`: `done` or `skipped`."""
    facts = {"limit": hit.kind, "value": hit.limit, "used": hit.used, "wrap_up": wrap_up}
    return Exit(ExitReason.GOAL_BUDGET_EXHAUSTED, f"{hit}; wrap-up {wrap_up}", facts)
