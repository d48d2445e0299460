"""Rows B59, B61, B63 and B64: no result, objective or number of turns can fill the conversation for good."""

from __future__ import annotations

import threading
import tracemalloc
from typing import Any

import pytest

from goalmode import ExitReason
from goalmode.context.tokens import counter
from goalmode.testing import steps
from tests.acceptance.cli import Command
from tests.acceptance.world import World, checkpoint, complete, mark, results, told

MEMORY = 64 * 1024 * 1024
"""Bytes that a wakeup may take at most above what it began with, whatever its tools print."""

OUTPUT = 50_000_000

LONG = " ".join(f"Paragraph {n} asks for the totals of month {n % 12}." for n in range(60))
"""An objective of about 3,000 characters."""


@pytest.mark.sqlite
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


def test_a_wakeup_of_120_turns_stays_within_its_window(world: World) -> None:
    """B63: request 120 is within the bound like any other, tells the objective once, and later contexts do not grow."""
    goal = world.goal(LONG, max_turns=120, work_window=8_000)
    save = checkpoint(key_info="the gauge stands at 5 m")
    world.provider.follow(
        lambda request, n: save if n == 0 else steps.tool("list_files", {"depth": 1 + n % 4})
    )
    world.wake(goal)
    long = world.provider.requests
    firsts = []

    for _ in range(10):
        firsts.append(len(world.provider.requests))
        world.provider.script(
            steps.tool("list_files", {}), steps.tool("wait", {"seconds": 60, "reason": "tide"})
        )
        world.wake(goal)

    requests = world.provider.requests
    assert len(long) == 121
    assert max(map(tokens, long)) <= 8_000
    assert sum("This wakeup goes on." in told(a) for a in long) > 20
    assert all(told(r).count(LONG) == 1 for r in requests)
    assert all("the gauge stands at 5 m" in told(r) for r in requests[1:])
    assert tokens(requests[firsts[9]]) <= 1.2 * tokens(requests[firsts[0]])


def test_ten_huge_results_and_a_refusal(world: World) -> None:
    """B64: shrinking needs no call of its own; the next request is within the bound and holds the ten results."""
    goal = world.goal(max_turns=4)
    dump = {"command": "printf begin; head -c 200000 /dev/zero | tr '\\0' a; printf end"}
    refusal = {
        "error": {"message": "too long", "type": "invalid_request_error", "code": "context_length_exceeded"}
    }
    world.provider.script(steps.tools([("shell", dump)] * 10), steps.status(400, refusal), then=mark())

    ending = world.wake(goal)

    refused, after = world.provider.requests[1:3]
    shown = results(after)
    assert ending.reason is ExitReason.MAX_TURNS_EXCEEDED
    assert tokens(after) < tokens(refused) * 3 / 4
    assert len(shown) == 10
    assert all("begin" in text and "end" in text and str(200_000 + 8) in text for text in shown)
    assert len(world.provider.requests) == 2 + 3 + 1


def test_a_provider_that_calls_everything_too_long(world: World) -> None:
    """B61: one request a wakeup, and after three such wakeups the goal stands still with its cause; never success."""
    goal = world.goal(max_turns=4)
    refusal = {
        "error": {"message": "too long", "type": "invalid_request_error", "code": "context_length_exceeded"}
    }
    world.provider.script(then=steps.status(400, refusal))

    ending = world.run(goal)

    shown = world.inspect(goal)
    assert ending.reason is ExitReason.CONTEXT_OVERFLOW
    assert [w["exit_reason"] for w in shown["wakeups"]] == ["CONTEXT_OVERFLOW"] * 3
    assert shown["status"] == "BLOCKED"
    assert "CONTEXT_OVERFLOW" in shown["status_reason"]
    assert len(world.provider.requests) <= 2 * 3


def test_killed_between_two_teeth(real_world: World, goalmode: Command) -> None:
    """kill -9 after the conversation began anew: nothing is lost, both contexts are there, the next wakeup goes on."""
    world, silence = real_world, threading.Event()
    goal = world.goal(deliverables=["marks"], work_window=6_000)
    fill = steps.tool("shell", {"command": "echo x >> marks; head -c 16000 /dev/urandom | base64"})
    world.provider.script(
        checkpoint(key_info="the gauge stands at 5 m"), fill, steps.stall(steps.text("never"), until=silence)
    )
    child = goalmode.start("run", goal.uid)
    child.until(lambda: len(world.provider.stub.requests) == 3, "the first request after the tooth")
    child.kill()
    silence.set()

    stored = goalmode("context", goal.uid, "--wakeup", "1", "--json").json
    printed = goalmode("context", goal.uid, "--wakeup", "1").out
    world.provider.script(mark(), complete())
    ending = world.wake(goal)

    [later] = stored["later"]
    assert (stored["text"], later["n"]) == (printed, 1)
    assert world.provider.requests[2]["messages"][1]["content"] in later["text"]
    assert later["tokens"] <= 5_000
    assert [t["state"] for t in world.turns(goal)] == ["done", "done", "lost", "done", "done"]
    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert "the gauge stands at 5 m" in told(world.provider.requests[3])
    assert world.marks() == 2
    assert world.intact()


def tokens(request: dict[str, Any]) -> int:
    return counter("o200k_base").count(f"{told(request)}{request.get('tools')}")
