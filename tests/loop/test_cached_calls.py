"""Cached calls of a wakeup, through the loop and the store: events, progress, and where the cache ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from goalmode.domain.exits import ExitReason
from goalmode.domain.messages import ToolCall
from goalmode.inspection.turns import turns
from goalmode.state import tables as t
from goalmode.testing import call, calls, say
from goalmode.tools.registry import tool

Make = Callable[..., Any]

READ = call("read_file", path="a.md")


def stored(world: Any) -> list[tuple[str, int, dict[str, Any]]]:
    """Events of the cache in the journal: kind, wakeup, data."""
    with world.store.reading() as connection:
        rows = connection.execute(t.events.select().order_by(t.events.c.id)).all()
    return [(row.kind, row.wakeup, row.data) for row in rows if row.kind.startswith("cache_")]


def test_hits_and_misses_are_events_in_the_journal_and_on_the_wire(make: Make) -> None:
    """Each call that the cache was asked for is told once, after its commit, alone or beside others."""
    world = make(max_turns=3)
    (world.workspace / "a.md").write_text("one")

    world.wake([READ, READ, calls(READ, call("list_files")), say("saved")])

    assert [(kind, wakeup, data["turn"], data["same_as"]) for kind, wakeup, data in stored(world)] == [
        ("cache_miss", 1, 1, None),
        ("cache_hit", 1, 2, 1),
        ("cache_hit", 1, 3, 1),
        ("cache_miss", 1, 3, None),
    ]
    told = [event for event in world.events if event.kind.startswith("cache_")]
    assert [(e.kind, e.data["tool"], e.data["turn"], e.data["same_as"]) for e in told] == [
        ("cache_miss", "read_file", 1, None),
        ("cache_hit", "read_file", 2, 1),
        ("cache_hit", "read_file", 3, 1),
        ("cache_miss", "list_files", 3, None),
    ]
    assert [e.data["call_id"] for e in told] == [data["call_id"] for _, _, data in stored(world)]


def test_a_cached_result_is_marked_for_the_model_and_is_a_call_of_its_own(make: Make) -> None:
    """The model sees the text again below a line that says where it stood; the store has a second successful call."""
    world = make(max_turns=2)
    (world.workspace / "a.md").write_text("one")

    world.wake([READ, READ, say("saved")])

    assert "[cached: same result as turn 1]\none" in world.told(2)
    made = [c for turn in turns(world.store, world.now, full=True) for c in turn["calls"]]
    assert [(c["tool"], c["outcome"], c["result"]) for c in made] == [("read_file", "success", "one")] * 2


def test_a_cached_call_is_no_progress(make: Make) -> None:
    """Other words for the same arguments bring nothing new, if the result comes from the cache."""
    world = make(max_turns=2)
    (world.workspace / "a.md").write_text("one")
    spaced = replace(READ, calls=(ToolCall("c1", "read_file", '{ "path" : "a.md" }'),))

    world.wake([READ, spaced, say("saved")])

    assert [kind for kind, _, _ in stored(world)] == ["cache_miss", "cache_hit"]
    with world.store.reading() as connection:
        assert connection.execute(t.wakeups.select()).one().progress == 1


def test_nothing_is_served_across_wakeups(make: Make) -> None:
    """Each wakeup begins with an empty cache: between two of them anything may have happened."""
    ran: list[str] = []

    @tool(effect="read", cacheable=True)
    def look() -> str:
        ran.append("x")
        return "seen"

    world = make(max_turns=2, tools=(look,))
    for _ in range(2):
        ending = world.wake([call("look"), call("look"), say("saved")])
        assert ending.reason is ExitReason.MAX_TURNS_EXCEEDED

    assert len(ran) == 2
    assert [(kind, wakeup) for kind, wakeup, _ in stored(world)] == [
        ("cache_miss", 1),
        ("cache_hit", 1),
        ("cache_miss", 2),
        ("cache_hit", 2),
    ]
