"""Progress is a change of state: what counts, and that doing the same again does not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from goalmode.domain.calls import CallOutcome, CallRecord, Effect
from goalmode.domain.work import StatePatch, WorkState, apply
from goalmode.orchestrator.progress import Progress, result_key
from goalmode.state.checks import CheckResult
from goalmode.state.journal import TurnOutcome, sha

READ = CallRecord(0, "c0", "read_file", Effect.READ, CallOutcome.SUCCESS, "one")


def progress(*seen: str) -> Progress:
    made = Progress(set(seen), lambda text: text.replace("secret", "[redacted]"))
    made.expect(["{}", '{"path": "b"}'])
    return made


def test_a_new_result_is_progress_and_the_same_again_is_not() -> None:
    """The same call with another result is; so is another call with the same result."""
    made = progress()

    assert made.of_turn(TurnOutcome([READ])) == 1
    assert made.of_turn(TurnOutcome([READ])) == 0
    assert made.of_turn(TurnOutcome([replace(READ, shown="two")])) == 1
    assert made.of_turn(TurnOutcome([replace(READ, position=1)])) == 1
    assert made.total == 3


def test_a_result_of_an_earlier_wakeup_is_no_news() -> None:
    """It is compared as the store keeps it, secrets struck out."""
    made = progress(result_key("read_file", sha("{}"), sha("a [redacted]")))

    assert made.of_turn(TurnOutcome([replace(READ, shown="a secret")])) == 0


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
    assert progress().of_turn(TurnOutcome([record])) == 0


def test_prose_is_no_progress() -> None:
    """A turn without calls has none."""
    assert progress().of_turn(TurnOutcome()) == 0


def test_calls_committed_by_themselves_count_in_their_turn() -> None:
    """A batch's results come one by one, before its outcome."""
    made = progress()
    made.note(READ)

    assert made.of_turn(TurnOutcome()) == 1
    assert made.of_turn(TurnOutcome()) == 0


def test_a_check_that_holds_for_the_first_time_is_progress() -> None:
    """Again with the same content it is none; with other content it is; a failing one never is."""
    made = progress()
    held = CheckResult("a.md", True, sha256="11")

    assert made.of_turn(TurnOutcome(checks=[held, CheckResult("R1", False)])) == 1
    assert made.of_turn(TurnOutcome(checks=[held])) == 0
    assert made.of_turn(TurnOutcome(checks=[replace(held, sha256="22")])) == 1


def test_checks_that_held_before_the_wakeup_are_no_news() -> None:
    """They are recognised in the form in which the store remembers them."""
    made = progress(result_key("check", "R1", "None"), result_key("check", "a.md", "11"))

    held = [CheckResult("R1", True), CheckResult("a.md", True, sha256="11")]
    assert made.of_turn(TurnOutcome(checks=held)) == 0


def test_a_verified_item_is_progress_and_a_saved_one_is_not() -> None:
    """Saying that something is done changes nothing; verifying it does."""
    made = progress()
    saved = apply(WorkState(), StatePatch(done=("a",), key_info="k"), wakeup=1)
    verified = apply(saved, StatePatch(verified={"W1": (True, "exit 0")}), wakeup=1)

    assert made.of_turn(TurnOutcome(work=saved)) == 0
    assert made.of_turn(TurnOutcome(work=verified, before=saved)) == 1
    assert made.of_turn(TurnOutcome(work=verified, before=verified)) == 0
