"""A reply without a tool call is answered a bounded number of times, then it ends the wakeup for a named reason."""

from __future__ import annotations

from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.goal import GoalSettings
from goalmode.domain.steps import Close, Nudge
from goalmode.loop.history import History


def no_tool(history: History, settings: GoalSettings) -> Nudge | Close:
    """What answers a reply without a tool call, empty or not.

    Early (in a wakeup's first `early_turns` turns, or as long as no read or write call has succeeded): the recovery
    prompt, `max_recoveries` times a wakeup, then EARLY_NO_TOOL. Later: one nudge after each success, then YIELDED.
    """
    early = history.turn <= settings.early_turns or history.substantive == 0
    if early and history.recoveries < settings.max_recoveries:
        return Nudge("recovery", recovery=True)
    if early:
        used = f"{history.recoveries} of {settings.max_recoveries} recovery prompts used"
        detail = f"no tool call at turn {history.turn}, {used}"
        facts = {
            "turn": history.turn,
            "recoveries": history.recoveries,
            "max_recoveries": settings.max_recoveries,
        }
        return Close(Exit(ExitReason.EARLY_NO_TOOL, detail, facts))
    if history.nudged_at != history.substantive:
        return Nudge("nudge")
    detail = f"no tool call at turn {history.turn}, after a nudge"
    return Close(Exit(ExitReason.YIELDED, detail, {"turn": history.turn, "waited": False}))
