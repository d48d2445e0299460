"""A claim that only people can still object to: it asks them, and does not loop."""

from __future__ import annotations

from goalmode.domain.contract import RequirementStatus
from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.goal import Goal
from goalmode.domain.questions import Asking, QuestionKind
from goalmode.domain.text import one_line
from goalmode.settle.case import Judgement
from goalmode.tools.builtin.control import ClaimArguments

TOLD = "accepted as far as the host can tell; a person is asked to accept the rest"
"""To the model, as its call's result."""

MAX_TEXT = 2_000
"""Characters of one requirement in the question."""


def sign_off(goal: Goal, claim: ClaimArguments, judgement: Judgement) -> Exit:
    """The ending that asks a person to accept what is left. It is asked once: the goal waits for the answer."""
    labels = [requirement.id for requirement in judgement.sign_off]
    wanted = "; ".join(f"{r.id}: {one_line(r.text, MAX_TEXT)}" for r in judgement.sign_off)
    text = (
        f"Everything that the host can check holds. Do you accept {wanted}? "
        f"If so: goalmode accept {goal.uid} {' '.join(labels)}; if not, answer what is to be changed."
    )
    outdated = [r.id for r in judgement.sign_off if r.status is RequirementStatus.PASSED]
    why = "only a person can say whether it holds"
    if outdated:
        why += f"; {', '.join(outdated)} had been accepted, but the deliverables changed since"
    facts = {
        "missing_info": text,
        "why_no_default": why,
        "summary": claim.summary,
        "evidence": list(claim.evidence),
        "sign_off": labels,
    }
    detail = f"a person has to accept {', '.join(labels)}"
    return Exit(ExitReason.NEEDS_USER_INPUT, detail, facts, question=Asking(QuestionKind.SIGN_OFF, text, why))
