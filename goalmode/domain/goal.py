"""A goal: its objective, its contract, its settings and limits, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from goalmode.domain.budget import Limits, Spent
from goalmode.domain.contract import CheckKind, Deliverable, ProtectedFile, Requirement
from goalmode.domain.exits import GoalStatus
from goalmode.domain.memory import SettlementState
from goalmode.domain.outside import ServerChoice
from goalmode.domain.workflow import PURSUE, Movement, Workflow

MAX_OBJECTIVE = 200_000
"""The longest objective stored, in characters. A longer one is refused, never cut."""


EARNED_AFTER = 3
"""Committed wakeups that met the same obstacle, after which a goal may be called blocked."""


class ContextPolicy(StrEnum):
    REBUILD = "rebuild"
    """Each wakeup starts from a context rendered afresh out of the stored state."""
    REPLAY = "replay"
    """Each wakeup starts from the messages of the earlier ones. For comparison only."""


class Control(StrEnum):
    """What a user has asked of a running wakeup."""

    NONE = "none"
    PAUSE = "pause"
    ABORT = "abort"


@dataclass(frozen=True, slots=True)
class GoalSettings:
    """How a goal is pursued.

    Attributes:
        model: what the user wrote: `openai:NAME`, `scripted:…`, or a profile's name in `goalmode.toml`. Empty: the
            configured default.
        base_url: overrides the profile's; empty for none.
        api_key_env: overrides the profile's; empty for none.
        max_turns: quota of one wakeup.
        early_turns: turns at a wakeup's start in which a reply without a tool call counts as an early stop.
        max_recoveries: recovery prompts of one wakeup.
        lang: of the prompts: `en` or `zh`.
        tools: the names allowed; None for every built-in tool.
        context_tokens: bound on a wakeup's first request; None for the profile's.
        work_window: tokens that a conversation may grow to before it begins anew; None for 70 % of the model's window,
            at most 64,000. The policy `replay` has none.
        until_budget: only limits and users end the goal.
        workflow: its movements, as they were when the goal was created.
        user_tools: False takes away long-term memory, and with it settlement.
        autonomous: an unattended flow that is exempt from settlement.
        check_seconds: longest run of one check of the contract.
        mcp: the MCP servers it uses; None: those that are configured when it is woken.
        sandbox: what its commands run in, out of `goalmode.domain.sandbox.CHOICES`; empty: as configured.
        network: False: its commands have none.
    """

    model: str = ""
    base_url: str = ""
    api_key_env: str = ""
    max_turns: int = 180
    early_turns: int = 3
    max_recoveries: int = 2
    lang: str = "en"
    policy: ContextPolicy = ContextPolicy.REBUILD
    tools: tuple[str, ...] | None = None
    context_tokens: int | None = None
    work_window: int | None = None
    until_budget: bool = False
    workflow: Workflow = PURSUE
    user_tools: bool = True
    autonomous: bool = False
    check_seconds: float = 600.0
    mcp: tuple[ServerChoice, ...] | None = None
    sandbox: str = ""
    network: bool = True


@dataclass(frozen=True, slots=True)
class Obstacle:
    """What stood in the way of a requirement, and in which wakeups; shown to the model under its id.

    Attributes:
        id: `O1`, `O2`, ... in the order in which they were first met.
        requirement: the requirement's id; empty: of the goal as a whole.
        wakeups: sequence numbers of the wakeups that met it since the goal was last resumed.
    """

    id: str
    text: str
    requirement: str = ""
    wakeups: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class GoalSpec:
    """What a user asks for: everything needed to create a goal.

    Attributes:
        protect: globs of files in the workspace that must stay as they are.
    """

    objective: str
    workspace: str
    requirements: tuple[Requirement, ...] = ()
    deliverables: tuple[str, ...] = ()
    limits: Limits = Limits()
    settings: GoalSettings = field(default_factory=GoalSettings)
    protect: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal as stored, at one moment.

    Attributes:
        id: the store's own number. uid: the public id.
        revision: grows with every change of the contract by a user.
        limits_revision: grows when a limit is changed. wrapped_limits_revision: the one whose wrap-up was made.
        fence: grows with every claim of a wakeup; a write with an old fence fails.
        inbox_head: id of the newest inbox row, 0 for none.
        movement: the name of the workflow's movement that the goal is in.
        streak: bad endings in a row. failures: backend errors or interruptions in a row.
        protected: files that the work must leave as they are.
        obstacles: what was met, in the order of their ids.
        stretch_from: `spent.turns` when the present stretch began: at the creation, or when the goal was last reopened.
        settlement: of the present stretch.
    """

    id: int
    uid: str
    objective: str
    workspace: str
    revision: int
    limits_revision: int
    wrapped_limits_revision: int
    requirements: tuple[Requirement, ...]
    deliverables: tuple[Deliverable, ...]
    limits: Limits
    spent: Spent
    settings: GoalSettings
    status: GoalStatus
    status_detail: str
    control: Control
    fence: int
    inbox_head: int
    next_wakeup_at: datetime | None
    wake_reason: str
    host_label: str
    movement: str
    streak: int
    failures: int
    created_at: datetime
    updated_at: datetime
    protected: tuple[ProtectedFile, ...] = ()
    obstacles: tuple[Obstacle, ...] = ()
    stretch_from: int = 0
    settlement: SettlementState = SettlementState.NONE

    @property
    def bare(self) -> bool:
        """Whether the host can check nothing of the contract, so that a claim rests on what it cites."""
        checked = (CheckKind.COMMAND, CheckKind.FILE)
        return not self.deliverables and not any(r.kind in checked for r in self.requirements)

    @property
    def stretch_turns(self) -> int:
        """Turns since the goal was created or last reopened."""
        return self.spent.turns - self.stretch_from

    @property
    def current(self) -> Movement:
        """The movement that the goal is in."""
        return self.settings.workflow[self.movement]
