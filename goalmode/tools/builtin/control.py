"""`complete` and `wait`: calls that ask for an ending. Whether a claim stands is decided elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any

from goalmode.domain.calls import Effect
from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.messages import ToolSpec
from goalmode.domain.redact import Redactor
from goalmode.domain.text import one_line, sendable
from goalmode.errors import ToolError
from goalmode.tools.registry import Tool, ToolContext, ToolOutput, tool

MIN_WAIT_SECONDS = 30
MAX_WAIT_SECONDS = 30 * 24 * 3600
_COMPLETE = "complete"


class ClaimStatus(StrEnum):
    SUCCESS = "success"
    NEEDS_USER_INPUT = "needs_user_input"
    BLOCKED = "blocked"


@dataclass(frozen=True, slots=True)
class ClaimArguments:
    """A well-formed `complete` call. Fields that its status does not need may be empty."""

    status: ClaimStatus
    summary: str
    evidence: tuple[str, ...] = ()
    missing_info: str = ""
    why_no_default: str = ""
    obstacle: str = ""
    requirement: str = ""


_TEXT = {"anyOf": [{"type": "string"}, {"type": "null"}]}
_SPEC = ToolSpec(
    _COMPLETE,
    "Claim an ending for the whole goal. success: everything is done; the host checks deliverables, checks and open "
    "items, and rejects a claim that does not hold. needs_user_input: only the user can say what is missing and no "
    "sensible default exists. blocked: an obstacle stops all further work.",
    {
        "type": "object",
        "properties": {
            "status": {"type": "string", "enum": [status.value for status in ClaimStatus]},
            "summary": {"type": "string", "description": "What was achieved, in a few sentences."},
            "evidence": {
                "anyOf": [
                    {"type": "array", "items": {"type": "string"}},
                    {"type": "string"},
                    {"type": "null"},
                ],
                "description": "For success: the commands, files or results that show it.",
            },
            "missing_info": {**_TEXT, "description": "For needs_user_input: what only the user can tell."},
            "why_no_default": {**_TEXT, "description": "For needs_user_input: why no default will do."},
            "obstacle": {
                **_TEXT,
                "description": "For blocked: what stands in the way; the id of a listed one (O1), or words.",
            },
            "requirement": {
                **_TEXT,
                "description": "For blocked: the requirement (R1) that it concerns, if one.",
            },
        },
        "required": ["status", "summary"],
        "additionalProperties": False,
    },
)


def parse_claim(arguments: Mapping[str, Any], redact: Redactor | None = None) -> ClaimArguments | str:
    """The claim that a `complete` call makes, or what is wrong with it, told to the model."""
    clean = redact or Redactor()

    def text(name: str) -> str:
        value = arguments.get(name)
        return clean(sendable(value)).strip() if isinstance(value, str) else ""

    words = [status.value for status in ClaimStatus]
    if arguments.get("status") not in words:
        return f"complete: status must be one of {', '.join(words)}"
    claim = ClaimArguments(
        status=ClaimStatus(arguments["status"]),
        summary=text("summary"),
        evidence=_evidence(arguments.get("evidence"), clean),
        missing_info=text("missing_info"),
        why_no_default=text("why_no_default"),
        obstacle=text("obstacle"),
        requirement=text("requirement").upper(),
    )
    return _problem(claim) or claim


async def _judged_elsewhere(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    raise ToolError("complete: a claim is not executed; the loop judges it")


complete = Tool(_SPEC, Effect.CONTROL, _judged_elsewhere, lambda arguments: str(arguments.get("status", "")))


@tool(effect="control", brief="reason")
async def wait(
    context: ToolContext,
    seconds: Annotated[int, f"From {MIN_WAIT_SECONDS} seconds to 30 days ({MAX_WAIT_SECONDS})."],
    reason: Annotated[str, "What will have happened by then."],
) -> ToolOutput:
    """End this wakeup and be woken again later, when there is nothing to do until something outside has happened.
    Save a checkpoint first. It is no way to finish: use `complete` for that.
    """
    if context.substantive == 0:
        raise ToolError(
            "wait: refused, nothing was read or written in this wakeup yet; look at the work first"
        )
    if not MIN_WAIT_SECONDS <= seconds <= MAX_WAIT_SECONDS:
        raise ToolError(
            f"wait: seconds must be between {MIN_WAIT_SECONDS} and {MAX_WAIT_SECONDS}, not {seconds}"
        )
    if not reason.strip():
        raise ToolError("wait: reason is blank")
    told = one_line(context.redact(sendable(reason.strip())), 300)
    return ToolOutput(
        f"accepted: you will be woken in {seconds} seconds",
        exit=Exit(
            ExitReason.YIELDED,
            f"asked to be woken in {seconds} s: {told}",
            {"waited": True, "seconds": seconds, "reason": told},
            wake_at=None if context.now is None else context.now + timedelta(seconds=seconds),
        ),
    )


def _evidence(value: object, clean: Redactor) -> tuple[str, ...]:
    given = value if isinstance(value, list) else [value]
    return tuple(clean(sendable(item)).strip() for item in given if isinstance(item, str) and item.strip())


def _problem(claim: ClaimArguments) -> str:
    if not claim.summary:
        return "complete: summary is missing or blank; say in a few sentences what was achieved"
    if claim.status is ClaimStatus.NEEDS_USER_INPUT and not (claim.missing_info and claim.why_no_default):
        return (
            "complete: needs_user_input needs both missing_info and why_no_default, as texts; "
            "choose a sensible default and go on, or give both"
        )
    if claim.status is ClaimStatus.BLOCKED and not claim.obstacle:
        return "complete: blocked needs an obstacle; name what stands in the way"
    return ""
