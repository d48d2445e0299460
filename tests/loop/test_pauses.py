"""A model that pauses or thinks for long has not ended anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from goalmode.domain.exits import ExitReason, GoalStatus
from goalmode.domain.messages import Assistant, Reply, Request
from goalmode.domain.signals import ErrorKind, StopReason
from goalmode.errors import ModelError
from goalmode.inspection.turns import turns
from goalmode.loop.decide import MAX_PAUSES
from goalmode.testing import call, say

Make = Callable[..., Any]

WORK = call("shell", command="echo hello > out.txt")
SUCCESS = call("complete", status="success", summary="Done as wanted.")
PAUSED = replace(
    say("Searching", stop=StopReason.PAUSE), extra={"blocks": ["server_tool_use"]}, stop_raw="pause_turn"
)


def test_pause_turn_is_resent(make: Make) -> None:
    """The paused turn is appended unchanged and nothing else is said; what follows it is one turn of work more."""
    world = make(deliverables=("out.txt",))

    ending = world.wake([PAUSED, PAUSED, WORK, SUCCESS])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    first, second, third = (request.messages for request in world.requests[:3])
    assert second == (*first, Assistant("Searching", (), PAUSED.extra))
    assert third == (*second, Assistant("Searching", (), PAUSED.extra))
    assert [t["stop_reason"] for t in turns(world.store, world.now)] == [
        "PAUSE",
        "PAUSE",
        "TOOL_USE",
        "TOOL_USE",
    ]


def test_endless_pauses_are_bounded(make: Make) -> None:
    """Beyond its bound a paused turn is the provider's failure, not an ending of the model's."""
    world = make(deliverables=("out.txt",))
    (world.workspace / "out.txt").write_text("x")

    ending = world.wake([PAUSED] * (MAX_PAUSES + 1))

    assert ending.reason is ExitReason.BACKEND_ERROR
    assert world.now.status is GoalStatus.ACTIVE


@pytest.mark.parametrize("minutes", [2, 15, 240])
def test_thinking_pause_is_not_completion(make: Make, minutes: int) -> None:
    """A model that is silent for minutes or hours is waited for: what it says then counts, and nothing ended before."""
    world = make(deliverables=("out.txt",))

    def thinks(reply: Reply) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Reply:
            await world.clock.sleep(minutes * 60)
            return reply

        return answer

    ending = world.wake([thinks(WORK), thinks(say("Hm.")), thinks(SUCCESS)])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert world.now.spent.turns == 3
    assert world.now.spent.active_seconds == 3 * minutes * 60


def test_a_safety_timeout_is_the_providers_failure(make: Make) -> None:
    """Silence beyond the safety timeout ends the wakeup as BACKEND_ERROR although the contract holds, never as done."""
    world = make(deliverables=("out.txt",))

    async def silent(request: Request) -> Reply:
        await world.clock.sleep(world.profile.timeout_seconds)
        raise ModelError(ErrorKind.TIMEOUT, f"silent for {world.profile.timeout_seconds:.0f} s")

    ending = world.wake([WORK, silent])

    assert (ending.reason, ending.facts["kind"]) == (ExitReason.BACKEND_ERROR, "TIMEOUT")
    assert world.now.status is GoalStatus.ACTIVE
    assert world.now.next_wakeup_at > world.clock.now()
