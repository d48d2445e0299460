"""A goal: its objective, its contract, its settings and limits, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from goalmode.domain.budget import Limits, Spent
from goalmode.domain.exits import GoalStatus
from goalmode.domain.workflow import PURSUE, Movement, Workflow

MAX_OBJECTIVE = 200_000
"""The longest objective stored, in characters. A longer one is refused, never cut."""


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


class RequirementStatus(StrEnum):
    OPEN = "open"
    PASSED = "passed"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition of the contract: words, and where there is one, a shell command that exits 0 when it holds."""

    id: str
    text: str
    check: str | None = None
    status: RequirementStatus = RequirementStatus.OPEN


@dataclass(frozen=True, slots=True)
class Deliverable:
    """A path in the workspace that must exist and not be empty when the goal is done.

    Attributes:
        path: relative to the workspace, in the form the user wrote, without `.` and `..` parts.
        sha_seen: hash of the content last observed, None if it was absent.
        sha_verified: hash of the content that a completion was accepted with.
    """

    path: str
    sha_seen: str | None = None
    sha_verified: str | None = None


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


@dataclass(frozen=True, slots=True)
class GoalSpec:
    """What a user asks for: everything needed to create a goal."""

    objective: str
    workspace: str
    requirements: tuple[Requirement, ...] = ()
    deliverables: tuple[str, ...] = ()
    limits: Limits = Limits()
    settings: GoalSettings = field(default_factory=GoalSettings)


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

    @property
    def current(self) -> Movement:
        """The movement that the goal is in."""
        return self.settings.workflow[self.movement]
