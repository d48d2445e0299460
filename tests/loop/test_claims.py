"""A claim is a proposal: the host checks it, tells what is missing, and bounds the number of attempts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from goalmode.domain.exits import ExitReason, GoalStatus
from goalmode.domain.messages import ToolCall, ToolResult
from goalmode.state import goals
from goalmode.testing import call, calls, say

Make = Callable[..., Any]

SUCCESS = call("complete", status="success", summary="Done as wanted.")
WORK = call("shell", command="echo hello > out.txt")


def raw(name: str, arguments: str) -> Any:
    return replace(call(name), calls=(ToolCall("c1", name, arguments),))


def test_a_failing_check_is_told_with_its_exit_code_and_output(make: Make) -> None:
    """The model learns which check failed, how, and what it printed."""
    world = make(checks=("echo seven tests failed; exit 7",), max_turns=2)

    ending = world.wake([SUCCESS, WORK, say("saved")])

    assert ending.reason is ExitReason.MAX_TURNS_EXCEEDED
    assert "exit code 7" in world.told(1)
    assert "seven tests failed" in world.told(1)


def test_pending_items_refuse_a_claim_until_they_are_verified(make: Make) -> None:
    """B01: nothing is complete while an item awaits verification."""
    world = make(deliverables=("out.txt",))
    verify = call("verify", item="W1", outcome="passed", evidence="cat out.txt printed hello")

    ending = world.wake(
        [WORK, call("update_working_checkpoint", pending=["the greeting is right"]), SUCCESS, verify, SUCCESS]
    )

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert "W1" in world.told(3)


def test_evidence_only_goals_need_a_claim_that_cites_something_recorded(make: Make) -> None:
    """Without checks and deliverables, prose is not enough; a recorded call or an existing file is."""
    world = make()
    vague = call("complete", status="success", summary="Done.", evidence=["I am sure of it"])
    cited = call("complete", status="success", summary="Done.", evidence=["out.txt holds the greeting"])

    ending = world.wake([WORK, vague, cited])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert ending.facts["basis"] == "evidence-only"


@pytest.mark.parametrize(
    "bad",
    [
        raw("complete", '{"status": "success", "summ'),
        raw("complete", "[1]"),
        raw("task_complete", '{"summary": "done"}'),
        call("complete", status="finished", summary="x"),
        call("complete", status="success", summary="  "),
    ],
    ids=["cut", "array", "wrong name", "wrong status", "blank summary"],
)
def test_failed_claims_are_bounded(make: Make, bad: Any) -> None:
    """B12: a completion call that keeps failing ends the wakeup after five, each answered with the valid form."""
    world = make()

    ending = world.wake([bad] * 5)

    assert ending.reason is ExitReason.NO_PROGRESS
    assert "complete" in world.told(1)
    assert world.now.status is GoalStatus.ACTIVE


def test_rejected_claims_are_bounded(make: Make) -> None:
    """A claim that never holds is not repeated for ever."""
    world = make(deliverables=("never.txt",))

    ending = world.wake([SUCCESS] * 5)

    assert ending.reason is ExitReason.NO_PROGRESS
    assert ending.facts["failed_controls"] == 5


def test_claim_beside_ordinary_calls_runs_them_first(make: Make) -> None:
    """The file that a sibling call writes counts for the claim of the same reply; every call has its result."""
    world = make(deliverables=("out.txt",))

    ending = world.wake([calls(SUCCESS, WORK)])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE


def test_second_claim_of_a_reply_is_refused(make: Make) -> None:
    """Two claims in one reply: the first is judged, the second refused, both answered."""
    world = make(deliverables=("never.txt",), max_turns=2)

    world.wake([calls(SUCCESS, SUCCESS), WORK, say("saved")])

    results = [m for m in world.requests[1].messages if isinstance(m, ToolResult)]
    assert len(results) == 2
    assert "only once" in results[1].text


def test_needs_user_input_without_both_fields_is_refused(make: Make) -> None:
    """B126: incomplete questions are refused, the goal never waits, and the work goes on to the end."""
    world = make(deliverables=("out.txt",))
    asks = [
        call("complete", status="needs_user_input", summary="?"),
        call("complete", status="needs_user_input", summary="?", missing_info="which one"),
        call("complete", status="needs_user_input", summary="?", missing_info=" ", why_no_default=" "),
    ]

    ending = world.wake([*asks, WORK, SUCCESS])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE


def test_needs_user_input_waits_for_the_user(make: Make) -> None:
    """B122: a complete question ends the wakeup, keeps both fields and makes no further request."""
    world = make()
    ask = call(
        "complete",
        status="needs_user_input",
        summary="The colour is open.",
        missing_info="Which colour?",
        why_no_default="It is printed.",
    )

    ending = world.wake([ask])

    assert ending.reason is ExitReason.NEEDS_USER_INPUT
    assert ending.facts["why_no_default"] == "It is printed."
    assert world.now.status is GoalStatus.WAITING_USER


def test_blocked_is_earned(make: Make) -> None:
    """The same obstacle in three wakeups blocks the goal; before that the model is sent on, then yields."""
    world = make()
    blocked = call("complete", status="blocked", summary="No way.", obstacle="The server is down")
    for _ in range(2):
        assert world.wake([WORK, blocked, blocked]).reason is ExitReason.YIELDED

    ending = world.wake([WORK, blocked])

    assert ending.reason is ExitReason.TASK_BLOCKED
    assert world.now.status is GoalStatus.BLOCKED


def test_a_claim_checked_at_an_older_revision_does_not_close_the_goal(make: Make) -> None:
    """An edit that arrives while a claim is being checked is said to the model, and the claim is judged anew."""
    world = make(deliverables=("out.txt",))

    def edit(event: Any) -> None:
        if event.kind == "turn" and event.data["turn"] == 2:
            change = goals.Edit(
                world.now.revision, objective="Write two files.", deliverables=("out.txt", "b.txt")
            )
            goals.edit(world.store, world.now, change, now=world.clock.now())

    ending = world.wake(
        [WORK, SUCCESS, call("write_file", path="b.txt", content="b"), SUCCESS], on_event=edit
    )

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert "Write two files." in world.told(2)
    assert world.now.objective == "Write two files."


def test_wait_is_refused_before_work_and_accepted_after(make: Make) -> None:
    """`wait` is no way to idle: it needs a substantive success and at least 30 seconds."""
    world = make()
    early = call("wait", seconds=60, reason="the build")

    ending = world.wake([early, WORK, call("wait", seconds=5, reason="the build"), early])

    assert ending.reason is ExitReason.YIELDED
    assert (world.now.next_wakeup_at - world.clock.now()).total_seconds() == 60
    assert world.now.streak == 0


def test_prose_after_work_gets_one_nudge_then_yields(make: Make) -> None:
    """Late prose is nudged once; without progress it counts towards the streak."""
    world = make(early_turns=0)

    ending = world.wake([WORK, say("That was it."), say("Really.")])

    assert ending.reason is ExitReason.YIELDED


def test_three_bad_endings_block_the_goal(make: Make) -> None:
    """The streak is kept across wakeups, and its third bad ending blocks the goal with the evidence."""
    world = make()
    for _ in range(3):
        world.wake([say("done"), say("done"), say("done")])

    assert world.now.status is GoalStatus.BLOCKED
    assert "3 wakeups in a row" in world.now.status_detail
