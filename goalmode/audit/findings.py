"""What the audit finds, and in which words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

RULE = "comm-no-completion-signal"
TITLE = "Agent completion detected by heuristic instead of explicit signal"
TIER = "release-blocker"
SURFACES = ("agent-tool-execution", "agent-dashboard")


class Signal(StrEnum):
    """What is taken for the end of an agent's work, though it does not say so."""

    IDLE_COUNT = "idle-count"
    TIMEOUT = "timeout"
    FILE_EXISTENCE = "file-existence"
    NOT_TOOL_USE = "not-tool-use"
    END_TURN_ALONE = "end-turn-alone"


@dataclass(frozen=True, slots=True)
class Advice:
    """Why a signal tells nothing about completion, and the shape of the fix."""

    why: str
    fix: str


ADVICE = {
    Signal.IDLE_COUNT: Advice(
        "a pause to think looks like completion: the agent is cut off between two steps",
        "end on what the model says (its stop reason, or a tool that completes the task); keep the count, if at all, "
        "as a guard that ends as failed, not as done",
    ),
    Signal.TIMEOUT: Advice(
        "a slow call looks like completion: the time is up, the work may not be",
        "end on what the model says (its stop reason, or a tool that completes the task); keep the time as a safety "
        "net beside it that ends as timed out, not as done",
    ),
    Signal.FILE_EXISTENCE: Advice(
        "a file is there as soon as its first byte is, or since an earlier run: it does not say that the work is done",
        "end on what the agent or its process says (a result, an event, an exit code), then look at the file",
    ),
    Signal.NOT_TOOL_USE: Advice(
        "a reply without tool calls may be cut off (max_tokens), paused (pause_turn) or refused: it is taken for done",
        "branch on the stop reason: tool_use runs the tools, pause_turn resends, end_turn completes, max_tokens ends "
        "as truncated, anything else ends as failed with its reason",
    ),
    Signal.END_TURN_ALONE: Advice(
        "the other terminal reasons are not told apart: what is cut off, paused or refused goes on as if it were whole",
        "give every terminal reason a branch: pause_turn resends, max_tokens ends as truncated, and a default ends as "
        "failed with its reason (refusal, context window)",
    ),
}


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """One heuristic that ends an agent's work. `what` names it as it stands in the code; lines start at 1."""

    path: str
    line: int
    signal: Signal
    what: str


@dataclass(frozen=True, slots=True)
class Suppressed:
    """A finding in a file whose comment says that it is meant; `reason` may be empty."""

    finding: Finding
    reason: str


@dataclass(frozen=True, slots=True)
class Unread:
    """A file that was not looked at, or not as a whole, and why."""

    path: str
    why: str


@dataclass(frozen=True, slots=True)
class Report:
    """What an audit found.

    Attributes:
        looked_at: files read, those that parse in part included. tests: files of tests and fixtures left out.
        links: symbolic links that were not followed.
    """

    findings: tuple[Finding, ...]
    suppressed: tuple[Suppressed, ...]
    unread: tuple[Unread, ...]
    looked_at: int
    tests: int
    links: int
