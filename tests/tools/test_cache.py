"""The cache of one wakeup: what is served again, what is not, and that it stays small."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goalmode.domain.calls import CacheUse, CallOutcome, CallRecord, Effect
from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.messages import ToolCall
from goalmode.domain.redact import Redactor
from goalmode.domain.work import StatePatch
from goalmode.errors import BadInput
from goalmode.tools import cache as cache_module
from goalmode.tools.cache import Cache, key_of
from goalmode.tools.execute import Executed
from goalmode.tools.plan import Planned
from goalmode.tools.registry import Registry, Tool, ToolContext, ToolOutput, tool
from tests.tools.bench import Bench

pytestmark = pytest.mark.anyio

MISS = CacheUse()


@tool(effect="write")
def touch() -> str:
    """Change something."""
    return "changed"


def counting(**options: Any) -> tuple[Tool, list[str]]:
    """A cacheable tool that answers with its argument, and the arguments it ran with."""
    ran: list[str] = []

    @tool(effect="read", cacheable=True, **options)
    async def look(what: str) -> str:
        ran.append(what)
        return f"saw {what}"

    return look, ran


async def uses(bench: Bench, *calls: tuple[str, dict[str, Any]], extra: tuple[Tool, ...] = ()) -> list[Any]:
    """What the cache had for each call of one reply."""
    return [record.cache for record in (await bench.run(*calls, extra=extra)).records]


async def test_an_equal_call_is_served_and_says_so(bench: Bench) -> None:
    """The second read of a file does not run; the model is told, and the store keeps the same result as before."""
    (bench.context.workspace / "a.md").write_text("one\n")
    read = ("read_file", {"path": "a.md"})
    await bench.run(("list_files", {}))
    [first], [second] = [(await bench.run(read)).records for _ in range(2)]

    assert (first.shown, first.cache, first.cached) == ("one\n", MISS, False)
    assert second.shown == "[cached: same result as turn 2]\none\n"
    assert (second.body, second.size, second.milliseconds) == (first.body, first.size, 0)
    assert (second.outcome, second.cache, second.cached) == (CallOutcome.SUCCESS, CacheUse(2), True)


async def test_equal_arguments_are_equal_values(context: ToolContext) -> None:
    """The order of names is no difference; 1, 1.0, true and "1" are four values."""

    @tool(effect="read", cacheable=True)
    def look(a: Any, b: Any = None) -> str:
        return ""

    async def key(arguments: str) -> object:
        planned = Planned(ToolCall("c0", "look", arguments), 0, look, json.loads(arguments))
        return await key_of(planned, context)

    assert await key('{"a": 1, "b": {"x": 1, "y": 2}}') == await key('{"b":{"y":2,"x":1},"a":1}')
    assert len({await key(f'{{"a": {value}}}') for value in ("1", "1.0", "true", '"1"')}) == 4
    assert await key('{"a": "\\ud800"}') is not None


def _rewritten(file: Path) -> None:
    file.write_text("two")


def _same_size_later(file: Path) -> None:
    before = file.stat()
    file.write_text("TWO")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns + 1))


def _another_inode(file: Path) -> None:
    before = file.stat()
    other = file.with_name("other")
    other.write_text("TWO")
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.replace(file)


@pytest.mark.parametrize("change", [_rewritten, _same_size_later, _another_inode])
async def test_a_file_that_somebody_else_changed_is_read_again(
    change: Callable[[Path], None], bench: Bench
) -> None:
    """Size, modification time and inode each tell a change that no tool of ours has made."""
    file = bench.context.workspace / "a.md"
    file.write_text("one")
    await bench.run(("read_file", {"path": "a.md"}))
    change(file)

    [record] = (await bench.run(("read_file", {"path": "a.md"}))).records
    assert record.cache == MISS
    assert record.shown == file.read_text()


async def test_a_change_deep_in_a_directory_is_listed(bench: Bench) -> None:
    """The time of the listed directory itself says nothing of a file below another one."""
    below = bench.context.workspace / "a" / "b"
    below.mkdir(parents=True)
    (below / "c").write_text("1")
    listing = ("list_files", {"depth": 3})

    assert await uses(bench, listing) == [MISS]
    assert await uses(bench, listing) == [CacheUse(1)]
    (below / "c").write_text("12")
    [record] = (await bench.run(listing)).records
    assert record.cache == MISS
    assert "a/b/c  2" in record.shown


@pytest.mark.parametrize(
    "write",
    [
        ("touch", {}),
        ("write_file", {"path": "new", "content": ""}),
        ("edit_file", {"path": "no such file", "old": "a", "new": "b"}),
        ("shell", {"command": "exit 1"}),
    ],
    ids=lambda call: call[0],
)
async def test_any_write_empties_the_cache(write: tuple[str, dict[str, Any]], bench: Bench) -> None:
    """Whatever it wrote and whatever came of it, also in the same reply: a failed one may have written too."""
    look, ran = counting()
    call = ("look", {"what": "it"})

    assert await uses(bench, call, extra=(look,)) == [MISS]
    assert await uses(bench, call, write, call, call, extra=(look, touch)) == [
        CacheUse(1),
        None,
        MISS,
        CacheUse(2),
    ]
    assert len(ran) == 2


async def test_a_write_that_is_interrupted_empties_it_too(context: ToolContext) -> None:
    """An exception on its way through leaves nothing that may be stale."""
    cache, look = Cache(), counting()[0]
    await cache.answer(_planned(look), context, turn=1, run=_returns(ToolOutput("old")))

    async def broken() -> Executed:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        await cache.answer(_planned(touch), context, turn=2, run=broken)

    again = await cache.answer(_planned(look), context, turn=3, run=_returns(ToolOutput("new")))
    assert again.output.text == "new"


async def test_what_does_not_write_empties_nothing(bench: Bench) -> None:
    """Saving state, calls that are refused and unknown tools change nothing that was read."""
    look, ran = counting()
    call = ("look", {"what": "it"})
    bench.allowed = frozenset({Effect.READ, Effect.STATE})
    await bench.run(call, extra=(look,))
    await bench.run(
        ("update_working_checkpoint", {"key_info": "x"}), ("shell", {"command": "touch x"}), ("nonsense", {})
    )

    assert await uses(bench, call, extra=(look,)) == [CacheUse(1)]
    assert ran == ["it"]


async def test_only_tools_that_say_so_are_cached(bench: Bench) -> None:
    """A tool that only reads may still read the clock."""

    @tool(effect="read")
    def now() -> str:
        return "noon"

    assert await uses(bench, ("now", {}), ("now", {}), extra=(now,)) == [None, None]


def test_a_tool_that_writes_is_never_cacheable() -> None:
    """A call that is not made has no effect, so only reads may be left out."""
    with pytest.raises(
        BadInput, match=r"tool bad, effect: 'write' is not valid: a cacheable tool only reads"
    ):

        @tool(cacheable=True)
        def bad() -> str:
            return ""

    with pytest.raises(BadInput, match="a cacheable tool only reads"):
        Registry([replace(touch, cacheable=True)])


@pytest.mark.parametrize(
    "output",
    [
        ToolOutput("no", ok=False),
        ToolOutput("bye", exit=Exit(ExitReason.YIELDED)),
        ToolOutput("saved", patch=StatePatch(key_info="x")),
        ToolOutput("x" * 101),
    ],
    ids=["failure", "ending", "patch", "large"],
)
async def test_what_is_not_a_plain_result_is_not_kept(output: ToolOutput, context: ToolContext) -> None:
    """Failures pass, an ending or a patch must not come twice, and one result must not fill the memory."""
    cache, look = Cache(characters=100), counting()[0]
    for turn in (1, 2):
        found = await cache.answer(_planned(look), context, turn=turn, run=_returns(output))
        assert found.cache == MISS


async def test_a_call_that_is_not_on_offer_is_not_served(bench: Bench) -> None:
    """What the cache holds is no way around what a turn allows."""
    look, _ = counting()
    await bench.run(("look", {"what": "it"}), extra=(look,))
    bench.allowed = frozenset({Effect.STATE})

    [record] = (await bench.run(("look", {"what": "it"}), extra=(look,))).records
    assert (record.outcome, record.cache) == (CallOutcome.DENIED, None)


async def test_reads_side_by_side_are_served_too(bench: Bench) -> None:
    """In a reply of reads alone each asks the cache by itself."""
    look, ran = counting()
    await bench.run(("look", {"what": "a"}), extra=(look,))
    found = await uses(bench, ("look", {"what": "b"}), ("look", {"what": "a"}), extra=(look,))

    assert found == [MISS, CacheUse(1)]
    assert ran == ["a", "b"]


async def test_a_served_result_is_redacted_like_the_first(bench: Bench) -> None:
    """Secrets are struck out of what is served, in the result shown and in the one stored."""
    bench.context = replace(bench.context, redact=Redactor(["hush-hush"]))
    look, _ = counting()
    for _ in range(2):
        await bench.run(("look", {"what": "hush-hush"}), extra=(look,))

    for record in bench.reported:
        assert record.redactions == 1
        assert "hush-hush" not in record.shown + record.body


def _fails(context: ToolContext, arguments: object) -> object:
    raise OSError("gone")


@pytest.mark.parametrize(
    "fingerprint", [_fails, lambda c, a: None, lambda c, a: []], ids=["raises", "none", "not hashable"]
)
async def test_without_a_fingerprint_a_call_just_runs(fingerprint: Any, bench: Bench) -> None:
    """A hook that fails, or says None, means: not this time. Nothing of it reaches the model."""
    look, ran = counting(fingerprint=fingerprint)
    call = ("look", {"what": "it"})

    assert await uses(bench, call, call, extra=(look,)) == [None, None]
    assert ran == ["it", "it"]
    assert {r.shown for r in bench.reported} == {"saw it"}


async def test_a_fingerprint_that_hangs_is_given_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that does not answer holds a call up only so long; the thread is left to itself."""
    monkeypatch.setattr(cache_module, "FINGERPRINT_SECONDS", 0.01)
    release = threading.Event()
    look, ran = counting(fingerprint=lambda c, a: release.wait(60))
    try:
        assert await uses(bench, ("look", {"what": "it"}), extra=(look,)) == [None]
    finally:
        release.set()
    assert ran == ["it"]


