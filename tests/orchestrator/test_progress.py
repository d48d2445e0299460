"""Progress is a change of state: what counts, under which name, and that doing the same again does not."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from goalmode.domain.calls import CallOutcome, CallRecord, Effect, arguments_digest, digest
from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.questions import Asking, Question, QuestionKind, QuestionStatus
from goalmode.domain.snapshot import LastEnding, Observed, Snapshot
from goalmode.domain.work import StatePatch, WorkState, apply
from goalmode.orchestrator.progress import KINDS, Progress, answered, keys_of
from goalmode.state.checks import CheckResult
from goalmode.state.journal import TurnOutcome
from goalmode.state.movements import Moved
from goalmode.state.store import Store
from tests.context.builders import make_goal
from tests.orchestrator.builders import FakeRenderer, begin, intend, new_goal
from tests.state.builders import rows

READ = CallRecord(0, "c0", "read_file", Effect.READ, CallOutcome.SUCCESS, "one")
NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def progress(*results: tuple[str, str, str]) -> Progress:
    made = Progress(lambda: keys_of(results), lambda text: text.replace("secret", "[redacted]"))
    made.expect(["{}", '{"path": "b"}'])
    return made


def marked(made: Progress, outcome: TurnOutcome) -> dict[str, int]:
    """The marks of one turn, those that it has."""
    before = made.marks
    return {kind: n - before[kind] for kind, n in made.of_turn(outcome).items() if n != before[kind]}


def wrote(path: str, content: str, *, position: int = 0) -> CallRecord:
    patch = StatePatch(written=((path, digest(content)),))
    record = CallRecord(
        position, "c", "write_file", Effect.WRITE, CallOutcome.SUCCESS, f"created {path}", patch=patch
    )
    return replace(record, brief=path)


def turn_of(made: Progress, *records: tuple[CallRecord, dict[str, str]]) -> dict[str, int]:
    made.expect([json.dumps(arguments) for _, arguments in records])
    return marked(made, TurnOutcome([replace(r, position=n) for n, (r, _) in enumerate(records)]))


def test_a_new_result_is_progress_and_the_same_again_is_not() -> None:
    """The same call with another result is; so is another call with the same result."""
    made = progress()

    assert marked(made, TurnOutcome([READ])) == {"results": 1}
    assert marked(made, TurnOutcome([READ])) == {}
    assert marked(made, TurnOutcome([replace(READ, shown="two")])) == {"results": 1}
    assert marked(made, TurnOutcome([replace(READ, position=1)])) == {"results": 1}
    assert made.total == 3


def test_arguments_are_compared_as_values() -> None:
    """The same call with its keys in another order is the same call (B36)."""
    made = progress()
    for raw in ('{"path": "a", "limit": 2}', '{"limit":2,"path":"a"}'):
        made.expect([raw])
        made.of_turn(TurnOutcome([READ]))

    assert made.total == 1


def test_a_result_is_compared_without_what_varies_from_run_to_run() -> None:
    """Two runs of a command differ in their duration; where that is all, nothing is new."""
    made = progress()
    first = replace(READ, shown="duration: 0.1 s", result_sha=digest("42"))

    assert marked(made, TurnOutcome([first])) == {"results": 1}
    assert marked(made, TurnOutcome([replace(first, shown="duration: 0.7 s")])) == {}


def test_a_result_of_an_earlier_wakeup_is_no_news() -> None:
    """It is compared as the store keeps it, secrets struck out."""
    made = progress(("read_file", arguments_digest("{}"), digest("a [redacted]")))

    assert marked(made, TurnOutcome([replace(READ, shown="a secret")])) == {}


@pytest.mark.parametrize(
    "record",
    [
        replace(READ, outcome=CallOutcome.FAILED),
        replace(READ, outcome=CallOutcome.DENIED),
        replace(READ, outcome=CallOutcome.SKIPPED),
        replace(READ, effect=Effect.STATE),
        replace(READ, effect=Effect.CONTROL),
        replace(READ, effect=None),
    ],
)
def test_what_is_not_substantive_is_no_progress(record: CallRecord) -> None:
    """Failures, saving state and control calls change nothing in the world."""
    assert marked(progress(), TurnOutcome([record])) == {}


def test_prose_is_no_progress() -> None:
    """A turn without calls has none."""
    assert marked(progress(), TurnOutcome()) == {}


def test_calls_committed_by_themselves_count_in_their_turn() -> None:
    """A batch's results come one by one, before its outcome."""
    made = progress()
    made.note(READ)

    assert made.of_turn(TurnOutcome())["results"] == 1
    assert marked(made, TurnOutcome()) == {}


