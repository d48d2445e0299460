"""What a wakeup needs from outside: the loop sees protocols and values, never a concrete store or provider."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from goalmode.domain.calls import CallRecord
from goalmode.domain.clock import Clock
from goalmode.domain.exits import Exit
from goalmode.domain.goal import Control, Goal, Obstacle
from goalmode.domain.messages import Message, Reply, Usage
from goalmode.domain.notes import News
from goalmode.domain.profile import ModelProfile
from goalmode.domain.redact import Redactor
from goalmode.domain.snapshot import Action
from goalmode.domain.work import WorkState
from goalmode.loop.longterm import LongTerm
from goalmode.model.port import Model
from goalmode.settle.case import Case, Judgement
from goalmode.state.checks import CheckResult
from goalmode.state.journal import PlannedCall, TurnOutcome
from goalmode.state.movements import Moved
from goalmode.state.tables import Purpose
from goalmode.tools.confinement import FREE, Confinement
from goalmode.tools.mcp import Outside
from goalmode.tools.registry import EffectGate, Registry, Tool


class Wakeup(Protocol):
    """The wakeup that is run. Implemented by `goalmode.orchestrator.wake.Wake`; every method is one transaction.

    Every method but `boundary` raises Fenced once another owner has the goal.
    """

    goal: Goal
    seq: int
    fence: int
    """The number of the claim: of two owners of a goal, the later one has the larger."""
    messages: tuple[Message, ...]
    context_tokens: int
    work: WorkState
    actions: list[Action]
    over: Exit | None
    """The ending that this wakeup had before it began: no call may be made."""
    news: tuple[News, ...]
    """What was said to the goal and does not stand in the conversation yet, as of the last `boundary`."""
    gate: EffectGate
    lost: bool

    @property
    def longterm(self) -> LongTerm:
        """What outlives the goal, and the ending that stands while the wakeup settles."""
        ...

    def boundary(self) -> Control:
        """Read what the user did meanwhile; `goal` and `news` are as of now afterwards."""
        ...

    def hear(self) -> None:
        """`news` stands in the conversation now: the reply that follows it makes it heard."""
        ...

    def control(self) -> Control:
        """What the user asks for, for the watcher: nothing else is read or kept."""
        ...

    def reserve(self, usage: Usage, *, wrap_up: bool = False) -> bool:
        """Reserve a call's cost; False if it is a wrap-up and this limit's was made already."""
        ...

    def intent(
        self,
        reply: Reply,
        purpose: Purpose,
        calls: Sequence[PlannedCall],
        *,
        counts: bool,
        started_at: datetime,
    ) -> None: ...

    def failed_call(self, usage: Usage, purpose: Purpose, detail: str, *, started_at: datetime) -> None: ...

    def record(self, record: CallRecord) -> None: ...

    def outcome(self, outcome: TurnOutcome) -> None: ...

    def rerender(
        self, conversation: Sequence[Message], *, limit: int, turns_left: int, reserve_output: int
    ) -> None:
        """Begin the conversation anew: a context of the state as it is stored now, then its last turns.

        `messages` and `context_tokens` are the new conversation's afterwards, `goal` is what it was rendered from.

        Args:
            conversation: so far; empty where no turn is to be kept.
            limit: tokens that the new one may have.
            reserve_output: tokens of answer to reserve for the next call, beside its input.

        Raises:
            ContextDoesNotFit: what must be in a context is larger than it may be.
        """
        ...

    def render_again(self, servers: Sequence[Mapping[str, Any]]) -> None:
        """Render the wakeup's context again, before anything is said, since other tools are on offer than at the claim.

        Args:
            servers: what became of each MCP server, for the record.

        Raises:
            ContextDoesNotFit: what must be in a context is larger than it may be.
        """
        ...

    def move(self, moved: Moved) -> None:
        """Store that the goal goes on in another movement, where no outcome does."""
        ...

    def met_obstacle(self, obstacle: str, requirement: str = "") -> Obstacle:
        """Note an obstacle, by its id or in words; returns it with the wakeups that met it, this one included."""
        ...

    def waits_for(self) -> tuple[str, ...]:
        """The goal's open wake sources, in words."""
        ...

    def fenced(self) -> None:
        """Another owner has the goal: end what still runs, and leave no trace but an event."""
        ...

    def close(self, exit: Exit, checks: Sequence[CheckResult] = ()) -> Exit:
        """End it. Returns the ending as stored: a user's stop that arrived meanwhile beats all but success.

        Raises:
            ClaimSuperseded: success was checked at another revision of the contract than the goal now has.
        """
        ...

    def let_go(self) -> None:
        """Give no more signs of life: a wakeup that could not be closed is found interrupted when its lease ends."""
        ...


@dataclass(frozen=True, slots=True)
class Event:
    """Something that has been committed, for progress displays and `--json`."""

    kind: str
    data: Mapping[str, Any] = field(default_factory=dict)


Sink = Callable[[Event], None]


Judge = Callable[[Case], Awaitable[Judgement]]


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything a wakeup runs with.

    Attributes:
        prompt: renders a template of the goal's language: `prompt("recovery", **values)`.
        edited: the prompt that tells of a user's edit.
        entered: the prompt that begins the movement a goal is in; its second argument: whether items are pending.
        absent: paths of the goal's deliverables that are not there.
        count_message: tokens of one message.
        environment: of the tools' child processes.
        confinement: what they are started in.
        outside: the goal's MCP servers; None without any.
        equip: puts further tools on offer for the rest of the wakeup; returns all that are.
        stop: an ending asked for by a signal handler, or None; read once a second or more often.
        judge: checks a claim of success against the contract.
    """

    model: Model
    profile: ModelProfile
    registry: Registry
    clock: Clock
    prompt: Callable[..., str]
    edited: Callable[[Goal], str]
    entered: Callable[[Goal, bool], str]
    absent: Callable[[Goal], tuple[str, ...]]
    count_message: Callable[[Message], int]
    workspace: Path
    judge: Judge
    environment: Mapping[str, str] = field(default_factory=dict)
    confinement: Confinement = FREE
    redact: Redactor = field(default_factory=Redactor)
    sink: Sink = lambda event: None
    stop: Callable[[], Exit | None] = lambda: None
    outside: Outside | None = None
    equip: Callable[[Sequence[Tool]], Registry] = Registry
