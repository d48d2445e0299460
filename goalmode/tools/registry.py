"""What a tool is, and the set of tools on offer. The schema of a Python tool comes from its signature."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from goalmode.domain.calls import Effect
from goalmode.domain.exits import Exit
from goalmode.domain.messages import ToolSpec
from goalmode.domain.redact import Redactor
from goalmode.domain.work import StatePatch, WorkState


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
        progress: called with one line when a tool has something to say while it runs.
    """

    workspace: Path
    gate: EffectGate
    call_id: str = ""
    work: WorkState = WorkState()
    environment: Mapping[str, str] = field(default_factory=dict)
    idempotency_key: str = ""
    substantive: int = 0
    redact: Redactor = field(default_factory=Redactor)


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool returned. `ok=False` is a failed call, told to the model; it never ends the wakeup by itself."""

    text: str
    ok: bool = True
    exit_code: int | None = None
    patch: StatePatch | None = None
    exit: Exit | None = None
    size: int | None = None


Run = Callable[[ToolContext, dict[str, Any]], Awaitable[ToolOutput]]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool on offer.

    Attributes:
        run: gets arguments that match the schema; raises ToolError for an answer that is an error.
        brief: the call's subject, from its arguments.
        timeout_seconds: after which the call is ended and answered with an error.
        cacheable: equal calls of one wakeup may be answered from the first result.
    """

    spec: ToolSpec
    effect: Effect
    run: Run
    brief: Callable[[Mapping[str, Any]], str] = lambda arguments: ""
    timeout_seconds: float = 120.0
    cacheable: bool = False

    @property
    def name(self) -> str:
        return self.spec.name
