"""What a reply leads to. Pure: (reply, history, settings) -> NextStep. No ending is inferred from anything else."""

from __future__ import annotations

from typing import assert_never

from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.goal import GoalSettings
from goalmode.domain.messages import Reply
from goalmode.domain.signals import ErrorKind, StopReason
from goalmode.domain.steps import Claim, Close, NextStep, Nudge, Resend, RunTools
from goalmode.loop.guards.early_no_tool import no_tool
from goalmode.loop.history import History

MAX_PAUSES = 10
"""Times in a row that a paused turn is sent back."""

MAX_TRUNCATIONS = 2
"""Times in a row that a reply cut at the output limit is asked to go on."""

MAX_MALFORMED = 2
"""Corrections of tool calls that the provider itself calls malformed, in one wakeup."""


def decide(reply: Reply, history: History, settings: GoalSettings, last: Exit | None = None) -> NextStep:
    """The next step after `reply`.

    Args:
        last: the ending that follows this call whatever it says, for a wrap-up or a handoff; only an accepted claim
            beats it. None for ordinary calls.
    """
    step = _step(reply, history, settings)
    if last is not None and not isinstance(step, RunTools | Claim):
        return Close(last, refused=reply.calls)
    return step


def _step(reply: Reply, history: History, settings: GoalSettings) -> NextStep:
    match reply.stop:
        case StopReason.TOOL_USE if reply.calls:
            return _calls(reply)
        case StopReason.TOOL_USE | StopReason.MALFORMED_TOOL_CALL:
            if history.malformed < MAX_MALFORMED:
                return Nudge("malformed", refused=reply.calls)
            return _close(
                reply,
                ExitReason.NO_PROGRESS,
                f"{history.malformed} malformed tool calls were corrected in vain",
            )
        case StopReason.END_TURN | StopReason.STOP_SEQUENCE:
            return _calls(reply) if reply.calls else no_tool(history, settings)
        case StopReason.PAUSE:
            if history.pauses < MAX_PAUSES:
                return Resend()
            return _close(
                reply, ExitReason.BACKEND_ERROR, f"the provider paused more than {MAX_PAUSES} times in a row"
            )
        case StopReason.MAX_TOKENS:
            if history.truncations < MAX_TRUNCATIONS:
                return Nudge("truncated", refused=reply.calls)
            return _close(
                reply,
                ExitReason.OUTPUT_TRUNCATED,
                f"{MAX_TRUNCATIONS + 1} replies in a row were cut at the output limit",
            )
        case StopReason.CONTEXT_OVERFLOW:
            return _close(
                reply, ExitReason.CONTEXT_OVERFLOW, "the provider says that the context window is full"
            )
        case StopReason.REFUSAL | StopReason.CONTENT_FILTER:
            said = reply.stop_detail or reply.text
            return _close(
                reply, ExitReason.MODEL_REFUSED, f"{reply.stop}: {said}" if said else reply.stop.value
            )
        case StopReason.PROVIDER_ERROR | StopReason.CANCELLED | StopReason.MISSING | StopReason.UNKNOWN:
            return _close(
                reply, ExitReason.BACKEND_ERROR, f"the reply ended with {reply.stop} ({reply.stop_raw!r})"
            )
        case stop:
            assert_never(stop)


def _calls(reply: Reply) -> RunTools | Claim:
    """`complete` is judged after its siblings have run; a second one in the same reply is refused."""
    claims = [call for call in reply.calls if call.name == "complete"]
    if not claims:
        return RunTools(reply.calls)
    siblings = tuple(call for call in reply.calls if call.name != "complete")
    return Claim(siblings, claims[0], surplus=tuple(claims[1:]))


def _close(reply: Reply, reason: ExitReason, detail: str) -> Close:
    facts: dict[str, object] = {"stop_reason": reply.stop.value, "stop_raw": reply.stop_raw}
    if reason is ExitReason.BACKEND_ERROR:
        facts["kind"] = ErrorKind.UNKNOWN.value
    return Close(Exit(reason, detail, facts), refused=reply.calls)
