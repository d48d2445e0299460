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
from goalmode.domain.questions import MAX_ANSWER, MAX_OPTION, MAX_OPTIONS
from goalmode.domain.redact import Redactor
from goalmode.domain.text import is_blank, one_line, sendable
from goalmode.errors import ToolError
from goalmode.tools.registry import Tool, ToolContext, ToolOutput, tool

MIN_WAIT_SECONDS = 30
MAX_WAIT_SECONDS = 30 * 24 * 3600
MIN_DEFAULT_SECONDS = 60
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
    options: tuple[str, ...] = ()
    default: str = ""
    default_after_seconds: int | None = None
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
            "options": {
                "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}],
                "description": "For needs_user_input: answers to choose from.",
            },
            "default": {**_TEXT, "description": "For needs_user_input: taken if nobody answers in time."},
            "default_after_seconds": {
                "anyOf": [{"type": "integer"}, {"type": "null"}],
                "description": f"For needs_user_input: that time, {MIN_DEFAULT_SECONDS} or more.",
            },
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
        options=_texts(arguments.get("options"), clean),
        default=text("default"),
        default_after_seconds=arguments.get("default_after_seconds"),
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
    return tuple(text for text in _texts(given, clean) if text)


def _texts(value: object, clean: Redactor) -> tuple[str, ...]:
    given = value if isinstance(value, list) else []
    return tuple(clean(sendable(item)).strip() for item in given if isinstance(item, str))


def _problem(claim: ClaimArguments) -> str:
    if not claim.summary:
        return "complete: summary is missing or blank; say in a few sentences what was achieved"
    if claim.status is ClaimStatus.NEEDS_USER_INPUT and not (claim.missing_info and claim.why_no_default):
        return (
            "complete: needs_user_input needs both missing_info and why_no_default, as texts; "
            "choose a sensible default and go on, or give both"
        )
    if claim.status is ClaimStatus.NEEDS_USER_INPUT and (wrong := _wrong_choice(claim)):
        return f"complete: {wrong}"
    if claim.status is ClaimStatus.BLOCKED and not claim.obstacle:
        return "complete: blocked needs an obstacle; name what stands in the way"
    return ""


def _wrong_choice(claim: ClaimArguments) -> str:
    """What is wrong with the answers that a question suggests; empty if nothing is."""
    options, seconds = claim.options, claim.default_after_seconds
    if len(options) > MAX_OPTIONS:
        return f"options: at most {MAX_OPTIONS}, not {len(options)}"
    if any(is_blank(option) or len(option) > MAX_OPTION for option in options):
        return f"options: each is a text that is not blank, of at most {MAX_OPTION} characters"
    if len(set(options)) < len(options):
        return "options: one of them is given twice"
    if len(claim.default) > MAX_ANSWER:
        return f"default: at most {MAX_ANSWER} characters, not {len(claim.default)}"
    if bool(claim.default) != (seconds is not None):
        return "default and default_after_seconds belong together: the answer, and when it is taken; give both or none"
    if seconds is not None and not MIN_DEFAULT_SECONDS <= seconds <= MAX_WAIT_SECONDS:
        return f"default_after_seconds must be between {MIN_DEFAULT_SECONDS} and {MAX_WAIT_SECONDS}, not {seconds}"
    return ""
