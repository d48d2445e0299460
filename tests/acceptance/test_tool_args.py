"""Rows B78, B80, B82: whatever a model makes of its calls, each gets one answer and the work goes on."""

from __future__ import annotations

import json

import anyio
import pytest

from goalmode import ExitReason, tool
from goalmode.testing import steps
from goalmode.testing.steps import StubCall
from tests.acceptance.world import World, complete, mark, results

BAD = ['{"command": "echo x >> marks', "null", "[1]", '"x"', "7"]


def in_one_piece(arguments: str) -> steps.Step:
    """A call whose arguments come in one event of the stream, however long they are."""
    call = {"index": 0, "id": "call_long", "function": {"name": "shell", "arguments": arguments}}
    choice = {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}
    data = f"data: {json.dumps({'choices': [choice]})}\n\ndata: [DONE]\n\n".encode()
    head = f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {len(data)}\r\n\r\n"
    return steps.raw(head.encode() + data)


def test_malformed_arguments_are_answered_and_run_nothing(world: World) -> None:
    """B78: each bad call gets one short error naming tool and problem; the valid one runs."""
    goal = world.goal(deliverables=["marks"])
    bad = [*(steps.tool("shell", text) for text in BAD), in_one_piece("{" + "x" * 2_000_000)]
    world.provider.script(*bad, mark(), complete())

    ending = world.wake(goal)

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    answers = results(world.provider.requests[-1])
    assert len(answers) == len(bad) + 1
    for answer in answers[:-1]:
        assert len(answer) < 2_000
        assert "shell" in answer
        assert "arguments" in answer
    assert world.outcomes() == ["failed"] * len(bad) + ["success"] * 2
    assert world.marks() == 1


@pytest.mark.parametrize("ids", [("same", "same"), (None, ""), ("", ""), ("a b", "a\nb")], ids=repr)
def test_calls_with_useless_ids_are_told_apart(world: World, ids: tuple[str | None, str | None]) -> None:
    """B80: two calls that share an id, or have none: both run with their own arguments, each beside its result."""
    goal = world.goal()
    pair = [StubCall("shell", f'{{"command": "echo {n} | tee -a marks"}}', i) for n, i in enumerate(ids)]
    world.provider.script(steps.tools(pair), steps.tools(pair), *[steps.text("")] * 4)

    world.wake(goal)

    assert (world.workspace / "marks").read_text() == "0\n1\n" * 2
    messages = world.provider.requests[2]["messages"]
    assert [m["role"] for m in messages[2:]] == ["assistant", "tool", "tool"] * 2
    for at in (2, 5):
        calls, answers = messages[at]["tool_calls"], messages[at + 1 : at + 3]
        assert [c["id"] for c in calls] == [a["tool_call_id"] for a in answers]
        assert [a["content"].strip()[-1] for a in answers] == ["0", "1"]
    every = [c["id"] for m in messages for c in m.get("tool_calls") or ()]
    assert len(set(every)) == 4


def test_failing_tools_are_no_failure_of_the_wakeup(world: World) -> None:
    """B82: an unknown name, a tool that raises and one that times out are answers; the work goes on to its end."""

    @tool
    def broken(text: str) -> str:
        """Raise."""
        raise RuntimeError(f"no such thing as {text}")

    @tool(timeout_seconds=0.05)
    async def slow() -> str:
        """Take for ever."""
        await anyio.sleep_forever()
        return ""

    world.tools = (broken, slow)
    goal = world.goal(deliverables=["marks"])
    calls = [steps.tool("run_tests", {}), steps.tool("broken", {"text": "it"}), steps.tool("slow", {})]
    world.provider.script(*calls, mark(), complete())

    ending = world.wake(goal)

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    unknown, raised, timed_out, _ = results(world.provider.requests[-1])
    assert all(name in unknown for name in ("shell", "read_file", "complete", "broken"))
    assert "no such thing as it" in raised
    assert "time limit" in timed_out
    assert world.outcomes()[:3] == ["failed"] * 3
