"""The same goal against the strict provider: three wakeups of 180 turns, each from a context of its own."""

from __future__ import annotations

from typing import Any

from goalmode import ExitReason
from goalmode.context.tokens import counter
from goalmode.testing import steps
from tests.acceptance.world import World, sentences, told

QUOTA = 180
KINDS = 6


def turn(request: dict[str, Any], number: int) -> steps.Step:
    """A turn of real work, in ever new words that sound like the end."""
    said = f"Step {number} of the report is complete. 第{number}步已全部完成，最终交付。"
    name = f"part-{number % 20}.md"
    match number % KINDS:
        case 0:
            note = {
                "key_info": f"part {number} covers the totals of month {number % 12}",
                "done": [f"part {number}"],
            }
            return steps.tool("update_working_checkpoint", note, text=said)
        case 1:
            return steps.tool("list_files", {"path": "."}, text=said)
        case 2 if number > KINDS:
            return steps.tool("read_file", {"path": "part-1.md"}, text=said)
        case 3:
            return steps.tool("shell", {"command": f"echo {number}"}, text=said)
        case _:
            return steps.tool(
                "write_file", {"path": name, "content": f"Totals of {number}.\n" * 5}, text=said
            )


def test_three_long_wakeups(world: World) -> None:
    """B01, B19: full quotas, no invalid request, each first request within its budget and free of earlier prose."""
    goal = world.goal("Write the yearly report, one part a month.", max_turns=QUOTA)
    world.provider.follow(turn)
    firsts, endings = [], []

    for _ in range(3):
        firsts.append(len(world.provider.stub.requests))
        endings.append(world.wake(goal))

    assert [e.reason for e in endings] == [ExitReason.MAX_TURNS_EXCEEDED] * 3
    assert world.now(goal).spent.turns == 3 * QUOTA
    requests = world.provider.requests
    assert all(counted(requests[n]) <= world.profile.context_tokens for n in firsts)
    prose = [
        m["content"]
        for r in requests[firsts[1] - 1 : firsts[2]]
        for m in r["messages"]
        if m["role"] == "assistant"
    ]
    third = told(requests[firsts[2]])
    assert not [s for s in sentences(filter(None, prose)) if s in third]
    assert not any(m["role"] == "assistant" for m in requests[firsts[2]]["messages"])


def counted(request: dict[str, Any]) -> int:
    """Tokens of all that a request says."""
    return counter("o200k_base").count(f"{told(request)}{request.get('tools')}")
