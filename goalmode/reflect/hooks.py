"""GenericAgent's hooks (`plugins/hooks.py` of a checkout): what happens in its loop, told to the body of a wakeup.

Its loop ignores what a hook returns and swallows what it raises, so everything is done by changing its objects, and
whatever goes wrong here ends the wakeup for a stored reason.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from goalmode.context.phrases import withhold
from goalmode.domain.exits import Exit, ExitReason
from goalmode.reflect import said
from goalmode.reflect.body import NO_TOOL, Body, StepOutcome, forget, originals
from goalmode.reflect.kit import Meter
from goalmode.reflect.offer import ours
from goalmode.reflect.waking import Waking

Context = dict[str, Any]
"""The local variables of its loop at that moment."""

MARGIN = 8
"""Turns beyond the goal's quota that its loop allows: for calls that are no turns. Our loop counts the quota."""

CLOSING_SECONDS = 90.0
"""How long its task's end waits for our closing commit, a busy store included."""


class Hooks(Protocol):
    """Its module `plugins.hooks`."""

    def register(self, event: str) -> Callable[[Callable[[Context], None]], object]: ...


class Task:
    """One of its tasks that is a wakeup of ours, from `agent_before` to its end.

    Args:
        marker: the prompt that the task is known by.
        stats: where its sessions note what a call cost; None: nowhere.
    """

    def __init__(self, waking: Waking, marker: str, stats: dict[str, Any] | None) -> None:
        self.waking, self.marker = waking, marker
        self.begun = self.broken = self.ended = False
        self.handler: Any = None
        self._stats = stats
        self._quota = waking.wake.goal.settings.max_turns + MARGIN
        self._schema: list[dict[str, Any]] = []
        self._saved: list[dict[str, Any]] = []

    def agent_before(self, ctx: Context) -> None:
        """Reset all that leaks from task to task, and put the rendered context in."""
        self.begun, self.handler = True, ctx["handler"]
        handler, client, messages = ctx["handler"], ctx["client"], ctx["messages"]
        shop, wake = self.waking.shop, self.waking.wake
        for other in (client, *getattr(handler.parent, "llmclients", ())):
            if hasattr(other, "backend"):  # One that is configured wrongly is a dictionary.
                forget(other)
        handler.history_info.clear()
        handler.working.clear()
        self._schema, self._saved = ctx["tools_schema"], list(ctx["tools_schema"])
        self._meter = Meter(client, shop.profile, self._stats)
        self._ours = ours(shop.registry)
        theirs = {name: entry for name, entry in originals(self._saved).items() if name not in self._ours}
        place, system = _place(handler, wake.goal.workspace), str(messages[0]["content"])
        self._body = Body(
            self.waking.relay, self._meter.usage, wake.clock.now, self._ours, theirs, system, place
        )
        for name in self._ours:
            setattr(handler, f"do_{name}", self._told)
        added = str(messages[1]["content"]).removeprefix(self.marker)
        if self._go_on(handler):
            self._body.write(client, messages, self._schema)
            messages[-1]["content"] += added  # By plugins, which have come before us.

    def turn_before(self, ctx: Context) -> None:
        """Put in what our loop says since the last reply, and leave out what works against an unattended goal."""
        if ctx["turn"] > 1:
            self._body.write(ctx["client"], ctx["messages"], self._schema)

    def llm_before(self, ctx: Context) -> None:
        self._meter.reset()

    def llm_after(self, ctx: Context) -> None:
        self._body.replied(ctx["response"])

    def tool_before(self, ctx: Context) -> None:
        """Let a call run if our loop lets it; another method stands before its own for a call that it does not."""
        name = ctx["tool_name"]
        if name in self._ours or name == NO_TOOL or self._body.may_run(name, ctx["args"]["_index"]):
            return
        setattr(ctx["self"], f"do_{name}", self._told)

    def tool_after(self, ctx: Context) -> None:
        name, handler, ret = ctx["tool_name"], ctx["self"], ctx["ret"]
        if name == NO_TOOL:
            self._body.without_call(ctx["response"], ret)
        elif name not in self._ours and getattr(handler, f"do_{name}") == self._told:
            delattr(handler, f"do_{name}")
        elif name not in self._ours:
            self._body.ran(ctx["args"]["_index"], ret)

    def turn_after(self, ctx: Context) -> None:
        """Its loop wants to go on: it does if our loop has something to ask."""
        if not self._body.retrying:
            self._go_on(ctx["handler"])

    def agent_after(self, ctx: Context) -> None:
        """Its loop has ended by itself. If ours has not, it ends for that."""
        self.finish(_ending(ctx.get("exit_reason") or {}, ctx["handler"].max_turns))

    def finish(self, ending: Exit) -> None:
        """The task is over. Wait for our closing commit, and leave its tools as they were."""
        self.ended = True
        self.waking.relay.leave(ending)
        self.waking.wait(CLOSING_SECONDS)
        if self._schema:
            self._schema[:] = self._saved

    def unheard(self, result: str = "") -> Exit:
        """The ending of the task if its loop did not tell of one. `result`: all that was said in it."""
        if self.begun:
            return said.ending_of(result)
        told = "GenericAgent ran the task without its hooks; see goalmode generic-agent doctor"
        return Exit(ExitReason.ENGINE_ERROR, told, {"error": told})

    def broke(self, error: Exception) -> None:
        """A hook of ours has failed: the wakeup ends for that reason."""
        self.broken = True
        trace = "".join(traceback.format_exception(error))[-8_000:]
        facts = {"error": type(error).__name__, "traceback": trace}
        self.waking.relay.give_up(
            Exit(ExitReason.ENGINE_ERROR, f"{type(error).__name__}: {error}"[:500], facts)
        )

    def stop(self, event: str, ctx: Context) -> None:
        """In place of the hooks once one has failed: its loop ends as soon as it can, and runs no tool until then."""
        handler, ret = ctx.get("handler") or ctx["self"], ctx.get("ret")
        handler.max_turns = 0
        if event == "tool_before":
            setattr(handler, f"do_{ctx['tool_name']}", _exits)
        elif event == "agent_after":
            self.agent_after(ctx)
        elif ret is not None:
            ret.should_exit, ret.next_prompt = True, None

    def _go_on(self, handler: Any) -> bool:
        goes_on = self._body.waits()
        # Set each time: its plan mode sets it too.
        handler.max_turns = self._quota if goes_on else 0
        # What its own prompts repeat of the checkpoint in each turn.
        key_info, _ = withhold(self.waking.wake.work.checkpoint.key_info, "…")
        handler.working["key_info"] = key_info
        return goes_on

    def _told(self, args: dict[str, Any], response: Any) -> StepOutcome:
        return self._body.told(args["_index"])


