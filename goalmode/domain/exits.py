"""How a wakeup ends: the closed list of exit reasons and the one table of facts about them.

The CLI's exit codes, the scheduling after a wakeup, `goalmode why` and the README's table all read `EXIT_FACTS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

from goalmode.domain.questions import Asking


class GoalStatus(StrEnum):
    """What a goal is between wakeups. "Running" is not a status: it is a live lease."""

    ACTIVE = "ACTIVE"
    WAITING_USER = "WAITING_USER"
    PAUSED = "PAUSED"
    BLOCKED = "BLOCKED"
    EXHAUSTED = "EXHAUSTED"
    DONE = "DONE"
    ABORTED = "ABORTED"


class ExitReason(StrEnum):
    """Why a wakeup ended. The stored words are the members' values and never change."""

    CURRENT_TASK_DONE = "CURRENT_TASK_DONE"
    MAX_TURNS_EXCEEDED = "MAX_TURNS_EXCEEDED"
    YIELDED = "YIELDED"
    EARLY_NO_TOOL = "EARLY_NO_TOOL"
    NO_PROGRESS = "NO_PROGRESS"
    CONTEXT_OVERFLOW = "CONTEXT_OVERFLOW"
    OUTPUT_TRUNCATED = "OUTPUT_TRUNCATED"
    MODEL_REFUSED = "MODEL_REFUSED"
    BACKEND_ERROR = "BACKEND_ERROR"
    ENGINE_ERROR = "ENGINE_ERROR"
    INTERRUPTED = "INTERRUPTED"
    NEEDS_USER_INPUT = "NEEDS_USER_INPUT"
    WAITING_HUMAN = "WAITING_HUMAN"
    TASK_BLOCKED = "TASK_BLOCKED"
    GOAL_BUDGET_EXHAUSTED = "GOAL_BUDGET_EXHAUSTED"
    USER_ABORTED = "USER_ABORTED"


class SkipReason(StrEnum):
    """Why a goal was not woken just now. A skip is no ending: nothing is stored."""

    NOT_DUE = "not_due"
    LEASED = "leased"
    WAITING = "waiting"
    PAUSED = "paused"
    BLOCKED = "blocked"
    EXHAUSTED = "exhausted"
    DONE = "done"
    ABORTED = "aborted"
    OTHER_HOST = "other_host"
    TOOL_STILL_RUNNING = "tool_still_running"
    SUPERSEDED = "superseded"
    UNREADABLE = "unreadable"


class NextWakeup(StrEnum):
    """The rule by which the next wakeup's time follows from an ending."""

    NONE = "none"
    NOW = "now"
    BACK_OFF = "back-off"
    AFTER_PROGRESS = "now after progress, else back-off; or the asked time"
    WHEN_ANSWERED = "when answered"
    WHEN_RAISED = "when raised"
    ON_RESUME = "on resume"


@dataclass(frozen=True, slots=True)
class ExitFacts:
    """What is true of every wakeup that ends for one reason.

    Attributes:
        exit_code: the CLI's exit code; 0 for success alone.
        status: the goal's status afterwards, unless a rule in `goalmode.orchestrator.after` says otherwise.
        next_wakeup: the rule for the next wakeup's time.
        counts: whether it adds one to the goal's streak of bad endings.
        sentence: what happened, for people; completed by the exit's own detail.
        remedy: what makes the goal run again; `{id}` is replaced by the goal's id. Empty where nothing is needed.
    """

    exit_code: int
    status: GoalStatus
    next_wakeup: NextWakeup
    counts: bool
    sentence: str
    remedy: str


_S, _N = GoalStatus, NextWakeup
_RUN, _RESUME, _ANSWER = "goalmode run {id}", "goalmode resume {id}", "goalmode answer {id} TEXT"

