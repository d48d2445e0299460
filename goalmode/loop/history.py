"""What one wakeup has counted so far: the guards' and the decision's memory, as a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from goalmode.domain.calls import CallOutcome, CallRecord, Effect
from goalmode.domain.signals import StopReason
from goalmode.loop.guards.repetition import Keys, Recent, Repetition, watch


@dataclass(frozen=True, slots=True)
class History:
    """Counts of one wakeup.

    Attributes:
        turn: the current turn, from 1; handoff calls are not counted.
        substantive: successful read and write calls.
        phase_substantive: those since the movement began, or since the last claim that stood in it.
        recoveries: recovery prompts given.
        nudged_at: `substantive` when the last nudge was given, None before any.
        pauses, truncations: in a row. malformed: corrections given.
        rebuilds: contexts rendered anew because the provider called the conversation too long.
        failed_controls: rejected or failed control calls, and calls to unknown tools.
        unearned_blocks: claims of being blocked that were not earned.
        saved_at: `substantive` when state was last saved.
        moves: movements, or higher bars, begun since the last successful read or write.
        forced_at: `substantive` when a forced exit last led to another movement, None before any.
        recent: the newest calls, by which repetitions are seen.
        repetition: what the last reply's calls repeated, where it is to be told of or ends the movement, else None.
        forced_by: keys of the calls whose repetition last led to another movement.
    """

    turn: int = 0
    substantive: int = 0
    phase_substantive: int = 0
    recoveries: int = 0
    nudged_at: int | None = None
    pauses: int = 0
    truncations: int = 0
    malformed: int = 0
    rebuilds: int = 0
    failed_controls: int = 0
    unearned_blocks: int = 0
    saved_at: int = 0
    moves: int = 0
    forced_at: int | None = None
    recent: Recent = Recent()
    repetition: Repetition | None = None
    forced_by: Keys = frozenset()

    @property
    def unsaved(self) -> bool:
        """Whether work was done since state was last saved."""
        return self.substantive > self.saved_at

    @property
    def forced_in_vain(self) -> bool:
        """Whether a forced exit led here and nothing came of it: no success since, or the same repetition again."""
        again = self.repetition is not None and self.repetition.keys == self.forced_by
        return again or self.forced_at == self.substantive

    def replied(self, stop: StopReason) -> History:
        """A reply came: what is counted in a row ends where another kind of reply stands between."""
        return replace(
            self,
            pauses=self.pauses if stop is StopReason.PAUSE else 0,
            truncations=self.truncations if stop is StopReason.MAX_TOKENS else 0,
        )

    def forced(self) -> History:
        """A forced exit led to another movement, which begins without the faults of the one before."""
        seen = self.repetition
        return replace(
            self,
            phase_substantive=0,
            forced_at=self.substantive,
            forced_by=seen.keys if seen is not None and seen.ends else self.forced_by,
            recent=Recent(),
            repetition=None,
            pauses=0,
            truncations=0,
            malformed=0,
            failed_controls=0,
        )

    def ran(self, records: Sequence[CallRecord], *, new_phase: bool = False) -> History:
        """Calls got their results. With `new_phase` another movement, or a higher bar, begins behind them."""
        substantive = sum(record.substantive for record in records)
        saved = any(r.effect is Effect.STATE and r.patch is not None for r in records)
        failed = sum(_failed_control(record) for record in records)
        total = self.substantive + substantive
        recent, repetition = watch(self.recent, records)
        return replace(
            self,
            recent=recent,
            repetition=repetition,
            substantive=total,
            phase_substantive=0 if new_phase else self.phase_substantive + substantive,
            saved_at=total if saved else self.saved_at,
            moves=(0 if substantive else self.moves) + int(new_phase),
            failed_controls=self.failed_controls + failed,
        )


def _failed_control(record: CallRecord) -> bool:
    bad = record.outcome in (CallOutcome.FAILED, CallOutcome.DENIED)
    return bad and record.effect in (Effect.CONTROL, None)
