"""One planned call, run: within its time limit, under the gate if it has effects, every error of the tool an answer."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import anyio

from goalmode.domain.calls import SUBSTANTIVE, CacheUse, CallOutcome
from goalmode.domain.text import one_line
from goalmode.errors import BadInput, ToolError
from goalmode.tools.plan import Planned
from goalmode.tools.registry import Tool, ToolContext, ToolOutput
from goalmode.tools.workers import in_worker


@dataclass(frozen=True, slots=True)
class Executed:
    """What came of one call. `milliseconds` is 0 for a call that did not run; `cache` None if no cache was asked."""

    outcome: CallOutcome
    output: ToolOutput
    milliseconds: int = 0
    cache: CacheUse | None = None


async def execute(planned: Planned, context: ToolContext) -> Executed:
    """Run the call, or answer it with its problem.

    Raises:
        Fenced: another owner has the goal. Like `Stopped` and cancellation it is no answer and passes through, as do
            errors of the gate itself.
    """
    if planned.tool is None or planned.arguments is None:
        return Executed(planned.outcome or CallOutcome.FAILED, ToolOutput(planned.problem, ok=False))
    if planned.tool.effect not in SUBSTANTIVE:
        return await _run(planned.tool, planned.arguments, context)
    async with _gate(context) as held:
        return await _run(planned.tool, planned.arguments, held)


@asynccontextmanager
async def _gate(context: ToolContext) -> AsyncIterator[ToolContext]:
    """The context with the gate's hold. Entered in a thread: somebody else may have the lock for some seconds."""
    gate = context.gate.enter(context.call_id)
    hold = await in_worker(gate.__enter__)
    try:
        yield replace(context, hold=hold)
    except BaseException:
        if not gate.__exit__(*sys.exc_info()):
            raise
    else:
        gate.__exit__(None, None, None)


async def _run(tool: Tool, arguments: dict[str, object], context: ToolContext) -> Executed:
    started = time.monotonic()
    output = ToolOutput(
        f"{tool.name}: ended after its time limit of {tool.timeout_seconds:g} seconds", ok=False
    )
    with anyio.move_on_after(tool.timeout_seconds):
        output = await _answer(tool, arguments, context)
    outcome = CallOutcome.SUCCESS if output.ok else CallOutcome.FAILED
    return Executed(outcome, output, round((time.monotonic() - started) * 1000))


async def _answer(tool: Tool, arguments: dict[str, object], context: ToolContext) -> ToolOutput:
    try:
        return await tool.run(context, arguments)
    except (ToolError, BadInput) as error:
        return ToolOutput(str(error), ok=False)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a tool raises is its answer
        return ToolOutput(f"{type(error).__name__}: {one_line(str(error), 500)}", ok=False)
