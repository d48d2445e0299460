"""What one wakeup has counted so far: the guards' and the decision's memory, as a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from goalmode.domain.calls import CallOutcome, CallRecord, Effect
from goalmode.domain.signals import StopReason


@dataclass(frozen=True, slots=True)
class History:
    """Counts of one wakeup.

    Attributes:
        turn: the current turn, from 1; handoff calls are not counted.
        substantive: successful read and write calls.
        phase_substantive: those since the last claim that stood (until_budget goals).
        recoveries: recovery prompts given.
        nudged_at: `substantive` when the last nudge was given, None before any.
        pauses, truncations: in a row. malformed: corrections given.
        failed_controls: rejected or failed control calls, and calls to unknown tools.
        unearned_blocks: claims of being blocked that were not earned.
        saved_at: `substantive` when state was last saved.
    """

    turn: int = 0
    substantive: int = 0
    phase_substantive: int = 0
    recoveries: int = 0
    nudged_at: int | None = None
    pauses: int = 0
    truncations: int = 0
    malformed: int = 0
    failed_controls: int = 0
    unearned_blocks: int = 0
    saved_at: int = 0

    @property
    def unsaved(self) -> bool:
        """Whether work was done since state was last saved."""
        return self.substantive > self.saved_at

    def replied(self, stop: StopReason) -> History:
        """A reply came: what is counted in a row ends where another kind of reply stands between."""
        return replace(
            self,
            pauses=self.pauses if stop is StopReason.PAUSE else 0,
            truncations=self.truncations if stop is StopReason.MAX_TOKENS else 0,
        )

    def ran(self, records: Sequence[CallRecord]) -> History:
        """Calls got their results."""
        substantive = sum(record.substantive for record in records)
        saved = any(r.effect is Effect.STATE and r.outcome is CallOutcome.SUCCESS for r in records)
        failed = sum(_failed_control(record) for record in records)
        total = self.substantive + substantive
        return replace(
            self,
            substantive=total,
            phase_substantive=self.phase_substantive + substantive,
            saved_at=total if saved else self.saved_at,
            failed_controls=self.failed_controls + failed,
        )


def _failed_control(record: CallRecord) -> bool:
    bad = record.outcome in (CallOutcome.FAILED, CallOutcome.DENIED)
    return bad and record.effect in (Effect.CONTROL, None)
