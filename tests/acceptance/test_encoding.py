"""Rows B65, B67, B70: text that no strict reader takes becomes readable, and never spoils what follows it."""

from __future__ import annotations

import pytest

from goalmode import ExitReason, tool
from goalmode.testing import steps
from tests.acceptance.world import World, complete, mark, results

NULS = "\x00start mid\x00dle end\x00"
DIRTY = {
    "random bytes": bytes(range(256)),
    "latin-1": "Grüße aus Köln".encode("latin-1"),
    "lone surrogates": "half \ud83c of \udf78 it",
}


def test_nul_characters_stay_readable(world: World) -> None:
    """B65: NULs at start, middle and end: two more turns and a second wakeup run, and nothing is cut at the first."""

    @tool(effect="read")
    def dump() -> str:
        """Give what was found."""
        return NULS

    world.tools = (dump,)
    goal = world.goal(max_turns=4)
    shell = steps.tool("shell", {"command": r"printf '\0start mid\0dle end\0'"})
    note = steps.tool("update_working_checkpoint", {"key_info": NULS, "done": [f"read {NULS}"]})
    world.provider.script(steps.tool("dump"), shell, note, mark(), *[mark()] * 4)

    endings = [world.wake(goal), world.wake(goal)]

    assert [e.reason for e in endings] == [ExitReason.MAX_TURNS_EXCEEDED] * 2
    for answer in results(world.provider.requests[2]):
        assert "␀start mid␀dle end␀" in answer
    stored = [c["result"] for turn in world.turns(goal, full=True) for c in turn["calls"]]
    assert sum("␀start mid␀dle end␀" in result for result in stored) == 2
    assert "␀start mid␀dle end␀" in world.provider.told(5)


def test_escaped_surrogate_pairs_are_one_character(world: World) -> None:
    """B67: U+1F378 written as two escapes is written to the file as its four bytes, and sent back whole."""
    goal = world.goal(deliverables=["drink.txt"])
    escaped = r'{"path": "drink.txt", "content": "\ud83c\udf78 and 𝒳"}'
    world.provider.script(steps.tool("write_file", escaped), complete())

    assert world.wake(goal).reason is ExitReason.CURRENT_TASK_DONE
    assert (world.workspace / "drink.txt").read_bytes() == b"\xf0\x9f\x8d\xb8 and \xf0\x9d\x92\xb3"


def test_half_a_surrogate_pair_is_refused_not_written(world: World) -> None:
    """B67: a lone half in arguments is an error for the model, and the conversation stays sendable."""
    goal = world.goal(deliverables=["marks"])
    world.provider.script(
        steps.tool("write_file", r'{"path": "drink.txt", "content": "\ud83c"}'), mark(), complete()
    )

    assert world.wake(goal).reason is ExitReason.CURRENT_TASK_DONE
    assert world.outcomes() == ["failed", "success", "success"]
    assert not (world.workspace / "drink.txt").exists()


@pytest.mark.parametrize("kind", list(DIRTY))
def test_dirty_results_are_stored_and_recognised(world: World, kind: str) -> None:
    """B70: the same dirty result three times: no crash, each stored, and their equality is seen."""

    @tool(effect="read")
    def scrape() -> str | bytes:
        """Give what was found."""
        return DIRTY[kind]  # type: ignore[return-value]

    world.tools = (scrape,)
    goal = world.goal(deliverables=["marks"])
    world.provider.script(*[steps.tool("scrape")] * 3, mark(), complete())

    ending = world.wake(goal)

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    hashes = world.rows("SELECT result_sha FROM tool_calls WHERE tool = 'scrape'")
    assert len(hashes) == 3
    assert len(set(hashes)) == 1
    assert world.inspect(goal)["wakeups"][0]["progress"] == 3  # scrape once, mark, the deliverable's check
