"""The policy `replay` exists for comparison: it sends what was said before, and stays valid doing so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import sqlalchemy as sa

from goalmode.context.phrases import completion_phrases
from goalmode.domain.exits import ExitReason
from goalmode.domain.goal import ContextPolicy
from goalmode.domain.messages import Assistant, Reply, Request, System, ToolResult, User
from goalmode.state import tables as t
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


def said(request: Request) -> list[tuple[type, str]]:
    """Who said what, the system prompt left out. In a replay the calls go by other ids."""
    return [(type(m), m.text) for m in request.messages if not isinstance(m, System)]


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


def test_what_is_replayed_is_what_was_said(make: Callable[..., Any]) -> None:
    """A result that is kept with its call alone, one that was cut, one of a batch, one that was refused, the host's
    prompts: the next wakeup's request holds what the model was told before, in that order.
    """
    world = make(max_turns=3, policy=ContextPolicy.REPLAY)
    long = call("shell", command="seq 20000")
    world.wake([work(1), calls(long, work(2)), say("Hm."), say("saved")])
    *told, _asked_to_save = said(world.requests[-1])
    with world.store.reading() as connection:
        kept = connection.execute(sa.select(t.turns.c.results).order_by(t.turns.c.id)).scalars().all()

    world.wake([work(3), work(4), work(5), say("saved")])

    assert said(world.requests[0])[: len(told)] == told
    assert [kind for kind, _ in told] == [User, *[Assistant, ToolResult] * 2, ToolResult, Assistant, User]
    assert [results is None for results in kept] == [True, False, False, True]


def test_replay_ends_at_its_quota_like_any_other(make: Callable[..., Any]) -> None:
    """The policy changes what is sent, not how a wakeup ends."""
    world = make(max_turns=1, policy=ContextPolicy.REPLAY)

    assert world.wake([work(1), say("saved")]).reason is ExitReason.MAX_TURNS_EXCEEDED
