"""`transition`: from one movement of the goal's workflow to another. The loop makes the move; the tool only asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from goalmode.domain.calls import Effect
from goalmode.domain.messages import ToolSpec
from goalmode.domain.redact import Redactor
from goalmode.domain.text import one_line, sendable
from goalmode.errors import ToolError
from goalmode.tools.registry import Tool, ToolContext, ToolOutput

_NAME = "transition"
MAX_REASON = 500


@dataclass(frozen=True, slots=True)
class TransitionArguments:
    """A well-formed `transition` call."""

    to: str
    reason: str


def transition(movements: Sequence[str]) -> Tool:
    """The tool for a workflow with these movements."""
    spec = ToolSpec(
        _NAME,
        "Go on in another movement of the workflow, in this same wakeup. Save a checkpoint first.",
        {
            "type": "object",
            "properties": {
                "to": {"type": "string", "enum": list(movements)},
                "reason": {"type": "string", "description": "Why now, in a sentence."},
            },
            "required": ["to", "reason"],
            "additionalProperties": False,
        },
    )
    return Tool(spec, Effect.CONTROL, _made_elsewhere, lambda arguments: str(arguments.get("to", "")))


def parse_transition(arguments: Mapping[str, Any], here: str, redact: Redactor) -> TransitionArguments | str:
    """The move that a call of the right shape asks for, or what is wrong with it, told to the model.

    Args:
        here: the movement that the goal is in.
    """
    if arguments["to"] == here:
        return f"transition: the movement is {here} already; go on in it, or name another"
    reason = one_line(redact(sendable(arguments["reason"].strip())), MAX_REASON)
    if not reason:
        return "transition: reason is blank; say why now"
    return TransitionArguments(arguments["to"], reason)


async def _made_elsewhere(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
    raise ToolError("transition: it is not executed; the loop makes the move")
