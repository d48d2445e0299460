"""What a tool is, the set of tools on offer, and `@tool`, which makes one of a Python function."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Awaitable, Callable, Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol, get_type_hints, overload

from goalmode.domain.calls import Effect
from goalmode.domain.exits import Exit
from goalmode.domain.messages import ToolSpec
from goalmode.domain.outside import PREFIX, allows
from goalmode.domain.redact import Redactor
from goalmode.domain.work import StatePatch, WorkState
from goalmode.errors import BadInput
from goalmode.tools.confinement import FREE, Confinement
from goalmode.tools.longterm import LongTermMemory
from goalmode.tools.schema import schema_of
from goalmode.tools.thread import in_daemon_thread

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
"""What every provider accepts as a tool's name."""


class GateHold(Protocol):
    """Proof that an effect may run: a shared lock that a new owner of the goal waits for."""

    fd: int | None
    """Inherited by the effect's processes, so that the lock lives as long as they do. None where there is no lock."""

    def mark(self, process_group: int) -> None:
        """Write down the process group, so that a new owner can end it."""


class EffectGate(Protocol):
    """Every effect passes it first. Implemented by the store's lock files."""

    def enter(self, call_id: str) -> AbstractContextManager[GateHold]:
        """Take the lock for one call, then read the goal's fence once more.

        Raises:
            Fenced: another owner has the goal.
        """
        ...


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a running tool may see.

    Attributes:
        workspace: the directory the goal works in; every path a tool takes is inside it.
        work: the work state, with what earlier calls of the same reply saved.
        environment: of child processes; it never holds a provider's key.
        idempotency_key: `goal:wakeup:turn:call`, in the children's environment as `GOALMODE_IDEMPOTENCY_KEY`.
        substantive: successful read and write calls of this wakeup so far.
        hold: the gate's lock while a READ or WRITE tool runs; its processes inherit `hold.fd`.
        now: aware UTC; the time that `wait` counts from.
        memory: what outlives the goal; None where there is none.
        confinement: what shell commands are started in.
    """

    workspace: Path
    gate: EffectGate
    call_id: str = ""
    work: WorkState = WorkState()
    environment: Mapping[str, str] = field(default_factory=dict)
    idempotency_key: str = ""
    substantive: int = 0
    redact: Redactor = field(default_factory=Redactor)
    hold: GateHold | None = None
    now: datetime | None = None
    memory: LongTermMemory | None = None
    confinement: Confinement = FREE


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool returned. `ok=False` is a failed call, told to the model; it never ends the wakeup by itself.

    Attributes:
        size: bytes of the whole result where `text` is already cut; None where `text` is whole.
        redactions: secrets struck out already, before such a cut.
        varies: the piece of `text` that differs from run to run where the result is the same: a duration.
    """

    text: str
    ok: bool = True
    exit_code: int | None = None
    patch: StatePatch | None = None
    exit: Exit | None = None
    size: int | None = None
    redactions: int = 0
    varies: str = ""


Run = Callable[[ToolContext, dict[str, Any]], Awaitable[ToolOutput]]

