"""Progress is a change of state, not activity: new results, verified items, checks that hold now and did not before."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from goalmode.domain.calls import CallRecord
from goalmode.domain.work import ItemStatus, WorkState
from goalmode.state.checks import CheckResult
from goalmode.state.journal import TurnOutcome, sha

REMEMBERED = 1_000
"""Recent results of the goal that a new one is compared with."""


class Progress:
    """Counts marks of progress of one wakeup. The same call with the same result again is none; prose never is.

    Args:
        seen: keys of the goal's recent results (`result_key`).
        clean: makes a result what the store keeps of it, so that keys are comparable.
    """

    def __init__(self, seen: set[str], clean: Callable[[str], str]) -> None:
        self._seen, self._clean = seen, clean
        self._arguments: dict[int, str] = {}
        self._marks = 0
        self.total = 0

    def expect(self, arguments: Sequence[str]) -> None:
        """A reply asks for calls with these raw arguments, in this order."""
        self._arguments = {position: sha(text) for position, text in enumerate(arguments)}

    def note(self, record: CallRecord) -> None:
        if record.substantive and not record.cached:
            result = sha(self._clean(record.body or record.shown))
            self._mark(result_key(record.tool, self._arguments.get(record.position, ""), result))

    def of_turn(self, outcome: TurnOutcome) -> int:
        """Marks of the turn that ends."""
        for record in outcome.records:
            self.note(record)
        for check in outcome.checks:
            self._check(check)
        if outcome.work is not None and _verified(outcome.work) > _verified(outcome.before):
            self._marks += 1
        marks, self._marks = self._marks, 0
        self.total += marks
        return marks

    def _check(self, check: CheckResult) -> None:
        if check.passed:
            self._mark(f"check:{check.subject}:{check.sha256}")

    def _mark(self, key: str) -> None:
        self._marks += key not in self._seen
        self._seen.add(key)


def result_key(tool: str, arguments_sha: str, result_sha: str) -> str:
    return f"{tool}:{arguments_sha}:{result_sha}"


def _verified(work: WorkState) -> int:
    return sum(item.status is ItemStatus.VERIFIED for item in work.items)
