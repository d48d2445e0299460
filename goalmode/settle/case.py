"""What a claim is judged by, and the judgement: values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from goalmode.domain.goal import Goal
from goalmode.domain.snapshot import Action
from goalmode.domain.work import WorkState
from goalmode.state.checks import CheckResult
from goalmode.tools.registry import EffectGate


@dataclass(frozen=True, slots=True)
class Case:
    """What a claim of success is judged by. `actions` are the recorded calls that it may cite."""

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
        missing: what is not as the contract wants it, one line each, for the model. Empty: it stands.
        checks: the results, to be stored.
        basis: what it rests on: `checks`, or `evidence-only`.
    """

    missing: tuple[str, ...]
    checks: tuple[CheckResult, ...] = ()
    basis: str = "checks"

    @property
    def stands(self) -> bool:
        return not self.missing
