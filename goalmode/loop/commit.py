"""The commit that ends a turn: what its calls came to, and what the next call may cost."""

from __future__ import annotations

from goalmode.domain.calls import Effect
from goalmode.domain.messages import NO_USAGE, ToolResult
from goalmode.loop.act import Done, action, tell
from goalmode.loop.turn import Run
from goalmode.state.journal import TurnOutcome
from goalmode.tools.workers import seen_through


async def commit(run: Run, done: Done, *, last: bool) -> None:
    """Store what the turn came to, say it, and tell of it.

    Args:
        last: no call follows, or one whose cost is reserved by itself.
    """
    run.say(*done.messages)
    if not run.window.forced:  # A reply that has filled the model's window is no part of what begins anew.
        run.settled = len(run.messages)
    recoveries = int(run.recovering)
    outcome = TurnOutcome(
        records=done.unstored,
        messages=done.messages,
        whole=[record.call_id for record in done.records if record.shown_whole],
        work=done.work,
        before=run.wake.work,
        checks=done.checks,
        moved=done.moved,
        reserve=NO_USAGE if last else run.reserve,
        counters={"recoveries": recoveries, "rejections": done.rejected},
        durable=any(record.effect is Effect.WRITE for record in done.records),
    )
    await seen_through(run.wake.outcome, outcome)
    run.wake.actions += [action(run, record) for record in done.records]
    for record in done.unstored:
        tell(run, record)
    run.emit("turn", turn=run.history.turn, results=sum(isinstance(m, ToolResult) for m in done.messages))
