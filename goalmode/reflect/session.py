"""One process of `agentmain.py --reflect` for one goal: when to wake it, when to wait, when to leave.

The file that GenericAgent loads, and loads again when it changes, only calls this; what must outlive a reload is here.
"""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

from goalmode.domain.exits import EXIT_FACTS, Exit, ExitReason, GoalStatus
from goalmode.domain.goal import Goal
from goalmode.domain.redact import learned
from goalmode.domain.text import one_line
from goalmode.errors import GoalmodeError, UnknownGoal
from goalmode.orchestrator.skip import Skip
from goalmode.reflect import state_in
from goalmode.reflect.hooks import Hooks, Task, listen
from goalmode.reflect.kit import keys_of, kit
from goalmode.reflect.relay import Relay
from goalmode.reflect.waking import Waking
from goalmode.settings import Settings, load_settings
from goalmode.state import goals, reading
from goalmode.state.store import Store
from goalmode.wiring import begin_wakeup

EXIT = "/exit"
"""What `check` returns to end the process."""

OVER = (GoalStatus.DONE, GoalStatus.ABORTED, GoalStatus.EXHAUSTED)
"""Only these end it: whatever else holds a goal up may be over at any moment, an answer in the night for one."""

DRAIN_ERROR = "[ERROR]"
"""What `on_done` gets in place of a result when the task has said nothing for 2,200 s and still runs."""

LAST_WORDS_SECONDS = 5.0


class Host:
    """GenericAgent, running as the main program.

    Args:
        main: its module `agentmain`. hooks: its module `plugins.hooks`. stats: `llmcore.STATS`, None without it.
    """

    def __init__(self, main: Any, hooks: Hooks, stats: dict[str, Any] | None = None) -> None:
        self.main, self.hooks, self.stats = main, hooks, stats
        self._abort: Callable[[], None] = main.agent.abort
        main.agent.abort = self._aborted
        self.on_abort: Callable[[], None] = lambda: None

    @property
    def busy(self) -> bool:
        """Whether it works on a task, or has one to begin."""
        return bool(self.main.agent.is_running) or not self.main.agent.task_queue.empty()

    def abort(self) -> None:
        """End what it does, without anybody having asked for it there."""
        self._abort()

    def _aborted(self) -> None:
        self.on_abort()
        self._abort()


class Session:
    """The goal's, as long as the process lives.

    Args:
        uid: the goal's id, or how it begins. tell: says a line to whoever reads the process's output.
    """

    def __init__(
        self, host: Host, store: Store, uid: str, settings: Settings, tell: Callable[[str], None]
    ) -> None:
        self._host, self._store, self._settings, self._tell = host, store, settings, tell
        self._goal = goals.find(store, uid)
        self._task: Task | None = None
        self._woke = False
        self._told = ""
        host.on_abort = self._aborted
        listen(host.hooks, lambda: self._task)

    def check(self) -> str | None:
        """The next task: a short marker, which the hooks know; None for none now; `/exit` for none any more."""
        if self._task is not None and not self._is_over(self._task):
            return None
        self._task = None
        try:
            goal = goals.get(self._store, self._goal.id)
        except UnknownGoal:
            self.say(f"{self._goal.uid}: is gone, it was deleted")
            return EXIT
        if goal.status in OVER:
            self.say(f"{goal.uid}: is {goal.status}: {goal.status_detail}; see goalmode why {goal.uid}")
            return EXIT
        return None if self._host.busy else self._wake(goal)

    def done(self, result: str) -> None:
        """Its task has ended, or has been silent for so long that it is no longer listened to."""
        task = self._task
        if task is None:
            return
        if not task.ended:
            if result.startswith(DRAIN_ERROR) and self._host.busy:
                self.say(f"{self._goal.uid}: the task goes on although GenericAgent no longer waits for it")
                return
            task.finish(task.unheard(result))
        self._report(task)

    def close(self) -> None:
        """The process ends. A wakeup that runs is closed as interrupted, and the goal stays due."""
        task, ending = self._task, Exit(ExitReason.INTERRUPTED, "GenericAgent ended", {"requested": True})
        if task is not None:
            task.waking.relay.give_up(ending)
            task.waking.wait(LAST_WORDS_SECONDS)

    def _wake(self, goal: Goal) -> str | None:
        relay = Relay(self._interrupt)
        agent, schema = self._host.main.agent, self._host.main.TOOLS_SCHEMA
        client = agent.llmclient
        if not hasattr(client, "backend"):  # None, or the dictionary of one that is configured wrongly.
            self.say(f"{goal.uid}: waits: GenericAgent has no model, see its mykey.py")
            return None
        # Each time: it reads its keys again when their file changes.
        shop = kit(goal, client, schema, relay, self._settings, keys_of(agent.llmclients))
        self._store.redact = learned(self._store.redact, shop.redact)
        if not self._woke:  # Later on it holds what our own wakeups left, which is stored.
            self._take_over(goal)
        wake = begin_wakeup(self._store, goal, profile=shop.profile, shop=shop)
        if isinstance(wake, Skip):
            self.say(f"{goal.uid}: waits ({wake.reason}): {wake.detail}")
            return None
        task = Task(Waking(wake, shop, relay), f"[goalmode {goal.uid} wakeup {wake.seq}]", self._host.stats)
        self._task, self._woke = task, True
        if relay.next() is None:  # There is no call to make: a limit is spent.
            task.finish(Exit(ExitReason.ENGINE_ERROR))
            self._report(task)
            return None
        return task.marker

    def _take_over(self, goal: Goal) -> None:
        taken = state_in.take_over(self._store, goal, self._host.main)
        if taken is not None:
            self.say(
                f"{goal.uid}: took over from GenericAgent: {len(taken.checkpoint.key_info)} characters of key info, "
                f"{len(taken.items)} calls, {len(taken.written)} files"
            )

    def _is_over(self, task: Task) -> bool:
        """Whether the task has ended. One that its loop has lost meanwhile ends here."""
        if task.ended:
            return True
        if self._host.busy:
            if task.waking.wait(0):
                seq = task.waking.wake.seq
                self.say(
                    f"{self._goal.uid}: waits: wakeup {seq} is over, and GenericAgent is still busy with it; "
                    "if that does not end, end its process"
                )
            return False
        task.finish(task.unheard())
        self._report(task)
        return True

    def _interrupt(self) -> None:
        """Our loop stops in the middle of a call of the host."""
        task = self._task
        if task is not None and task.begun and not task.ended:
            self._host.abort()

    def _aborted(self) -> None:
        """Somebody aborts in GenericAgent: the goal is paused, or it would be woken again at once."""
        task = self._task
        if task is not None and task.begun and not task.ended:
            facts = {"control": "pause"}
            task.waking.relay.give_up(Exit(ExitReason.USER_ABORTED, "aborted in GenericAgent", facts))

    def _report(self, task: Task) -> None:
        head = f"{self._goal.uid}: wakeup {task.waking.wake.seq}"
        if task.waking.problem is not None:
            self.say(f"{head}: not closed: {task.waking.problem}")
        elif task.waking.ending is not None:
            ending = task.waking.ending
            self.say(f"{head}: {ending.reason}: {EXIT_FACTS[ending.reason].sentence}: {ending.detail}")

    def say(self, line: str) -> None:
        """Tell what is new: a goal that waits is looked at every few seconds."""
        if line != self._told:
            self._told = line
            self._tell(one_line(line, 500))


