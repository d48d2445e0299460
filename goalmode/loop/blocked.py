"""Blocked is earned: by the same obstacle in several committed wakeups. Before that, another way is to be tried."""

from __future__ import annotations

import re
from dataclasses import replace

from goalmode.domain.calls import CallOutcome
from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.goal import EARNED_AFTER, Goal
from goalmode.domain.text import one_line
from goalmode.loop.act import Asked, Done
from goalmode.loop.turn import Run
from goalmode.tools.builtin.control import ClaimArguments
from goalmode.tools.workers import in_worker

MAX_UNEARNED = 2
"""Claims of being blocked in one wakeup that were not earned, with which it yields."""

_ID = re.compile(r"O\d+", re.IGNORECASE)
_TOLD = 10


async def judge_blocked(run: Run, done: Done, asked: Asked, claim: ClaimArguments) -> None:
    """Answer a claim of being blocked, and count the obstacle that it names."""
    if problem := _unknown(run.wake.goal, claim):
        done.answer(asked.record(CallOutcome.FAILED, f"complete: {problem}"))
        return
    obstacle = await in_worker(run.wake.met_obstacle, claim.obstacle, claim.requirement)
    met = len(obstacle.wakeups)
    facts = {
        "obstacle": obstacle.id,
        "text": obstacle.text,
        "requirement": obstacle.requirement,
        "wakeups": list(obstacle.wakeups),
    }
    waits = await in_worker(run.wake.waits_for)
    if met >= EARNED_AFTER and not waits:
        detail = f"{obstacle.text} ({obstacle.id}, met in {met} wakeups)"
        done.exit = Exit(ExitReason.TASK_BLOCKED, detail, {**facts, "summary": claim.summary})
        done.answer(asked.record(CallOutcome.SUCCESS, "accepted: blocked"))
        return
    run.history = replace(run.history, unearned_blocks=run.history.unearned_blocks + 1)
    done.rejected += 1
    named = f"{obstacle.id}: {obstacle.text}"
    shown = run.ports.prompt("not_blocked", obstacle=named, met=met, needed=EARNED_AFTER, waits=waits)
    done.answer(asked.record(CallOutcome.DENIED, shown))
    if run.history.unearned_blocks >= MAX_UNEARNED:
        detail = f"says it is blocked: {obstacle.text} ({obstacle.id})"
        done.exit = Exit(ExitReason.YIELDED, detail, {**facts, "waited": False})


def _unknown(goal: Goal, claim: ClaimArguments) -> str:
    """What is wrong with the ids that the claim names; empty if nothing is."""
    known = {obstacle.id: obstacle.text for obstacle in goal.obstacles}
    if _ID.fullmatch(claim.obstacle) and claim.obstacle.upper() not in known:
        listed = "; ".join(f"{name}: {one_line(text, 80)}" for name, text in list(known.items())[-_TOLD:])
        those = f"the known ones are {listed}" if known else "none is known yet"
        return f"there is no obstacle {claim.obstacle.upper()}; {those}; or say in words what is in the way"
    requirements = [requirement.id for requirement in goal.requirements]
    if claim.requirement and claim.requirement not in requirements:
        those = f"the requirements are {', '.join(requirements)}" if requirements else "the goal has none"
        return f"there is no requirement {one_line(claim.requirement, 80)!r}; {those}"
    return ""