async def test_a_file_that_is_not_there_is_the_tools_error(bench: Bench) -> None:
    """What a fingerprint cannot be taken of is told by the tool, in its own words."""
    [missing, outside] = (
        await bench.run(("read_file", {"path": "no"}), ("list_files", {"path": "../x"}))
    ).records

    assert (missing.cache, missing.shown) == (None, "no: no such file")
    assert (outside.cache, outside.outcome) == (None, CallOutcome.FAILED)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 40)), max_size=60),
    st.integers(1, 5),
    st.integers(1, 60),
)
def test_it_never_holds_more_than_its_bounds(
    calls: list[tuple[int, int]], results: int, characters: int
) -> None:
    """After any calls it serves at most so many results, of so many characters together, each the right one."""
    cache, look = Cache(results=results, characters=characters), counting()[0]
    context = ToolContext(Path("/nowhere"), gate=None)  # type: ignore[arg-type]
    texts: dict[int, str] = {}

    async def serve() -> None:
        for number, size in calls:
            planned = _planned(look, what=str(number))
            fresh = ToolOutput(f"{number}" * size)
            found = await cache.answer(planned, context, turn=1, run=_returns(fresh))
            if found.cache == MISS:
                texts[number] = fresh.text
            assert found.output.text == texts[number]
        nothing = _returns(ToolOutput("", ok=False))
        found_last = [
            await cache.answer(_planned(look, what=str(number)), context, turn=2, run=nothing)
            for number in range(10)
        ]
        held = [found.output.text for found in found_last if found.cache != MISS]
        assert len(held) <= results
        assert sum(map(len, held)) <= characters

    anyio.run(serve)


def test_the_record_knows_whether_it_was_served() -> None:
    """Three cases: not asked for, missed, hit; each event has its name."""
    record = CallRecord(0, "c0", "look", Effect.READ, CallOutcome.SUCCESS, "")

    assert [replace(record, cache=use).cached for use in (None, MISS, CacheUse(0))] == [False, False, True]
    assert (MISS.kind, CacheUse(3).kind) == ("cache_miss", "cache_hit")


def _planned(made: Tool, **arguments: Any) -> Planned:
    return Planned(ToolCall("c0", made.name, "{}"), 0, made, arguments)


def _returns(output: ToolOutput) -> Callable[[], Awaitable[Executed]]:
    async def run() -> Executed:
        return Executed(CallOutcome.SUCCESS if output.ok else CallOutcome.FAILED, output)

    return run