def test_a_file_written_with_new_content_is_progress() -> None:
    """As a file, not as a result: the same content again is none, whatever the tool says of it."""
    made = progress()
    first, second = {"path": "a", "content": "1"}, {"path": "a", "content": "2"}

    assert turn_of(made, (wrote("a", "1"), first)) == {"files": 1}
    assert turn_of(made, (replace(wrote("a", "1"), shown="replaced a"), first)) == {}
    assert turn_of(made, (wrote("a", "2"), second)) == {"files": 1}
    assert turn_of(made, (wrote("a", "1"), first)) == {}
    assert turn_of(made, (wrote("b", "1"), {"path": "b", "content": "1"})) == {"files": 1}


def test_a_file_that_is_written_to_and_fro_over_wakeups_is_none() -> None:
    """What an earlier wakeup wrote in the same words is known by its arguments."""
    arguments = {"path": "a", "content": "1"}
    made = progress(("write_file", arguments_digest(json.dumps(arguments)), digest("created a")))

    assert turn_of(made, (replace(wrote("a", "1"), shown="replaced a"), arguments)) == {}


def test_a_check_that_holds_for_the_first_time_is_progress() -> None:
    """Again it is none; a failing one never is. What a deliverable holds is compared by its content."""
    made = progress()
    held = CheckResult("a.md", True, sha256="11")

    first = [held, CheckResult("R1", True, 0), CheckResult("R2", False)]
    assert marked(made, TurnOutcome(checks=first)) == {"deliverables": 1, "checks": 1}
    assert marked(made, TurnOutcome(checks=[held, CheckResult("R1", True, 0)])) == {}
    assert marked(made, TurnOutcome(checks=[replace(held, sha256="22")])) == {"deliverables": 1}


def test_checks_that_held_before_the_wakeup_are_no_news() -> None:
    """They are recognised in the form in which the store remembers them."""
    made = progress(("check", "R1", "None"), ("check", "a.md", "11"))

    held = [CheckResult("R1", True), CheckResult("a.md", True, sha256="11")]
    assert marked(made, TurnOutcome(checks=held)) == {}


def test_a_verified_item_is_progress_and_a_saved_one_is_not() -> None:
    """Saying that something is done changes nothing; verifying it does, each item by itself."""
    made = progress()
    saved = apply(WorkState(), StatePatch(done=("a", "b"), key_info="k"), wakeup=1)
    passed = {"W1": (True, "exit 0"), "W2": (True, "exit 0")}
    verified = apply(saved, StatePatch(verified=passed), wakeup=1)

    assert marked(made, TurnOutcome(work=saved)) == {}
    assert marked(made, TurnOutcome(work=verified, before=saved)) == {"verified": 2}
    assert marked(made, TurnOutcome(work=verified, before=verified)) == {}


def test_one_item_verified_and_another_found_wrong_is_progress() -> None:
    """The number of verified items need not grow for one to be verified anew."""
    saved = apply(WorkState(), StatePatch(done=("a", "b")), wakeup=1)
    before = apply(saved, StatePatch(verified={"W1": (True, "x")}), wakeup=1)
    after = apply(before, StatePatch(verified={"W1": (False, "x"), "W2": (True, "y")}), wakeup=1)

    assert marked(progress(), TurnOutcome(work=after, before=before)) == {"verified": 1}