_session: Session | None = None


def start(arguments: Mapping[str, str]) -> None:
    """Find GenericAgent and the goal. A second call, after a reload, changes nothing.

    Raises:
        SystemExit: the process cannot do its work; the message is one line.
    """
    global _session
    if _session is not None:
        return
    uid = arguments.get("goal") or os.environ.get("GOALMODE_GOAL", "")
    if not uid:
        raise SystemExit("goalmode: say which goal: --goal ID (with a space, not =), or GOALMODE_GOAL=ID")
    address = arguments.get("store")
    try:
        if not reading.exists(address):
            raise UnknownGoal(f"no goal {uid!r}: there is no store at {reading.name_of(address)} yet")
        settings = load_settings(None, os.environ)
        _session = Session(_host(), Store(address), uid, settings, _print)
    except GoalmodeError as error:
        raise SystemExit(f"goalmode: {error}") from None
    atexit.register(_session.close)


def check() -> str | None:
    """See `Session.check`. What cannot be done just now, such as with a store that is busy, is tried again."""
    if _session is None:
        raise SystemExit(
            "goalmode: init was not called; this GenericAgent is too old, see goalmode generic-agent doctor"
        )
    try:
        return _session.check()
    except GoalmodeError as error:
        _session.say(f"cannot go on just now: {error}")
    except Exception as error:  # noqa: BLE001 - GenericAgent would print it every few seconds
        _session.say(f"cannot go on: goalmode itself failed: {type(error).__name__}: {error}")
    return None


def done(result: str) -> None:
    if _session is not None:
        _session.done(result)


def _host() -> Host:
    main = sys.modules["__main__"]
    if not hasattr(main, "agent") or not hasattr(main, "TOOLS_SCHEMA"):
        raise SystemExit(
            "goalmode: this is no agentmain.py: run it as python agentmain.py --reflect FILE --goal ID"
        )
    try:
        hooks: Any = import_module("plugins.hooks")  # GenericAgent's, which has put itself on the path.
    except ImportError:
        raise SystemExit(
            "goalmode: this GenericAgent has no plugins/hooks.py; see goalmode generic-agent doctor"
        ) from None
    stats = getattr(sys.modules.get("llmcore"), "STATS", None)
    return Host(main, hooks, stats)


def _print(line: str) -> None:
    with suppress(OSError, ValueError):
        sys.stdout.write(f"[goalmode] {line}\n")
        sys.stdout.flush()
