"""Judging what the model claims: success, a question, an obstacle. A claim that stands may end the goal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from goalmode.domain.calls import CallOutcome
from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.messages import Reply, User
from goalmode.domain.questions import Asking, QuestionKind
from goalmode.domain.steps import Claim
from goalmode.domain.text import sendable
from goalmode.loop.act import Asked, Done, action, run_control, still_open
from goalmode.loop.blocked import judge_blocked
from goalmode.loop.report import leave_report
from goalmode.loop.sign_off import TOLD, sign_off
from goalmode.loop.transition import go_on
from goalmode.loop.turn import Call, Run
from goalmode.settle.case import Case, Judgement
from goalmode.state.movements import Moved
from goalmode.tools.builtin.control import ClaimArguments, ClaimStatus, parse_claim

MAX_SAID = 2_000
"""Characters of a reply that claims by its ending that are kept as its summary."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """What became of a claim of success.

    Attributes:
        stands: also where all that is left to do is a person's.
        told: to the model.
        exit: of the goal's end, or of the wakeup's where a person has to accept; None where the work goes on.
        missing: why it does not stand.
    """

    stands: bool
    told: str
    exit: Exit | None = None
    missing: tuple[str, ...] = ()


async def put_claim(run: Run, call: Call, claim: Claim, reply: Reply) -> Done:
    """Run the ordinary calls, then judge the claim. Every call of the reply gets its result."""
    if claim.complete is None:
        return await _claim_by_ending(run, reply)
    return await run_control(
        run,
        call,
        claim.complete,
        siblings=claim.siblings,
        surplus=claim.surplus,
        reply=reply.calls,
        act=partial(_judge, run),
    )


async def rule(run: Run, done: Done, claim: ClaimArguments, *, by: str, phase: int) -> Ruling:
    """Whether a claim of success stands. `done` gets the checks' results and, if work goes on, the next movement.

    Args:
        by: what makes the claim: a call's id, or a word for what claims without one.
        phase: successful reads and writes since the movement, or the present bar, began.
    """
    goal = run.wake.goal
    if goal.settings.until_budget and phase == 0:
        missing = ("a successful read or write since the last claim that stood",)
        return Ruling(False, run.ports.prompt("recovery", **still_open(run)), missing=missing)
    actions = [*run.wake.actions, *(action(run, r) for r in done.records)]
    key = f"{goal.uid}:{run.wake.seq}:{run.seq}:{by}"
    environment = {**run.ports.environment, "GOALMODE_IDEMPOTENCY_KEY": key}
    case = Case(goal, done.work, claim.evidence, actions, run.wake.gate, by, environment)
    judgement = await run.ports.judge(case)
    done.checks = judgement.checks
    if judgement.missing:
        told = run.ports.prompt("rejected", missing=judgement.missing)
        return Ruling(False, told, missing=judgement.missing)
    if judgement.sign_off:
        return Ruling(True, TOLD, sign_off(goal, claim, judgement))
    if not goal.settings.until_budget:
        return Ruling(True, "accepted: complete", _success(claim, judgement))
    following, stood = goal.settings.workflow.after(goal.current), f"a claim stood: {claim.summary}"
    if following is None or following.name == goal.movement:
        leave_report(run, done, stood)
        done.new_phase, run.entered_with = True, done.work
        return Ruling(True, run.ports.prompt("raise_bar"))
    go_on(run, done, Moved(following.name, stood), claimed=True)
    return Ruling(True, f"accepted: the contract holds; transition to {following.name}")


async def _claim_by_ending(run: Run, reply: Reply) -> Done:
    """Judge a reply that claims success by ending its turn without a call."""
    done = Done(run.wake.work)
    said = run.ports.redact(sendable(reply.text)).strip()
    claim = ClaimArguments(ClaimStatus.SUCCESS, said[:MAX_SAID], (said,))
    ruling = await rule(run, done, claim, by="end_turn", phase=run.history.phase_substantive)
    done.exit = ruling.exit
    if not ruling.stands:
        done.rejected += 1
        run.history = replace(run.history, failed_controls=run.history.failed_controls + 1)
    if ruling.exit is None and done.moved is None:
        done.prompts.append(User(ruling.told))
    return done


async def _judge(run: Run, done: Done, asked: Asked) -> None:
    claim = parse_claim(asked.arguments, run.ports.redact)
    if isinstance(claim, str):
        done.answer(asked.record(CallOutcome.FAILED, claim))
        return
    match claim.status:
        case ClaimStatus.SUCCESS:
            phase = run.history.phase_substantive + sum(r.substantive for r in done.records)
            ruling = await rule(run, done, claim, by=asked.call.id, phase=phase)
            done.exit = ruling.exit or done.exit
            done.rejected += not ruling.stands
            outcome = CallOutcome.SUCCESS if ruling.stands else CallOutcome.DENIED
            done.answer(asked.record(outcome, ruling.told))
        case ClaimStatus.NEEDS_USER_INPUT:
            facts = {
                "missing_info": claim.missing_info,
                "why_no_default": claim.why_no_default,
                "summary": claim.summary,
            }
            question = _asking(claim, run.ports.clock.now())
            done.exit = Exit(ExitReason.NEEDS_USER_INPUT, claim.missing_info, facts, question=question)
            done.answer(asked.record(CallOutcome.SUCCESS, "accepted: the user is asked"))
        case ClaimStatus.BLOCKED:
            await judge_blocked(run, done, asked, claim)


def _asking(claim: ClaimArguments, now: datetime) -> Asking:
    """The question that a claim of needing the user puts to him."""
    seconds = claim.default_after_seconds
    return Asking(
        QuestionKind.INPUT,
        claim.missing_info,
        claim.why_no_default,
        claim.options,
        claim.default,
        None if seconds is None else now + timedelta(seconds=seconds),
    )


def _success(claim: ClaimArguments, judgement: Judgement) -> Exit:
    facts = {"basis": judgement.basis, "summary": claim.summary, "evidence": list(claim.evidence)}
    return Exit(ExitReason.CURRENT_TASK_DONE, f"{claim.summary} ({judgement.basis})", facts)
