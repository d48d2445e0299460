"""The package `genericagent` from PyPI (1.0.7): it has no hooks, and its `--reflect` knows neither `init` nor `/exit`.

Its loop is called here, with a handler that derives from its own and a client that stands before its own.
"""

from __future__ import annotations

import io
import threading
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import redirect_stdout
from datetime import datetime
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

from anyio import to_thread

from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.goal import Goal
from goalmode.domain.redact import learned
from goalmode.errors import BadInput, ConfigError
from goalmode.loop.ports import Event, Sink
from goalmode.orchestrator.skip import Skip
from goalmode.reflect.body import NO_TOOL, Body, StepOutcome, originals
from goalmode.reflect.kit import Meter, keys_of, kit
from goalmode.reflect.offer import Entry, ours
from goalmode.reflect.relay import Relay
from goalmode.settings import Settings
from goalmode.state.store import Store
from goalmode.wiring import Workshop, begin_wakeup, run_wakeup

NAME = "genericagent"
TURNS = 1_000_000
"""More than any wakeup has: our loop counts the quota."""

_NOISY = ("agent_loop", "agentmain", "ga", "llmcore")
"""Its modules that print what they do."""


def load() -> ModuleType:
    """Its module `agentmain`.

    Raises:
        BadInput: it is not installed, or is one that we do not know. ConfigError: its `mykey.py` is missing or wrong.
    """
    try:
        with redirect_stdout(io.StringIO()):
            main = import_module(f"{NAME}.agentmain")
    except ModuleNotFoundError as error:
        if error.name in (NAME, f"{NAME}.agentmain"):
            expected = "pip install requests, then pip install --no-deps genericagent==1.0.7"
            raise BadInput("genericagent", "not installed", expected) from None
        raise BadInput(
            "genericagent", str(error), f"with what it imports: pip install {error.name}"
        ) from None
    except Exception as error:  # noqa: BLE001 - it raises what its configuration raises
        raise ConfigError(f"genericagent: {error}") from None
    lacking = [name for name in ("GeneraticAgent", "GenericAgentHandler", "agent_runner_loop", "TOOLS_SCHEMA")
               if not hasattr(main, name)]  # fmt: skip
    if lacking:
        raise BadInput(
            "genericagent", f"it has no {lacking[0]}", "version 1.0.7, or a checkout with --reflect"
        )
    for name in _NOISY:  # Their print only: standard output is ours.
        setattr(import_module(f"{NAME}.{name}"), "print", _unprinted)  # noqa: B010
    return main


