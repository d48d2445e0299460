"""Waking goals from the command line: store, model, signals and display put together for one command."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext, suppress
from functools import partial

import anyio
from anyio import to_thread

from goalmode.cli import secrets
from goalmode.cli.interrupts import Interrupts
from goalmode.cli.options import Common
from goalmode.cli.output import complain
from goalmode.cli.progress import Progress, display, show_cursor
from goalmode.cli.tracing import Traced, tracing
from goalmode.configured import Configured, configure, goal_profile
from goalmode.domain.exits import Exit, ExitReason, GoalStatus
from goalmode.domain.goal import Control, Goal
from goalmode.domain.text import safe
from goalmode.errors import GoalmodeError, ModelError
from goalmode.loop.ports import Event
from goalmode.orchestrator.costs import refuse_unpriced
from goalmode.orchestrator.goals import stop_goal
from goalmode.orchestrator.questions import by_itself_at
from goalmode.orchestrator.run import Ending, run_goal
from goalmode.orchestrator.skip import Skip
from goalmode.orchestrator.wake import Wake
from goalmode.settings import load_settings
from goalmode.state import goals
from goalmode.state.store import Store
from goalmode.tools.capabilities import hide_memory
from goalmode.wiring import begin_wakeup, open_model, run_wakeup, workshop

HOOK_SECONDS = 60.0
"""How long a command of `--on-ending` may take."""

MAX_DETAIL = 4_000
"""Characters of an ending's detail in its environment, which holds no text of any length."""


def configured_for(goal: Goal, common: Common) -> Configured:
    """The goal's model as this user has configured it. From here on this process's memory holds its key, and is hidden.

    What lets somebody in is known to all that this command prints and stores.

    Raises:
        ConfigError, BadInput: it cannot be run with.
    """
    hide_memory()
    configured = configure(goal, common.config, os.environ)
    secrets.known().add(configured.credentials.redact)
    return configured


def must_be_known(goal: Goal, common: Common, *, chosen: bool) -> None:
    """There must be such a model here if it was `chosen` here, and it must have a price where the goal's cost is
    limited. Its key is not asked for.

    Raises:
        ConfigError, BadInput: it has none, or there is no such model.
    """
    if chosen or goal.limits.cost_micro is not None:
        refuse_unpriced(goal.limits, goal_profile(goal, load_settings(common.config, os.environ)))


