"""The calls of one reply: order, exactly one record each, and what an interruption leaves."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import anyio
import pytest

from goalmode.domain.calls import CallOutcome, Effect
from goalmode.domain.exits import Exit, ExitReason
from goalmode.errors import Fenced, Stopped
from goalmode.tools.dispatch import MAX_PARALLEL
from goalmode.tools.registry import tool
from tests.tools.bench import Bench

pytestmark = pytest.mark.anyio

OK, FAILED, CUT, SKIPPED = (
    CallOutcome.SUCCESS,
    CallOutcome.FAILED,
    CallOutcome.INTERRUPTED,
    CallOutcome.SKIPPED,
)


async def test_calls_run_in_order_and_every_one_has_its_record(bench: Bench) -> None:
    """A later call sees the effect of an earlier one, and errors between them stop nothing (B78, B82)."""
    done = await bench.run(
        ("write_file", {"path": "a.md", "content": "one"}),
        ("no_such_tool", {}),
        ("read_file", {"path": 7}),
        ("read_file", {"path": "a.md"}),
    )

    assert bench.outcomes == [OK, FAILED, FAILED, OK]
    assert list(done.records) == bench.reported
    assert [r.position for r in bench.reported] == [0, 1, 2, 3]
    assert bench.reported[3].shown == "one"


async def test_the_same_call_five_times_runs_five_times(bench: Bench) -> None:
    """Each id is executed once and gets its own result (B40)."""
    await bench.run(*[("shell", {"command": "echo x >> marker"})] * 5)

    assert [r.call_id for r in bench.reported] == ["c0", "c1", "c2", "c3", "c4"]
    assert (bench.context.workspace / "marker").read_text() == "x\n" * 5


async def test_a_call_that_is_to_be_skipped_is_asked_about_before_it_starts(bench: Bench) -> None:
    """It has its result, which says why; the calls beside it run."""
    bench.skip = lambda call: "not executed: enough" if "b" in call.arguments else ""
    await bench.run(
        *[("write_file", {"path": p, "content": "x"}) for p in ("a", "b", "c")], ("list_files", {})
    )

    assert bench.outcomes == [OK, SKIPPED, OK, OK]
    assert bench.reported[1].shown == "not executed: enough"
    assert bench.reported[3].shown == "a  1\nc  1"


async def test_each_command_has_its_idempotency_key(bench: Bench) -> None:
    """A command knows goal, wakeup, turn and call it belongs to."""
    await bench.run(*[("shell", {"command": "echo $GOALMODE_IDEMPOTENCY_KEY"})] * 2)

    assert [r.shown.splitlines()[-1] for r in bench.reported] == ["goal:4:1:c0", "goal:4:1:c1"]


async def test_reads_run_together_with_results_in_order(bench: Bench) -> None:
    """Calls that only read overlap, at most eight at a time; their results come in the order of the calls."""
    inside, most = 0, 0
    together = anyio.Event()  # Nobody goes on before as many are inside as may be.

    @tool(effect="read")
    async def peek(n: int) -> str:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        if inside == MAX_PARALLEL:
            together.set()
        await together.wait()
        for _ in range(40 - n):
            await anyio.lowlevel.checkpoint()
        inside -= 1
        return str(n)

    with anyio.fail_after(60):
        done = await bench.run(*[("peek", {"n": n}) for n in range(40)], extra=(peek,))

    assert most == MAX_PARALLEL
    assert [r.shown for r in done.records] == [str(n) for n in range(40)]
    assert list(done.records) == bench.reported


async def test_one_write_among_reads_keeps_the_order(bench: Bench) -> None:
    """Reads of a reply that also writes are not moved before or after the write."""
    await bench.run(
        ("write_file", {"path": "a", "content": "1"}),
        ("read_file", {"path": "a"}),
        ("write_file", {"path": "a", "content": "2"}),
        ("read_file", {"path": "a"}),
    )

    assert [r.shown for r in bench.reported][1::2] == ["1", "2"]


async def test_what_calls_save_is_seen_by_the_next(bench: Bench) -> None:
    """The work state grows from call to call, with the wakeup's number."""
    done = await bench.run(
        ("update_working_checkpoint", {"pending": ["check totals"], "summary": "begun"}),
        ("verify", {"item": "W1", "outcome": "passed", "evidence": "sum is 7"}),
    )

    assert bench.outcomes == [OK, OK]
    assert [(i.label, i.status, i.wakeup) for i in done.work.items] == [("W1", "verified", 4)]
    assert done.work.checkpoint.summary == "begun"


async def test_wait_ends_the_reply(bench: Bench) -> None:
    """An accepted `wait` skips what comes after it; one before any substantive success is refused."""
    sleep = ("wait", {"seconds": 60, "reason": "the build"})
    done = await bench.run(sleep, ("list_files", {}), sleep, ("shell", {"command": "touch ran"}))

    assert bench.outcomes == [FAILED, OK, OK, SKIPPED]
    assert done.exit is not None
    assert done.exit.wake_at == datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
    assert not (bench.context.workspace / "ran").exists()


