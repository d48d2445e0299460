"""What a goal that runs until its limits keeps of a phase that is over: its report, and the bar it raises.

A phase is a movement, or the work since a claim stood in it, as far as this wakeup saw it.
"""

from __future__ import annotations

from goalmode.domain.text import one_line
from goalmode.domain.work import ItemKind, ItemStatus, WorkState, with_report
from goalmode.loop.act import Done
from goalmode.loop.turn import Run

MAX_REPORT = 500
"""Characters of a report that are kept."""


def leave_report(run: Run, done: Done, why: str) -> bool:
    """Keep why the phase is left as an item of work, in a goal that runs until its limits.

    Returns whether a verification is left that looked at something and found nothing to mend.
    """
    goal, work = run.wake.goal, done.work
    if not goal.settings.until_budget:
        return False
    done.work = with_report(work, goal.movement, one_line(why, MAX_REPORT), wakeup=run.wake.seq)
    looked = run.history.phase_substantive + sum(record.substantive for record in done.records)
    return goal.current.verifies and looked > 0 and not _findings(run.entered_with, work)


def _findings(before: WorkState, after: WorkState) -> bool:
    """Whether something is to be mended: a verification that failed, a new item to verify, other next steps."""
    known = {item.number for item in before.items if item.kind is ItemKind.PENDING}
    open_ones = [item for item in after.items if item.kind is ItemKind.PENDING]
    found = any(item.status is ItemStatus.FAILED or item.number not in known for item in open_ones)
    return found or after.checkpoint.next_steps != before.checkpoint.next_steps
