"""Rows B59 and B63: neither a huge result nor a long objective can fill the conversation."""

from __future__ import annotations

import tracemalloc
from typing import Any

from goalmode import ExitReason
from goalmode.context.tokens import counter
from goalmode.testing import steps
from tests.acceptance.world import World, checkpoint, mark, results, told

MEMORY = 64 * 1024 * 1024
"""Bytes that a wakeup may take at most above what it began with, whatever its tools print."""

OUTPUT = 50_000_000

LONG = " ".join(f"Paragraph {n} asks for the totals of month {n % 12}." for n in range(60))
"""An objective of about 3,000 characters."""


def test_a_huge_result_is_cut_and_told(world: World) -> None:
    """B59: 50 MB on one line: head, tail and size are shown, and neither request, memory nor store grows by it."""
    goal = world.goal(max_turns=7)
    dump = f"printf '[\"begins here'; head -c {OUTPUT} /dev/zero | tr '\\0' a; printf 'ends here\"]'"
    world.provider.script(mark(), steps.tool("shell", {"command": dump}), then=mark())
    counter("o200k_base").count("load the vocabulary before anything is measured")
    size = world.store_path.stat().st_size
    tracemalloc.start()
    try:
        first = world.wake(goal)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    second = world.wake(goal)

    assert first.reason is second.reason is ExitReason.MAX_TURNS_EXCEEDED
    answer = results(world.provider.requests[2])[1]
    assert str(OUTPUT + len('["begins hereends here"]')) in answer
    assert "begins here" in answer
    assert "ends here" in answer
    assert "left out" in answer or "cut" in answer
    assert all(tokens(r) < world.profile.window for r in world.provider.requests)
    assert peak < MEMORY
    assert world.store_path.stat().st_size < size + 5_000_000


def test_an_objective_is_told_once(world: World) -> None:
    """B63: every request of eleven wakeups holds the objective once, and the contexts do not grow."""
    goal = world.goal(LONG, max_turns=3)
    world.provider.follow(
        lambda request, number: [checkpoint(key_info="same"), mark(), steps.text("Hm.")][number % 3]
    )
    firsts = []

    for _ in range(11):
        firsts.append(len(world.provider.requests))
        world.wake(goal)

    requests = world.provider.requests
    assert all(told(r).count(LONG) == 1 for r in requests)
    assert tokens(requests[firsts[10]]) <= 1.2 * tokens(requests[firsts[1]])


def tokens(request: dict[str, Any]) -> int:
    return counter("o200k_base").count(f"{told(request)}{request.get('tools')}")