async def test_what_is_not_on_offer_is_denied(bench: Bench) -> None:
    """In the wrap-up a state call runs and a write does not."""
    bench.allowed = frozenset({Effect.STATE, Effect.CONTROL})
    await bench.run(("shell", {"command": "touch ran"}), ("update_working_checkpoint", {"done": ["x"]}))

    assert bench.outcomes == [CallOutcome.DENIED, OK]
    assert not (bench.context.workspace / "ran").exists()


async def test_after_a_stop_nothing_more_starts(bench: Bench) -> None:
    """A stop asked for between two calls skips the rest, each with its result (B104)."""
    bench.stop = lambda: len(bench.reported) >= 2
    await bench.run(*[("shell", {"command": "echo x >> marker"})] * 4)

    assert bench.outcomes == [OK, OK, SKIPPED, SKIPPED]
    assert bench.reported[2].shown == "not executed: the run was stopped"
    assert (bench.context.workspace / "marker").read_text() == "x\nx\n"


async def test_reads_are_not_started_after_a_stop_either(bench: Bench) -> None:
    """Parallel reads ask for a stop each before it starts."""
    bench.stop = lambda: True
    await bench.run(("list_files", {}), ("list_files", {}))

    assert bench.outcomes == [SKIPPED, SKIPPED]


async def test_cancellation_in_the_middle_of_a_batch(
    bench: Bench, running: Callable[[str], list[str]]
) -> None:
    """Of four calls two are real, one is interrupted, one is skipped; all are reported, no process is left (B104)."""

    async def slow_store() -> None:
        await anyio.sleep(0.01)

    bench.before_report = slow_store
    workspace = bench.context.workspace
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(
            lambda: bench.run(
                ("shell", {"command": "touch one"}),
                ("shell", {"command": "touch two"}),
                ("shell", {"command": "touch three; sleep 90.0201"}),
                ("shell", {"command": "touch four"}),
            )
        )
        while not (workspace / "three").exists():  # noqa: ASYNC110 - another process makes it
            await anyio.sleep(0.01)
        tasks.cancel_scope.cancel()

    assert bench.outcomes == [OK, OK, CUT, SKIPPED]
    assert bench.reported[2].shown.startswith("interrupted: ")
    assert sorted(p.name for p in workspace.iterdir()) == ["one", "three", "two"]
    assert running("90.0201") == []


async def test_cancellation_between_two_calls_skips_the_second(bench: Bench) -> None:
    """What finished is reported although the cancellation came meanwhile, and the next call does not start."""
    with anyio.CancelScope() as scope:

        async def cancel() -> None:
            scope.cancel()
            await anyio.lowlevel.checkpoint()

        bench.before_report = cancel
        await bench.run(("shell", {"command": "true"}), ("shell", {"command": "touch ran"}))

    assert scope.cancelled_caught
    assert bench.outcomes == [OK, SKIPPED]
    assert not (bench.context.workspace / "ran").exists()


async def test_cancellation_of_parallel_reads(bench: Bench) -> None:
    """What finished is real, what had started is interrupted, in order."""
    finished = anyio.Event()

    @tool(effect="read")
    async def peek(hang: bool) -> str:
        if hang:
            await anyio.sleep_forever()
        finished.set()
        return "seen"

    async with anyio.create_task_group() as tasks:
        calls = [("peek", {"hang": True}), ("peek", {"hang": False}), ("peek", {"hang": True})]
        tasks.start_soon(lambda: bench.run(*calls, extra=(peek,)))
        await finished.wait()
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()

    assert bench.outcomes == [CUT, OK, CUT]


@pytest.mark.parametrize("effect", ["read", "write"])
async def test_an_ending_inside_a_call_is_reported_and_passes_through(effect: Any, bench: Bench) -> None:
    """`Stopped` is not wrapped, and leaves every call with its record."""

    @tool(effect=effect)
    async def last() -> None:
        raise Stopped(Exit(ExitReason.USER_ABORTED))

    with pytest.raises(Stopped):
        await bench.run(("list_files", {}), ("last", {}), extra=(last,))

    assert bench.outcomes[1] is CUT


@pytest.mark.parametrize("effect", ["read", "write"])
async def test_a_fenced_wakeup_reports_nothing_more(effect: Any, bench: Bench) -> None:
    """Once another owner has the goal, no record may be written any more."""

    @tool(effect=effect)
    async def last() -> None:
        raise Fenced

    with pytest.raises(Fenced):
        await bench.run(("last", {}), ("last", {}), extra=(last,))

    assert bench.reported == []


@pytest.mark.long
async def test_five_thousand_calls(bench: Bench) -> None:
    """Of 5,000 calls 64 run and every one has a record."""
    await bench.run(*[("list_files", {})] * 5_000)

    assert bench.outcomes == [OK] * 64 + [SKIPPED] * 4_936
