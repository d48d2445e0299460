"""The calls of one reply, from plan to record: every call gets exactly one record, whatever happens meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace

import anyio
from anyio import lowlevel
from anyio.abc import TaskGroup

from goalmode.domain.calls import CallOutcome, CallRecord, Effect
from goalmode.domain.exits import Exit
from goalmode.domain.messages import ToolCall
from goalmode.domain.work import WorkState, apply
from goalmode.errors import Fenced
from goalmode.tools.cache import Cache
from goalmode.tools.execute import Executed, execute
from goalmode.tools.human import handed_over
from goalmode.tools.plan import Planned, plan
from goalmode.tools.record import record
from goalmode.tools.registry import Registry, ToolContext, ToolOutput

MAX_PARALLEL = 8
"""Reads of one reply that run at the same time."""

_STOPPED = "not executed: the run was stopped"
_CANCELLED = "not executed: the run was interrupted before this call started"
_ENDING = "not executed: an earlier call of this reply ends the wakeup"
_INTERRUPTED = (
    "interrupted: this call had started when the run was interrupted, and what it did is unknown; "
    "check its effects before you repeat it"
)


@dataclass(frozen=True, slots=True)
class Dispatched:
    """The records in the order of the calls, the work state after them, and the ending that a call asked for."""

    records: tuple[CallRecord, ...]
    work: WorkState
    exit: Exit | None


async def dispatch(
    calls: Sequence[ToolCall],
    *,
    registry: Registry,
    context: ToolContext,
    allowed: frozenset[Effect],
    wakeup: int,
    on_record: Callable[[CallRecord], Awaitable[None]],
    key: Callable[[str], str],
    stop: Callable[[], bool],
    skip: Callable[[ToolCall], str] = lambda call: "",
    cache: Cache | None = None,
    turn: int = 0,
) -> Dispatched:
    """Run the calls one after another, or at the same time if all of them only read.

    Cancelled, or stopped by any other exception, it first reports what finished, `interrupted` for what had started
    and `skipped` for the rest, and then lets the exception through.

    Args:
        context: as it is before the first call; each call sees the work state and the count of its predecessors.
        wakeup: sequence number, noted on what the calls save.
        on_record: awaited once for each call, in order, shielded from cancellation.
        key: a call's id to its idempotency key.
        stop: asked before each call starts; once true, the rest are skipped.
        skip: why a call that is about to start is skipped; empty if it is not.
        cache: the wakeup's; None: nothing outlives this reply.
        turn: of this reply, noted on what is cached.

    Raises:
        Fenced: another owner has the goal. Nothing more is reported.
    """
    kept = Cache() if cache is None else cache
    batch = _Batch(context, wakeup, on_record, key, stop, skip, kept, turn)
    planned = plan(calls, registry, allowed)
    running = [item for item in planned if item.outcome is None]
    if len(running) > 1 and all(
        item.tool is not None and item.tool.effect is Effect.READ for item in running
    ):
        await batch.together(planned)
    else:
        await batch.in_order(planned)
    return Dispatched(tuple(batch.records), batch.context.work, batch.exit)


@dataclass
class _Batch:
    """One reply's calls. `context` grows with each record."""

    context: ToolContext
    wakeup: int
    on_record: Callable[[CallRecord], Awaitable[None]]
    key: Callable[[str], str]
    stop: Callable[[], bool]
    skip: Callable[[ToolCall], str]
    cache: Cache
    turn: int
    records: list[CallRecord] = field(default_factory=list)
    exit: Exit | None = None

    async def in_order(self, planned: Sequence[Planned]) -> None:
        for position, item in enumerate(planned):
            started = False
            try:
                await lowlevel.checkpoint_if_cancelled()
                if reason := self._why_not(item):
                    executed = _not_run(CallOutcome.SKIPPED, reason)
                else:
                    started = True
                    executed = await self._answer(item)
            except Fenced:
                raise
            except BaseException:
                await self._abandon(planned[position:], {item.position} if started else set(), {})
                raise
            await self._keep(item, executed)

    async def together(self, planned: Sequence[Planned]) -> None:
        started: set[int] = set()
        finished: dict[int, Executed] = {}
        errors: list[BaseException] = []
        slots = anyio.CapacityLimiter(MAX_PARALLEL)

        async def one(item: Planned, tasks: TaskGroup) -> None:
            async with slots:
                if reason := self._why_not(item):
                    finished[item.position] = _not_run(CallOutcome.SKIPPED, reason)
                    return
                started.add(item.position)
                try:
                    finished[item.position] = await self._answer(item)
                except anyio.get_cancelled_exc_class():
                    raise
                except BaseException as error:  # noqa: BLE001 - raised below, outside of the group's wrapper
                    errors.append(error)
                    tasks.cancel_scope.cancel()

        try:
            async with anyio.create_task_group() as tasks:
                for item in planned:
                    tasks.start_soon(one, item, tasks)
            if errors:
                raise errors[0]
        except BaseException:
            if not any(isinstance(error, Fenced) for error in errors):
                await self._abandon(planned, started, finished)
            raise
        for item in planned:
            await self._keep(
                item, finished.get(item.position, _not_run(CallOutcome.INTERRUPTED, _INTERRUPTED))
            )

    async def _answer(self, item: Planned) -> Executed:
        """One call's result: the cache's, or the tool's, which may hand over to a person."""
        context = self._context(item)

        async def run() -> Executed:
            return handed_over(item, await execute(item, context), context.redact)

        return await self.cache.answer(item, context, turn=self.turn, run=run)

    def _why_not(self, item: Planned) -> str:
        if item.outcome is not None:
            return ""
        if self.exit is not None:
            return _ENDING
        return _STOPPED if self.stop() else self.skip(item.call)

    def _context(self, item: Planned) -> ToolContext:
        return replace(self.context, call_id=item.call.id, idempotency_key=self.key(item.call.id))

    async def _abandon(
        self, planned: Sequence[Planned], started: set[int], finished: dict[int, Executed]
    ) -> None:
        for item in planned:
            if item.position in finished:
                executed = finished[item.position]
            elif item.position in started:
                executed = _not_run(CallOutcome.INTERRUPTED, _INTERRUPTED)
            elif item.outcome is not None:
                executed = _not_run(item.outcome, item.problem)
            else:
                executed = _not_run(CallOutcome.SKIPPED, _CANCELLED)
            await self._keep(item, executed)

    async def _keep(self, item: Planned, executed: Executed) -> None:
        made = record(item, executed, self._context(item))
        work = self.context.work
        if made.patch is not None:
            work = apply(work, made.patch, wakeup=self.wakeup)
        self.context = replace(
            self.context, work=work, substantive=self.context.substantive + made.substantive
        )
        self.exit = self.exit or made.exit
        self.records.append(made)
        with anyio.CancelScope(shield=True):
            await self.on_record(made)


def _not_run(outcome: CallOutcome, text: str) -> Executed:
    return Executed(outcome, ToolOutput(text, ok=False))
