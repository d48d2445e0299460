"""Goals that could not be woken just now are passed over for a while. In memory: a new process tries them at once."""

from __future__ import annotations

from dataclasses import dataclass

FIRST_SECONDS = 5.0
LONGEST_SECONDS = 300.0
"""How long a goal is passed over, doubled each time that it could not be woken again."""


@dataclass(slots=True)
class _Passed:
    until: float
    seconds: float
    cause: str


class Patience:
    """Which goals are passed over, until when and why. Times are seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._passed: dict[int, _Passed] = {}

    def pass_over(self, goal: int, cause: str, now: float) -> bool:
        """Leave the goal alone for a while; whether this is another cause than the one before."""
        before = self._passed.get(goal)
        seconds = FIRST_SECONDS if before is None else min(LONGEST_SECONDS, before.seconds * 2)
        self._passed[goal] = _Passed(now + seconds, seconds, cause)
        return before is None or before.cause != cause

    def forget(self, goal: int) -> None:
        """It was woken: what was in its way is over."""
        self._passed.pop(goal, None)

    def passed_over(self, now: float) -> set[int]:
        return {goal for goal, passed in self._passed.items() if passed.until > now}
