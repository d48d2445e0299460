"""`serve`: a process that wakes all goals of a store as they become due."""

from __future__ import annotations

import os
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial

import anyio
import click
from anyio import to_thread

from goalmode.cli.doctor import sqlite_finding
from goalmode.cli.interrupts import Interrupts
from goalmode.cli.logs import also_logged, log_options
from goalmode.cli.options import UTF8, Common, common
from goalmode.cli.output import complain, remark
from goalmode.cli.serving import Log, Waker
from goalmode.cli.stores import writing
from goalmode.cli.tracing import tracing
from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.finding import State
from goalmode.errors import BadInput
from goalmode.loop.ports import Event, Sink
from goalmode.orchestrator.goals import parse_seconds
from goalmode.scheduler import dbos
from goalmode.scheduler.daemon import CONCURRENCY, Daemon
from goalmode.scheduler.stopping import CLOSING_SECONDS
from goalmode.state import reading
from goalmode.state.owner import Owner
from goalmode.state.store import Store

MAX_CONCURRENCY = 256
SHORTEST_POLL, LONGEST_POLL = 0.1, 3600.0
LONGEST_GRACE = 86_400.0

_CTRL_C = Exit(ExitReason.INTERRUPTED, "Ctrl-C", {"requested": True})
"""The server is stopped, not its goals: they go on when a server runs again."""

STORE, DBOS = "store", "dbos"
"""Who says which server wakes what: the store, or DBOS by delivering it."""


@click.command()
@click.option(
    "--concurrency",
    metavar="N",
    type=click.IntRange(1, MAX_CONCURRENCY),
    default=CONCURRENCY,
    show_default=True,
    help="Wakeups at once.",
)
@click.option("--poll", metavar="SPAN", default="1s", help="How often to look for due goals. [default: 1s]")
@click.option(
    "--grace",
    metavar="SPAN",
    default="10s",
    help="On SIGTERM or Ctrl-C: end within this; turns that run are let end if there is time. [default: 10s]",
)
@click.option("--once", is_flag=True, help="Wake what is due now, each goal once, then end.")
@click.option(
    "--label",
    "labels",
    metavar="L",
    multiple=True,
    type=UTF8,
    help="Wake the goals of this host label. Repeatable. [default: this host's]",
)
@click.option(
    "--engine",
    type=click.Choice([STORE, DBOS]),
    default=STORE,
    show_default=True,
    help="dbos: goals are delivered to servers on several machines, which share a store on PostgreSQL.",
)
@log_options
@common  # fmt: skip
def serve(
    concurrency: int,
    poll: str,
    grace: str,
    once: bool,
    labels: Sequence[str],
    engine: str,
    common: Common,
) -> int:
    """Wake all goals as they become due, the longest due first, several at once. Several servers may share a store.

    A goal whose model is not configured here is passed over, and said so. SIGTERM and Ctrl-C stop claiming; wakeups
    that run are closed as INTERRUPTED, which does not count against their goals.
    """
    seconds = _span(poll, "poll", SHORTEST_POLL, LONGEST_POLL)
    patience = _span(grace, "grace", 0.0, LONGEST_GRACE)
    if any(not label.strip() for label in labels):
        raise BadInput("label", "", "a text that is not blank")
    if engine == DBOS:
        if once:
            raise BadInput("once", "--engine dbos", "for --engine store: of deliveries none is the last")
        dbos.require(common.store)
    here = Owner.current()
    with tracing(os.environ) as traced, writing(common, replace(here, serves=frozenset(labels))) as store:
        _warn(store)
        served = tuple(dict.fromkeys(labels)) or (here.host_label,)
        waker, log = Waker(store, common, traced), also_logged(Log(store, common), "goalmode.serve")
        with Interrupts(waker.end_tools, ctrl_c=_CTRL_C) as interrupts:
            log(Event("serving", {"labels": served, "owner": here.name, "concurrency": concurrency}))
            stop = _Stop(interrupts, patience)
            made = _daemon(
                engine,
                store,
                waker,
                labels=served,
                concurrency=concurrency,
                poll_seconds=seconds,
                sink=log,
                stop=lambda: interrupts.asked,
            )
            with made as daemon:
                body = (
                    partial(daemon.once, stop, grace_seconds=patience)
                    if once
                    else partial(daemon.serve, stop, poll_seconds=seconds, grace_seconds=patience)
                )
                anyio.run(_with_threads, concurrency, body)
            stop.in_time()
        log(Event("stopped"))
    return 0


def _daemon(
    engine: str,
    store: Store,
    waker: Waker,
    *,
    labels: Sequence[str],
    concurrency: int,
    poll_seconds: float,
    sink: Sink,
    stop: Callable[[], Exit | None],
) -> AbstractContextManager[Daemon]:
    if engine == STORE:
        return nullcontext(Daemon(store, waker, labels=labels, concurrency=concurrency, sink=sink))
    return dbos.daemon(
        store,
        waker,
        labels=labels,
        concurrency=concurrency,
        poll_seconds=poll_seconds,
        sink=sink,
        stop=stop,
    )


class _Stop:
    """What the signals ask for; the process ends when the time for it is over, whatever still runs."""

    def __init__(self, interrupts: Interrupts, grace_seconds: float) -> None:
        self._interrupts, self._grace = interrupts, grace_seconds
        self._timer: threading.Timer | None = None

    def __call__(self) -> Exit | None:
        if self._interrupts.asked is not None and self._timer is None:
            self._timer = threading.Timer(max(self._grace, CLOSING_SECONDS), self._too_late)
            self._timer.daemon = True
            self._timer.start()
        return self._interrupts.asked

    def in_time(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _too_late(self) -> None:
        complain(
            f"wakeups could not be closed within {self._grace:g} s; whoever claims next finds them interrupted"
        )
        self._interrupts.end_at_once(1)


async def _with_threads(concurrency: int, body: Callable[[], Awaitable[None]]) -> None:
    # A wakeup has one of them at most, to claim, to check and to write files in; anyio's own number is the server's.
    to_thread.current_default_thread_limiter().total_tokens += concurrency
    await body()


def _span(text: str, field: str, shortest: float, longest: float) -> float:
    seconds = parse_seconds(text, field)
    if not shortest <= seconds <= longest:
        raise BadInput(field, text, f"a time span from {shortest:g} to {longest:g} s")
    return seconds


def _warn(store: Store) -> None:
    found = sqlite_finding(reading.SQLITE_VERSION)
    if store.path is not None and found.state is State.WARNING:
        remark(f"{found.name} {found.detail}")
