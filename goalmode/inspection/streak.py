"""The evidence for a streak of bad endings: the wakeups that it is made of, and that nothing came of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from goalmode.domain.goal import Goal
from goalmode.inspection.seen import known_reason
from goalmode.orchestrator.after import counts
from goalmode.state.reading import WakeupSeen


def streak(goal: Goal, wakeups: Sequence[WakeupSeen]) -> list[dict[str, Any]]:
    """The newest wakeups, oldest first, whose endings the goal's streak counts: as many as it is long.

    Wakeups between them that neither count nor reset it are left out.

    Raises:
        StoreUnreadable: an ending that this code does not know.
    """
    found = [wakeup for wakeup in wakeups if _counts(goal, wakeup)]
    return [
        {
            "wakeup": wakeup.seq,
            "exit_reason": wakeup.exit_reason,
            "turns": wakeup.turns,
            "progress": wakeup.progress,
            "progress_by": dict(wakeup.progress_by),
            "detail": wakeup.exit_detail,
        }
        for wakeup in found[len(found) - min(goal.streak, len(found)) :]
    ]


def _counts(goal: Goal, wakeup: WakeupSeen) -> bool:
    if wakeup.exit_reason is None or wakeup.progress:
        return False
    return counts(known_reason(goal, wakeup, wakeup.exit_reason), wakeup.exit_facts)
