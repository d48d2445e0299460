"""Progress is a change of state, not activity: new results, files with new content, items verified, checks that hold.

Prose, saving a checkpoint and the same calls again are none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from goalmode.domain.calls import CallRecord, arguments_digest, digest
from goalmode.domain.questions import QuestionStatus
from goalmode.domain.snapshot import Observed, Snapshot
from goalmode.domain.work import ItemStatus, WorkState
from goalmode.state.checks import CheckResult
from goalmode.state.journal import TurnOutcome

REMEMBERED = 1_000
"""Recent results of the goal that a new one is compared with."""

KINDS = ("results", "files", "deliverables", "checks", "verified", "answers", "reports")
"""What marks of progress are of, as they are stored and shown.

- results: of calls that read, or act in another way than by writing a file, as they were not seen before.
- files: written by the host's tools, each with content that it did not have before in this goal.
- deliverables: with content that was not seen before, whoever wrote it.
- checks: that hold, and did not when they were last run.
- verified: items of work. answers: to questions, since the last wakeup.
- reports: of verifications that found nothing to mend.
"""


class Progress:
    """Counts the marks of progress of one wakeup.

    Args:
        earlier: reads the keys of what the goal had before (`keys_of`). Asked once the first reply is here: the first
            request need not wait for it.
        clean: makes a result what the store keeps of it, so that keys are comparable.
    """

    def __init__(self, earlier: Callable[[], set[str]], clean: Callable[[str], str]) -> None:
        self._earlier: Callable[[], set[str]] | None = earlier
        self._seen: set[str] = set()
        self._clean = clean
        self._arguments: dict[int, str] = {}
        self._marks = dict.fromkeys(KINDS, 0)

    @property
    def marks(self) -> Mapping[str, int]:
        """Marks so far, by what they are of."""
        return dict(self._marks)

    @property
    def total(self) -> int:
        return sum(self._marks.values())

    def begin(self, snapshot: Snapshot) -> None:
        """Take the state that the wakeup begins with for what is there; answers that it brings are progress."""
        self._seen |= {_content(o.path, o.sha256) for o in snapshot.observed if o.sha256 is not None}
        self._marks["answers"] += answered(snapshot)

    def expect(self, arguments: Sequence[str]) -> None:
        """A reply asks for calls with these raw arguments, in this order. Nothing of them is stored yet."""
        self._remember()
        self._arguments = {position: arguments_digest(text) for position, text in enumerate(arguments)}

    def note(self, record: CallRecord) -> None:
        """A call has its result."""
        if not record.substantive or record.cached:
            return
        arguments = self._arguments.get(record.position, "")
        written = () if record.patch is None else record.patch.written
        if not written:
            result = record.result_sha or digest(self._clean(record.body or record.shown))
            self._mark("results", result_key(record.tool, arguments, result))
        elif self._is_new(call_key(record.tool, arguments)):
            for path, sha in written:
                self._mark("files", f"file:{path}:{sha}")

    def of_turn(self, outcome: TurnOutcome) -> Mapping[str, int]:
        """A turn ends; returns the marks so far."""
        for record in outcome.records:
            self.note(record)
        for check in outcome.checks:
            self._check(check)
        if outcome.work is not None:
            self._marks["verified"] += len(_verified(outcome.work) - _verified(outcome.before))
        if outcome.moved is not None and outcome.moved.found_nothing:
            self._marks["reports"] += 1
        return self.marks

    def look(self, observed: Iterable[Observed]) -> None:
        """The deliverables as they are at the end."""
        for seen in observed:
            if seen.exists and seen.sha256 is not None:
                self._mark("deliverables", _content(seen.path, seen.sha256))

    def _check(self, check: CheckResult) -> None:
        if check.passed:
            kind = "checks" if check.sha256 is None else "deliverables"
            self._mark(kind, _content(check.subject, check.sha256))

    def _mark(self, kind: str, key: str) -> None:
        self._marks[kind] += self._is_new(key)

    def _remember(self) -> None:
        earlier, self._earlier = self._earlier, None
        if earlier is not None:
            self._seen |= earlier()

    def _is_new(self, key: str) -> bool:
        self._remember()
        new = key not in self._seen
        self._seen.add(key)
        return new


def result_key(tool: str, arguments_sha: str, result_sha: str) -> str:
    return f"{tool}:{arguments_sha}:{result_sha}"


def call_key(tool: str, arguments_sha: str) -> str:
    return f"{tool}:{arguments_sha}"


def keys_of(results: Iterable[tuple[str, str, str]]) -> set[str]:
    """By what results of earlier wakeups (tool, arguments' hash, result's hash) are known again."""
    return {key for row in results for key in (result_key(*row), call_key(*row[:2]))}


def answered(snapshot: Snapshot) -> int:
    """Questions that were answered since the last wakeup ended."""
    since = None if snapshot.last is None else snapshot.last.ended_at
    times = [q.answered_at for q in snapshot.questions if q.status is QuestionStatus.ANSWERED]
    return sum(at is not None and since is not None and at >= since for at in times)


def _content(subject: str, sha: str | None) -> str:
    return result_key("check", subject, str(sha))


def _verified(work: WorkState) -> set[int]:
    return {item.number for item in work.items if item.status is ItemStatus.VERIFIED}