class Driver:
    """Wakes one goal with the package's own loop, model and tools.

    Args:
        main: what `load` found. llm: which of the models of its `mykey.py`, from 0.

    Raises:
        ConfigError: there is no such model.
    """

    def __init__(self, main: Any, store: Store, goal: Goal, settings: Settings, llm: int = 0) -> None:
        self._main, self._store, self._goal, self._settings, self._llm = main, store, goal, settings, llm
        self._clients()

    def _clients(self) -> tuple[Any, tuple[str, ...]]:
        """A client whose sessions have heard nothing yet, and all keys."""
        try:
            agent = self._main.GeneraticAgent()
            client = agent.llmclients[self._llm]
        except IndexError:
            raise ConfigError(f"genericagent: its mykey.py configures no model number {self._llm}") from None
        return client, keys_of(agent.llmclients)

    async def wake(self, *, only_if_due: bool, sink: Sink, stop: Callable[[], Exit | None]) -> Exit | Skip:
        """Wake the goal once; see `goalmode.wiring.run_wakeup`."""
        client, secrets = self._clients()
        handlers: list[Any] = []
        relay = Relay(lambda: _end_code(handlers))
        schema = list(self._main.TOOLS_SCHEMA)
        shop = kit(self._goal, client, schema, relay, self._settings, secrets)
        self._store.redact = learned(self._store.redact, shop.redact)
        begin = partial(
            begin_wakeup, self._store, self._goal, profile=shop.profile, only_if_due=only_if_due, shop=shop
        )
        wake = await to_thread.run_sync(begin)
        if isinstance(wake, Skip):
            return wake
        body = self._body(client, schema, relay, shop, wake.clock.now)
        run = partial(self._run, client, body, schema, handlers)
        # Not waited for: a model call of its cannot be ended, only no longer listened to.
        threading.Thread(target=run, name="goalmode genericagent", daemon=True).start()

        def heard(event: Event) -> None:
            relay.heard(event)
            sink(event)

        try:
            return await run_wakeup(wake, relay, sink=heard, stop=lambda: stop() or relay.stop())
        finally:
            relay.end()

    def _body(
        self, client: Any, schema: Sequence[Entry], relay: Relay, shop: Workshop, now: Callable[[], datetime]
    ) -> Body:
        own = ours(shop.registry)
        theirs = {name: entry for name, entry in originals(schema).items() if name not in own}
        meter = Meter(client, shop.profile, None)
        return Body(relay, meter.usage, now, own, theirs, self._main.get_system_prompt())

    def _run(self, client: Any, body: Body, schema: list[Entry], handlers: list[Any]) -> None:
        """Its loop, until ours wants no more of it."""
        ending = Exit(ExitReason.YIELDED, "GenericAgent ended the task by itself", {"waited": False})
        try:
            if not body.waits():
                return
            handler = handler_class(self._main.GenericAgentHandler)(body, self._goal.workspace)
            handlers.append(handler)
            loop = self._main.agent_runner_loop(
                _Client(client, body), "", "", handler, schema, max_turns=TURNS, verbose=False
            )
            for _ in loop:
                if body.relay.over:
                    return
        except Exception as error:  # noqa: BLE001 - its loop catches nothing
            told = f"{type(error).__name__}: {error}"[:500]
            facts = {"error": told, "traceback": "".join(traceback.format_exception(error))[-8_000:]}
            ending = Exit(ExitReason.ENGINE_ERROR, f"GenericAgent: {told}", facts)
        finally:
            body.relay.leave(ending)


class _Client:
    """Stands before its client: puts our words in before a call, and tells of the reply after it."""

    def __init__(self, real: Any, body: Body) -> None:
        self._real, self._body = real, body

    @property
    def last_tools(self) -> str:
        return str(getattr(self._real, "last_tools", ""))

    @last_tools.setter
    def last_tools(self, value: str) -> None:
        self._real.last_tools = value

    def chat(self, messages: list[dict[str, Any]], tools: list[Entry]) -> Generator[str, None, Any]:
        self._body.write(self._real, messages, tools)
        response = yield from self._real.chat(messages=messages, tools=tools)
        self._body.replied(response)
        return response


def handler_class(base: type[Any]) -> type[Any]:
    """Its handler, with our loop before and behind each call."""

    class GoalHandler(base):  # type: ignore[misc]
        def __init__(self, body: Body, workspace: str) -> None:
            super().__init__(None, [], workspace)
            self._body = body

        def dispatch(
            self, tool_name: str, args: dict[str, Any], response: Any, index: int = 0
        ) -> Generator[Any, None, Any]:
            if tool_name == NO_TOOL:
                ret = yield from super().dispatch(tool_name, args, response, index)
                self._body.without_call(response, ret)
                return ret
            if self._body.may_run(tool_name, index):
                ret = yield from super().dispatch(tool_name, args, response, index)
                self._body.ran(index, ret)
            else:
                ret = self._body.told(index)
            last = index == len(response.tool_calls) - 1
            if last and not ret.should_exit and not self._body.waits():
                return StepOutcome(None, None, should_exit=True)
            return ret

    return GoalHandler


def _end_code(handlers: Sequence[Any]) -> None:
    """End what its `code_run` runs."""
    for handler in handlers:
        handler.code_stop_signal.append(1)


def _unprinted(*_: object, **__: object) -> None:
    pass
