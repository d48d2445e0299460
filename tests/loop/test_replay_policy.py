"""The policy `replay` exists for comparison: it sends what was said before, and stays valid doing so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from goalmode.context.phrases import completion_phrases
from goalmode.domain.exits import ExitReason
from goalmode.domain.goal import ContextPolicy
from goalmode.domain.messages import Assistant, Reply, Request, ToolResult
from goalmode.testing import call, calls, say

CLOSING = "全部完成。All done, this was the final delivery."


def work(number: int) -> Reply:
    return replace(call("shell", command=f"echo {number}"), text=f"{CLOSING} {number}")


def closes_when_full(number: int) -> Callable[[Request], Reply]:
    """Closes as soon as the request holds ten closing phrases, as models do that read their own endings."""

    def step(request: Request) -> Reply:
        said = "\n".join(m.text for m in request.messages if isinstance(m, Assistant))
        return say(CLOSING) if completion_phrases(said) >= 10 else work(number)

    return step


def run(make: Callable[..., Any], policy: ContextPolicy) -> tuple[Any, list[int]]:
    """Turns of three wakeups whose model closes once it has read enough endings."""
    world = make(max_turns=8, policy=policy)
    turns = []
    for _ in range(3):
        before = world.now.spent.turns
        world.wake([closes_when_full(n) for n in range(12)], finished=False)
        turns.append(world.now.spent.turns - before)
    return world, turns


def test_replay_carries_the_earlier_prose_and_rebuild_does_not(make: Callable[..., Any]) -> None:
    """The same model in the same goal: replayed endings pile up from wakeup to wakeup, rebuilt contexts hold none."""
    replayed, _ = run(make, ContextPolicy.REPLAY)
    rebuilt, _ = run(make, ContextPolicy.REBUILD)

    assert CLOSING in replayed.told(0)
    assert CLOSING not in rebuilt.told(0)


def test_replay_has_one_result_for_every_call_of_three_wakeups(make: Callable[..., Any]) -> None:
    """Every replayed call has exactly one result, also those of a batch and of a claim that was refused."""
    world = make(max_turns=2, deliverables=("never.txt",), policy=ContextPolicy.REPLAY)
    claim = call("complete", status="success", summary="done")
    world.wake([calls(work(1), work(2)), calls(work(3), claim), say("saved")])
    world.wake([work(4), claim, say("saved")])

    world.wake([work(5), work(6), say("saved")])

    first = world.requests[0].messages
    asked = [c.id for m in first if isinstance(m, Assistant) for c in m.calls]
    answered = [m.call_id for m in first if isinstance(m, ToolResult)]
    assert asked == answered
    assert len(asked) == 6
    assert len(set(asked)) == 6


def test_replay_ends_at_its_quota_like_any_other(make: Callable[..., Any]) -> None:
    """The policy changes what is sent, not how a wakeup ends."""
    world = make(max_turns=1, policy=ContextPolicy.REPLAY)

    assert world.wake([work(1), say("saved")]).reason is ExitReason.MAX_TURNS_EXCEEDED
