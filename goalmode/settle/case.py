"""What a claim is judged by, and the judgement: values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from goalmode.domain.contract import Requirement
from goalmode.domain.goal import Goal
from goalmode.domain.snapshot import Action
from goalmode.domain.work import WorkState
from goalmode.state.checks import CheckResult
from goalmode.tools.registry import EffectGate


@dataclass(frozen=True, slots=True)
class Case:
    """What a claim of success is judged by.

    Attributes:
        actions: the recorded calls that it may cite.
        gate: that the checks' commands pass.
        environment: of those commands; it holds no provider's key.
    """

    goal: Goal
    work: WorkState
    evidence: Sequence[str]
    actions: Sequence[Action]
    gate: EffectGate
    call_id: str
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether a claim of success stands.

    Attributes:
        missing: what is not as the contract wants it, one line each, for the model. Empty: only people can object.
        checks: the results, to be stored.
        basis: what it rests on: `checks`, or `evidence-only`.
        sign_off: if nothing is missing, the requirements that a person has yet to accept.
    """

    missing: tuple[str, ...]
    checks: tuple[CheckResult, ...] = ()
    basis: str = "checks"
    sign_off: tuple[Requirement, ...] = ()

    @property
    def stands(self) -> bool:
        return not self.missing and not self.sign_off