def test_a_verification_that_found_nothing_is_progress() -> None:
    """A movement that is left otherwise is none."""
    made = progress()

    assert marked(made, TurnOutcome(moved=Moved("improve", "x", found_nothing=True))) == {"reports": 1}
    assert marked(made, TurnOutcome(moved=Moved("verify", "x"))) == {}


def snapshot(*questions: Question, observed: tuple[Observed, ...] = ()) -> Snapshot:
    last = LastEnding(1, ExitReason.NEEDS_USER_INPUT, "", 2, NOON)
    return Snapshot(make_goal(), 2, NOON, questions=questions, observed=observed, last=last)


def question(status: QuestionStatus, answered_at: datetime | None) -> Question:
    asking = Asking(QuestionKind.INPUT, "Which?")
    return Question(1, asking, status, 1, NOON, answer="this", answered_at=answered_at)


@pytest.mark.parametrize(
    ("status", "after", "expected"),
    [
        (QuestionStatus.ANSWERED, timedelta(0), 1),
        (QuestionStatus.ANSWERED, timedelta(hours=1), 1),
        (QuestionStatus.ANSWERED, timedelta(seconds=-1), 0),
        (QuestionStatus.OPEN, None, 0),
        (QuestionStatus.WITHDRAWN, None, 0),
    ],
)
def test_answers_since_the_last_wakeup_are_progress(
    status: QuestionStatus, after: timedelta | None, expected: int
) -> None:
    """An answer that an earlier wakeup had already is none, and so is a question that nobody answered."""
    seen = snapshot(question(status, None if after is None else NOON + after))

    assert answered(seen) == expected
    assert answered(replace(seen, last=None)) == 0


def test_deliverables_are_compared_with_what_the_wakeup_began_with() -> None:
    """Whoever changed them meanwhile: new content is progress, once; what was there, or is gone, is none."""
    made = progress()
    made.begin(snapshot(observed=(Observed("a", True, 1, "11"), Observed("b", False))))

    made.look([Observed("a", True, 1, "11"), Observed("b", False)])
    assert made.total == 0
    made.of_turn(TurnOutcome(checks=[CheckResult("a", True, sha256="22")]))
    made.look([Observed("a", True, 1, "22"), Observed("b", True, 1, "33")])
    assert made.marks["deliverables"] == 2


def test_marks_are_stored_by_what_they_are_of(store: Store, workspace: Path) -> None:
    """With each turn, so that a process that dies leaves them, and with the end: their sum, and the counts."""
    deliverable = {"a": "11"}

    class Renderer(FakeRenderer):
        def observe(self, goal: object) -> tuple[Observed, ...]:
            return tuple(Observed(path, True, 1, sha) for path, sha in deliverable.items())

    goal = new_goal(store, workspace, deliverables=("a",))
    wake = begin(store, goal, Renderer())
    intend(wake, "read_file")
    wake.outcome(TurnOutcome([READ]))
    assert stored(store) == [(1, {"results": 1})]

    deliverable["a"] = "22"
    wake.close(Exit(ExitReason.YIELDED, "x", {"waited": True}))
    assert stored(store) == [(2, {"results": 1, "deliverables": 1})]


def test_whoever_stops_a_wakeup_does_not_wait_for_a_look_at_the_files(store: Store, workspace: Path) -> None:
    """A user's stop neither counts nor resets: nothing hangs on it."""
    looks: list[object] = []
    renderer = FakeRenderer()
    wake = begin(store, new_goal(store, workspace), renderer)
    renderer.observe = lambda goal: looks.append(goal) or ()  # type: ignore[method-assign,func-returns-value]

    wake.close(Exit(ExitReason.USER_ABORTED, "stopped", {"control": "pause"}))

    assert looks == []


def stored(store: Store) -> list[tuple[int, dict[str, int]]]:
    """Sum and counts of each wakeup, those that are not zero."""
    found = rows(store, "SELECT progress, progress_by FROM wakeups ORDER BY seq")
    return [(total, {k: n for k, n in json.loads(by).items() if k in KINDS and n}) for total, by in found]