EVENTS = (
    "agent_before",
    "turn_before",
    "llm_before",
    "llm_after",
    "tool_before",
    "tool_after",
    "turn_after",
    "agent_after",
)
"""What is listened to."""


def listen(hooks: Hooks, current: Callable[[], Task | None]) -> None:
    """Register for every event, once: what is registered stays for the life of the process.

    Args:
        current: the task that is a wakeup and has not ended, if there is one.
    """
    for event in EVENTS:
        hooks.register(event)(_listener(event, current))


def _listener(event: str, current: Callable[[], Task | None]) -> Callable[[Context], None]:
    def listener(ctx: Context) -> None:
        task = current()
        if task is None or task.ended:
            return
        if event == "agent_before":
            if task.begun or ctx.get("user_input") != task.marker:
                return
        elif not task.begun or ctx.get("handler", ctx.get("self")) is not task.handler:
            return
        try:
            if not task.broken:
                getattr(task, event)(ctx)
        except Exception as error:  # noqa: BLE001 - its loop would swallow it
            task.broke(error)
        if task.broken:
            task.stop(event, ctx)

    return listener


def _exits(args: dict[str, Any], response: Any) -> StepOutcome:
    """Stands for a tool that is not to run any more."""
    return StepOutcome(None, None, should_exit=True)


def _place(handler: Any, workspace: str) -> Callable[[str], str]:
    """Work in the goal's workspace; what its prompts say of the old directory, and of its memory beside it, follows."""
    before = str(handler.cwd)
    if Path(before) == Path(workspace):
        return str
    handler.cwd = workspace
    memory = str(Path(before).parent / "memory")

    def place(text: str) -> str:
        return text.replace(f"cwd = {before} ", f"cwd = {workspace} ").replace("../memory", memory)

    return place


def _ending(exit_reason: dict[str, Any], max_turns: int) -> Exit:
    """The ending for which its loop stopped, where ours did not want it to."""
    if not exit_reason:
        facts = {"limit": "max_turns", "value": max_turns}
        return Exit(
            ExitReason.MAX_TURNS_EXCEEDED, f"GenericAgent allows no more than {max_turns} turns", facts
        )
    told = str(exit_reason.get("result", ""))
    return Exit(ExitReason.YIELDED, f"GenericAgent ended the task by itself ({told})", {"waited": False})
