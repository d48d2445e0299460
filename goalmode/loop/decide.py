"""What a reply leads to. Pure: (reply, history, settings) -> NextStep. No ending is inferred from anything else."""

from __future__ import annotations

from typing import assert_never

from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.goal import GoalSettings
from goalmode.domain.messages import Reply
from goalmode.domain.signals import ErrorKind, StopReason
from goalmode.domain.steps import Claim, Close, NextStep, Nudge, Rerender, Resend, RunTools, Transition
from goalmode.domain.workflow import PURSUE, EndTurn, Movement
from goalmode.loop.guards.early_no_tool import no_tool
from goalmode.loop.history import History
from goalmode.loop.window import may_shrink

MAX_PAUSES = 10
"""Times in a row that a paused turn is sent back."""

MAX_TRUNCATIONS = 2
"""Times in a row that a reply cut at the output limit is asked to go on."""

MAX_MALFORMED = 2
"""Corrections of tool calls that the provider itself calls malformed, in one wakeup."""


CONTROLS = ("complete", "transition", "wait")
"""Calls that lead out of the movement or the wakeup: a reply may hold one."""


def decide(
    reply: Reply,
    history: History,
    settings: GoalSettings,
    last: Exit | None = None,
    *,
    movement: Movement = PURSUE.movements[0],
) -> NextStep:
    """The next step after `reply`.

    Args:
        last: the ending that follows this call whatever it says, for a wrap-up or a handoff; only an accepted claim
            beats it. None for ordinary calls.
        movement: that the goal is in.
    """
    step = _step(reply, history, settings, movement)
    acts = isinstance(step, RunTools | Claim | Transition) and bool(reply.calls)
    return step if last is None or acts else Close(last, refused=reply.calls)


def _step(reply: Reply, history: History, settings: GoalSettings, movement: Movement) -> NextStep:
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
        case StopReason.END_TURN | StopReason.STOP_SEQUENCE if reply.calls:
            return _calls(reply)
        case StopReason.END_TURN if movement.end_turn is EndTurn.CLAIM and reply.text.strip():
            return Claim((), None)
        case StopReason.END_TURN | StopReason.STOP_SEQUENCE:
            return no_tool(history, settings)
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
            if may_shrink(history, settings):
                return Rerender(refused=reply.calls)
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


def _calls(reply: Reply) -> RunTools | Claim | Transition:
    """A control call comes after its siblings; a second one in the same reply is refused."""
    siblings = tuple(call for call in reply.calls if call.name not in CONTROLS)
    controls = tuple(call for call in reply.calls if call.name in CONTROLS)
    if not controls:
        return RunTools(reply.calls)
    first, surplus = controls[0], controls[1:]
    match first.name:
        case "complete":
            return Claim(siblings, first, surplus)
        case "transition":
            return Transition(siblings, first, surplus)
        case _:
            return RunTools((*siblings, first), surplus)


def _close(reply: Reply, reason: ExitReason, detail: str) -> Close:
    facts: dict[str, object] = {"stop_reason": reply.stop.value, "stop_raw": reply.stop_raw}
    if reason is ExitReason.BACKEND_ERROR:
        facts["kind"] = ErrorKind.UNKNOWN.value
    return Close(Exit(reason, detail, facts), refused=reply.calls)
