"""Running one call: its errors are answers, the wakeup's endings are not."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any

import anyio
import pytest

from goalmode.domain.calls import CallOutcome, Effect
from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.messages import ToolCall
from goalmode.errors import Fenced, Stopped, ToolError
from goalmode.tools.execute import execute
from goalmode.tools.plan import Planned, plan
from goalmode.tools.registry import Registry, Tool, ToolContext, tool

pytestmark = pytest.mark.anyio


def planned(made: Tool, arguments: str = "{}") -> Planned:
    return plan([ToolCall("call_1", made.name, arguments)], Registry([made]), frozenset(Effect))[0]


def raising(error: BaseException) -> Tool:
    @tool
    async def fail() -> None:
        raise error

    return fail


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ToolError("no such row"), "no such row"),
        (ValueError("bad\nvalue \x1b[31m"), "ValueError: bad\\nvalue \\x1b[31m"),
        (TimeoutError(), "TimeoutError: "),
        (SystemExit(3), "SystemExit: 3"),
    ],
    ids=lambda value: type(value).__name__,
)
async def test_an_error_of_the_tool_is_a_failed_result_of_one_line(
    error: BaseException, told: str, context: ToolContext
) -> None:
    """Whatever a tool raises is told to the model and ends nothing (B82)."""
    executed = await execute(planned(raising(error)), context)

    assert (executed.outcome, executed.output.text) == (CallOutcome.FAILED, told)


@pytest.mark.parametrize(
    "error", [Fenced(), Stopped(Exit(ExitReason.USER_ABORTED)), KeyboardInterrupt()], ids=repr
)
async def test_endings_pass_through_a_tool(error: BaseException, context: ToolContext) -> None:
    """What ends the wakeup is no answer to a call."""
    with pytest.raises(type(error)):
        await execute(planned(raising(error)), context)


async def test_the_time_limit_is_an_answer(context: ToolContext, gate: Any) -> None:
    """A tool beyond its limit is cancelled, told so, and has left the gate."""

    @tool
    async def hang() -> None:
        await anyio.sleep_forever()

    executed = await execute(planned(replace(hang, timeout_seconds=0.05)), context)

    assert executed.outcome is CallOutcome.FAILED
    assert executed.output.text == "hang: ended after its time limit of 0.05 seconds"
    assert (gate.entered, gate.left) == (["call_1"], ["call_1"])


async def test_a_plain_function_that_never_returns_is_left_behind(context: ToolContext) -> None:
    """An endless Python tool blocks neither its caller nor the end of the process (B121)."""
    release = threading.Event()

    @tool(timeout_seconds=0.05)
    def spin() -> str:
        release.wait()
        return threading.current_thread().name

    started = time.monotonic()
    executed = await execute(planned(spin), context)
    left = [t for t in threading.enumerate() if t.name == "goalmode tool"]
    release.set()
    for thread in left:
        thread.join()

    assert executed.outcome is CallOutcome.FAILED
    assert time.monotonic() - started < 2
    assert [thread.daemon for thread in left] == [True]


async def test_a_stop_iteration_of_a_plain_function_is_an_answer_too(context: ToolContext) -> None:
    """The one exception that no future holds is told like the others."""

    @tool
    def empty() -> object:
        return next(iter(()))

    executed = await execute(planned(empty), context)

    assert executed.output.text == "RuntimeError: StopIteration: "


@pytest.mark.parametrize(("effect", "entered"), [("read", 1), ("write", 1), ("state", 0), ("control", 0)])
async def test_reads_and_writes_pass_the_gate(
    effect: Any, entered: int, context: ToolContext, gate: Any
) -> None:
    """A tool with effects runs while the gate's lock is held, and sees it; the others need none."""
    holds = []

    @tool(effect=effect)
    async def look(context: ToolContext) -> str:
        holds.append(context.hold)
        return ""

    executed = await execute(planned(look), context)

    assert executed.outcome is CallOutcome.SUCCESS
    assert len(gate.entered) == len(gate.left) == entered
    assert [hold is not None for hold in holds] == [bool(entered)]


@pytest.mark.parametrize("error", [Fenced(), OSError("disk")], ids=repr)
async def test_an_error_of_the_gate_is_no_answer(
    error: BaseException, context: ToolContext, gate: Any
) -> None:
    """Where the gate stays shut, the tool does not run and the host is told, not the model."""
    gate.error = error
    with pytest.raises(type(error)):
        await execute(planned(raising(AssertionError("ran"))), context)


async def test_a_planned_problem_is_answered_without_running(context: ToolContext, gate: Any) -> None:
    """A call that cannot run gets its problem as the result."""
    executed = await execute(planned(raising(AssertionError("ran")), '{"a": 1}'), context)

    assert (executed.outcome, executed.milliseconds, gate.entered) == (CallOutcome.FAILED, 0, [])
    assert executed.output.text.startswith("fail: a: unknown")