class Runner:
    """Wakes one goal, once or until there is nothing more to do."""

    def __init__(
        self, store: Store, goal: Goal, configured: Configured, common: Common, on_ending: str | None = None
    ) -> None:
        self._store, self._goal, self._on_ending = store, goal, on_ending
        self._shop = workshop(
            goal,
            configured.profile,
            environ=os.environ,
            known=configured.credentials,
            redact=secrets.known(),
            prompts=configured.prompts,
            sandboxing=configured.sandboxing,
            servers=configured.servers,
        )
        self._progress = Progress(
            display(json=common.json, quiet=common.quiet, now=store.clock.now), secrets.known()
        )
        self._model = open_model(
            configured.profile,
            configured.key,
            clock=store.clock,
            lang=goal.settings.lang,
            on_retry=self._retried,
        )
        self._interrupts = Interrupts(self._end_at_once)
        self._traced: Traced = nullcontext
        self._wake: Wake | None = None

    def wake_once(self) -> Ending:
        """Wake the goal now, whenever it is due."""
        return self._run(partial(self._wake_goal, only_if_due=False))

    def run(self, max_wait_seconds: float) -> Ending:
        """Wake the goal until it is done, waiting, blocked or spent."""

        async def until_over() -> Ending:
            return await run_goal(
                self._store,
                self._goal.id,
                partial(self._wake_goal, only_if_due=True),
                max_wait_seconds=max_wait_seconds,
                sink=self._progress,
                stop=lambda: self._interrupts.asked,
            )

        return self._run(until_over)

    def _run(self, body: Callable[[], Awaitable[Ending]]) -> Ending:
        with tracing(os.environ) as self._traced, self._interrupts:
            try:
                return self._stopped_between(anyio.run(self._to_the_end, body))
            finally:
                self._progress.close()

    async def _to_the_end(self, body: Callable[[], Awaitable[Ending]]) -> Ending:
        try:
            return await body()
        finally:
            with anyio.CancelScope(shield=True):
                await self._model.aclose()

    async def _wake_goal(self, *, only_if_due: bool) -> Ending:
        begin = partial(
            begin_wakeup,
            self._store,
            self._goal,
            profile=self._shop.profile,
            only_if_due=only_if_due,
            shop=self._shop,
        )
        wake = await to_thread.run_sync(begin)  # Not here: the store may be busy, and signals must be seen.
        if isinstance(wake, Skip):
            return wake
        self._wake = wake
        try:
            with self._traced(self._progress) as sink:
                ending = await run_wakeup(wake, self._model, sink=sink, stop=lambda: self._interrupts.asked)
        finally:
            self._wake = None
        if ending.facts.get("fenced"):
            self._progress(Event("taken_over", {"goal": self._goal.uid, "wakeup": wake.seq}))
        elif self._on_ending:
            await to_thread.run_sync(self._call_hook, self._on_ending, wake.seq, ending)
        return ending

    def _stopped_between(self, ending: Ending) -> Ending:
        """A Ctrl-C while no wakeup ran pauses the goal too: it must not start again by itself."""
        asked = self._interrupts.asked
        if asked is None or (isinstance(ending, Exit) and ending.reason is asked.reason):
            return ending
        goal = goals.get(self._store, self._goal.id)
        waits = goal.status is GoalStatus.WAITING_USER and by_itself_at(self._store, goal) is not None
        if not (goal.status is GoalStatus.ACTIVE or waits):
            return ending
        if isinstance(ending, Skip) and ending.due_at is None:
            return ending
        if asked.reason is ExitReason.USER_ABORTED:
            stop_goal(self._store, goal, Control.PAUSE)
        facts = {"exit_reason": asked.reason.value, "detail": asked.detail}
        self._progress(Event("stopped", {"goal": goal.uid, **facts}))
        return asked

    def _call_hook(self, command: str, wakeup: int, ending: Exit) -> None:
        status = goals.get(self._store, self._goal.id).status
        environment = {
            **self._shop.environment,
            "GOALMODE_GOAL": self._goal.uid,
            "GOALMODE_WAKEUP": str(wakeup),
            "GOALMODE_EXIT_REASON": ending.reason.value,
            "GOALMODE_EXIT_DETAIL": safe(ending.detail)[:MAX_DETAIL],
            "GOALMODE_STATUS": status.value,
        }
        problem = _failure_of(command, environment)
        if problem:
            complain(f"--on-ending {problem}: {command}")

    def _retried(self, error: ModelError, seconds: float, attempt: int) -> None:
        data = {"goal": self._goal.uid, "error": str(error), "seconds": seconds, "attempt": attempt}
        self._progress(Event("retry", data))

    def _end_at_once(self) -> None:
        """The last words of a process that ends at once: no tool goes on, and the goal does not start by itself."""
        show_cursor()
        if self._wake is not None:
            self._wake.end_tools()
        with suppress(GoalmodeError):
            stop_goal(self._store, goals.get(self._store, self._goal.id), Control.PAUSE)


def _failure_of(command: str, environment: Mapping[str, str]) -> str:
    """Run a hook, its output on standard error; empty if it went well."""
    try:
        done = subprocess.run(
            command,
            shell=True,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=2,
            timeout=HOOK_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"took longer than {HOOK_SECONDS:.0f} s"
    except (OSError, ValueError) as error:
        return f"could not be started ({error})"
    return f"exited with {done.returncode}" if done.returncode else ""