Fingerprint = Callable[[ToolContext, Mapping[str, Any]], Hashable]
"""What besides the arguments a result depends on, as a small value; None or an error: do not cache this call.

A plain function, run in a thread before the tool: a change meanwhile then makes a miss, never a stale hit.
"""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool on offer.

    Attributes:
        run: gets arguments that match the schema; raises ToolError for an answer that is an error.
        brief: the call's subject, from its arguments.
        timeout_seconds: after which the call is ended and answered with an error.
        cacheable: equal calls of one wakeup may be answered from the first result; for READ tools only.
        fingerprint: of a cacheable tool whose result depends on more than its arguments.
        may_hand_over: a result that says `waiting_human` ends the wakeup, see `goalmode.tools.human`.
        checks_arguments: the tool itself says what is wrong with them; they need only be a JSON object. For schemas
            beyond what `goalmode.tools.schema` knows.
    """

    spec: ToolSpec
    effect: Effect
    run: Run
    brief: Callable[[Mapping[str, Any]], str] = lambda arguments: ""
    timeout_seconds: float = 120.0
    cacheable: bool = False
    fingerprint: Fingerprint | None = None
    may_hand_over: bool = False
    checks_arguments: bool = False

    @property
    def name(self) -> str:
        return self.spec.name


class Registry:
    """The tools on offer, in the order they were given.

    Raises:
        BadInput: two tools share a name, a name is not one that every provider accepts, or a tool that does not
            only read is cacheable.
    """

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if not _NAME.fullmatch(tool.name):
                raise BadInput("tool name", tool.name, f"must match {_NAME.pattern}")
            if tool.name in self._tools:
                raise BadInput("tool name", tool.name, "another tool has this name")
            if tool.cacheable and tool.effect is not Effect.READ:
                raise BadInput(f"tool {tool.name}, effect", tool.effect.value, "a cacheable tool only reads")
            self._tools[tool.name] = tool

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def lookup(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def specs(self, effects: frozenset[Effect] | None = None) -> tuple[ToolSpec, ...]:
        """What a model is told, of the tools with these effects; None: of all."""
        return tuple(tool.spec for tool in self if effects is None or tool.effect in effects)

    def only(self, names: Collection[str]) -> Registry:
        """The tools called so, in this registry's order.

        Raises:
            BadInput: there is no tool of that name. Those of MCP servers are not known before a wakeup begins.
        """
        for name in names:
            if name not in self._tools and not name.startswith(PREFIX):
                raise BadInput("tools", name, f"the tools are: {', '.join(self._tools)}")
        return Registry(tool for tool in self if allows(names, tool.name))

    def offering(self, names: Collection[str] | None) -> Registry:
        """Of the tools that read or write those called so; None: all. The others are always on offer."""
        if names is None:
            return self
        always = (Effect.STATE, Effect.CONTROL)
        return Registry(tool for tool in self if tool.effect in always or allows(names, tool.name))

    def with_(self, *tools: Tool) -> Registry:
        return Registry([*self, *tools])


EffectWord = Literal["read", "write", "state", "control"]


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *,
    effect: EffectWord = "write",
    timeout_seconds: float = 120.0,
    brief: str | None = None,
    cacheable: bool = False,
    fingerprint: Fingerprint | None = None,
    may_hand_over: bool = False,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    effect: EffectWord = "write",
    timeout_seconds: float = 120.0,
    brief: str | None = None,
    cacheable: bool = False,
    fingerprint: Fingerprint | None = None,
    may_hand_over: bool = False,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function: `@tool`, or `@tool(effect="read")`. The name then stands for the `Tool`.

    The function's name is the tool's, its docstring the description, its annotations the schema. A first parameter
    annotated `ToolContext` is filled by the host. It may return a str, a `ToolOutput`, bytes, or any JSON value.
    A plain function runs in a thread of its own; one that outlives its time limit is left to itself, since Python
    cannot end a thread.

    Args:
        effect: what it does; when in doubt leave `write`, which is never run beside another call.
        timeout_seconds: after which the call is answered with an error.
        brief: the argument that names a call's subject; by default the first.
        cacheable: an equal call later in the wakeup may get the first one's result, until something writes.
        fingerprint: what besides the arguments a cacheable tool's result depends on.
        may_hand_over: the tool may answer with a JSON object of `status` "waiting_human", `action`, `wait_reason` and
            `session_id`, which ends the wakeup until a person has answered.

    Raises:
        BadInput: the name or the signature cannot be told to a model, or a cacheable tool does not only read.
    """

    def make(function: Callable[..., Any]) -> Tool:
        parameters = schema_of(function, ToolContext)
        shown = brief if brief is not None else next(iter(parameters["properties"]), "")
        spec = ToolSpec(function.__name__, inspect.getdoc(function) or "", parameters)
        made = Tool(
            spec,
            Effect(effect),
            _runner(function),
            partial(_subject, shown),
            timeout_seconds,
            cacheable,
            fingerprint,
            may_hand_over,
        )
        Registry([made])
        return made

    return make if function is None else make(function)


def _subject(name: str, arguments: Mapping[str, Any]) -> str:
    value = arguments.get(name, "")
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _runner(function: Callable[..., Any]) -> Run:
    first = next(iter(inspect.signature(function).parameters), None)
    takes_context = first is not None and get_type_hints(function).get(first) is ToolContext

    async def run(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
        call = partial(function, *((context,) if takes_context else ()), **arguments)
        returned = await call() if inspect.iscoroutinefunction(function) else await in_daemon_thread(call)
        return _output(returned)

    return run


def _output(returned: object) -> ToolOutput:
    match returned:
        case ToolOutput():
            return returned
        case str():
            return ToolOutput(returned)
        case bytes():
            return ToolOutput(returned.decode("utf-8", "replace"), size=len(returned))
        case None:
            return ToolOutput("(no result)")
        case _:
            return ToolOutput(json.dumps(returned, ensure_ascii=False))