EXIT_FACTS: Mapping[ExitReason, ExitFacts] = MappingProxyType(
    {
        ExitReason.CURRENT_TASK_DONE: ExitFacts(
            0, _S.DONE, _N.NONE, False, "the claim of completion stood", ""
        ),
        ExitReason.MAX_TURNS_EXCEEDED: ExitFacts(
            10, _S.ACTIVE, _N.NOW, False, "the wakeup's turn quota is spent", _RUN
        ),
        ExitReason.YIELDED: ExitFacts(
            11, _S.ACTIVE, _N.AFTER_PROGRESS, False, "the model handed back control with work left", _RUN
        ),
        ExitReason.EARLY_NO_TOOL: ExitFacts(
            12,
            _S.ACTIVE,
            _N.BACK_OFF,
            True,
            "the model stopped early and the recovery prompts did not help",
            _RUN,
        ),
        ExitReason.NO_PROGRESS: ExitFacts(
            13,
            _S.ACTIVE,
            _N.BACK_OFF,
            True,
            "the wakeup repeated itself or its claims and control calls failed",
            _RUN,
        ),
        ExitReason.CONTEXT_OVERFLOW: ExitFacts(
            14, _S.ACTIVE, _N.NOW, True, "the context could not be made to fit", _RUN
        ),
        ExitReason.OUTPUT_TRUNCATED: ExitFacts(
            15, _S.ACTIVE, _N.BACK_OFF, True, "replies were cut at the output limit again and again", _RUN
        ),
        ExitReason.MODEL_REFUSED: ExitFacts(
            16, _S.BLOCKED, _N.NONE, False, "the model or its content filter refused", _RESUME
        ),
        ExitReason.BACKEND_ERROR: ExitFacts(
            20, _S.ACTIVE, _N.BACK_OFF, False, "the model's provider failed", _RUN
        ),
        ExitReason.ENGINE_ERROR: ExitFacts(21, _S.BLOCKED, _N.NONE, False, "goalmode itself failed", _RESUME),
        ExitReason.INTERRUPTED: ExitFacts(
            22, _S.ACTIVE, _N.NOW, False, "the process that ran the wakeup ended", _RUN
        ),
        ExitReason.NEEDS_USER_INPUT: ExitFacts(
            30,
            _S.WAITING_USER,
            _N.WHEN_ANSWERED,
            False,
            "the model needs information only the user has",
            _ANSWER,
        ),
        ExitReason.WAITING_HUMAN: ExitFacts(
            31,
            _S.WAITING_USER,
            _N.WHEN_ANSWERED,
            False,
            "a tool handed over to a person",
            _ANSWER,
        ),
        ExitReason.TASK_BLOCKED: ExitFacts(
            32, _S.BLOCKED, _N.NONE, False, "the goal is blocked by an obstacle", _RESUME
        ),
        ExitReason.GOAL_BUDGET_EXHAUSTED: ExitFacts(
            40,
            _S.EXHAUSTED,
            _N.WHEN_RAISED,
            False,
            "a limit of the goal is reached",
            "goalmode resume {id} --{limit}-budget +N",
        ),
        ExitReason.USER_ABORTED: ExitFacts(
            130, _S.PAUSED, _N.ON_RESUME, False, "the user stopped it", _RESUME
        ),
    }
)

STREAK_LIMIT = 3
"""Bad endings in a row after which a goal is BLOCKED."""


@dataclass(frozen=True, slots=True)
class Exit:
    """One ending of one wakeup.

    Attributes:
        reason: from the closed list.
        detail: one line for people, built from the facts.
        facts: JSON values: the limit and its value, counts, error kind, check output, ...
        wake_at: aware UTC; the time the model asked to be woken at, or a provider's known reset time.
        question: that the user is asked, for NEEDS_USER_INPUT and WAITING_HUMAN.
    """

    reason: ExitReason
    detail: str = ""
    facts: Mapping[str, object] = field(default_factory=dict)
    wake_at: datetime | None = None
    question: Asking | None = None
