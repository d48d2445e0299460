"""The promises the project was made for, under the names by which they are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from goalmode.domain.budget import Limits
from goalmode.domain.exits import Exit, ExitReason, GoalStatus
from goalmode.domain.messages import Assistant, Reply
from goalmode.domain.signals import ErrorKind, StopReason
from goalmode.errors import ModelError
from goalmode.testing import call, calls, say

CLOSING = "全部完成，最终交付。All done, final delivery. Everything is complete and finished."


def work(number: int) -> Reply:
    """A turn of real work whose prose sounds like the end."""
    return replace(call("shell", command=f"echo {number} >> log.txt"), text=f"{CLOSING} (turn {number})")


def test_full_turn_quota_at_every_wakeup(make: Callable[..., object]) -> None:
    """B19, B06: three wakeups in a row each get their full quota, whatever the earlier ones said."""
    world = make(max_turns=6)

    endings = [world.wake([*(work(n) for n in range(6)), say("saved")]) for _ in range(3)]

    assert [e.reason for e in endings] == [ExitReason.MAX_TURNS_EXCEEDED] * 3
    assert world.now.spent.turns == 18
    assert world.now.status is GoalStatus.ACTIVE
    assert world.now.next_wakeup_at == world.clock.now()


def test_no_replay_of_earlier_assistant_prose(make: Callable[..., object]) -> None:
    """B01: not one sentence that the model said in an earlier wakeup is in a later one's context."""
    world = make(max_turns=4)
    world.wake([*(work(n) for n in range(4)), say(CLOSING)])

    world.wake([call("shell", command="true"), say(""), say(""), say(""), say("")])

    first = world.requests[0]
    assert not any(isinstance(m, Assistant) for m in first.messages)
    assert "全部完成" not in world.told(0)
    assert "final delivery" not in world.told(0)
    assert "echo 3 >> log.txt" in world.told(0)


def test_early_no_tool_gets_bounded_recovery_then_EARLY_NO_TOOL(make: Callable[..., object]) -> None:
    """A model that stops early is asked back twice, then the wakeup ends for its own reason, and backs off."""
    world = make()

    ending = world.wake([say(CLOSING), say(CLOSING), say(CLOSING)])

    assert ending.reason is ExitReason.EARLY_NO_TOOL
    assert ending.facts["recoveries"] == 2
    assert world.now.streak == 1
    assert (world.now.next_wakeup_at - world.clock.now()).total_seconds() >= 30


def test_a_recovered_model_keeps_its_quota(make: Callable[..., object]) -> None:
    """One recovery prompt is enough for a model that then works: the quota is used to the end."""
    world = make(max_turns=5)

    ending = world.wake([say(CLOSING), *(work(n) for n in range(4)), say("saved")])

    assert ending.reason is ExitReason.MAX_TURNS_EXCEEDED
    assert "tool call" in world.told(1)


def test_true_completion_at_turn_one_is_accepted(make: Callable[..., object]) -> None:
    """A goal that is truly done can be claimed in the first reply."""
    world = make(deliverables=("a.txt",), checks=("grep -q x a.txt",))
    (world.workspace / "a.txt").write_text("x\n")

    ending = world.wake([call("complete", status="success", summary="It is there.")])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert world.now.status is GoalStatus.DONE
    assert world.now.deliverables[0].sha_verified is not None
    assert world.now.spent.turns == 1


def done() -> list[object]:
    return [call("shell", command="echo x > a.txt"), call("complete", status="success", summary="Written.")]


def failing() -> list[object]:
    return [ModelError(ErrorKind.SERVER, "bad gateway", status=502)]


ENDINGS = {
    ExitReason.CURRENT_TASK_DONE: done,
    ExitReason.MAX_TURNS_EXCEEDED: lambda: [work(1), work(2), work(3), say("saved")],
    ExitReason.EARLY_NO_TOOL: lambda: [say("done"), say("done"), say("done")],
    ExitReason.USER_ABORTED: lambda: [work(1)],
    ExitReason.BACKEND_ERROR: failing,
    ExitReason.GOAL_BUDGET_EXHAUSTED: lambda: [work(1), say("over")],
}


@pytest.mark.parametrize("reason", list(ENDINGS), ids=lambda r: r.value)
def test_exit_reasons_are_distinguished(make: Callable[..., object], reason: ExitReason) -> None:
    """B132: each of the six endings is told apart, by the run and by the store."""
    limits = Limits(turns=2) if reason is ExitReason.GOAL_BUDGET_EXHAUSTED else None
    world = make(deliverables=("a.txt",), limits=limits, max_turns=3)
    stopped: list[Exit] = []

    def on_event(event: object) -> None:
        if reason is ExitReason.USER_ABORTED and getattr(event, "kind", "") == "turn":
            stopped.append(Exit(ExitReason.USER_ABORTED, "Ctrl-C", {"control": "pause"}))

    ending = world.wake(ENDINGS[reason](), on_event=on_event, stop=lambda: stopped[0] if stopped else None)

    assert ending.reason is reason
    expected = {
        ExitReason.CURRENT_TASK_DONE: GoalStatus.DONE,
        ExitReason.USER_ABORTED: GoalStatus.PAUSED,
        ExitReason.GOAL_BUDGET_EXHAUSTED: GoalStatus.EXHAUSTED,
    }
    assert world.now.status is expected.get(reason, GoalStatus.ACTIVE)


@pytest.mark.parametrize("arguments", [True, False], ids=["with a claim", "prose"])
def test_truncated_reply_is_never_complete(make: Callable[..., object], arguments: bool) -> None:
    """B83, B84, B86: a reply cut at the output limit runs nothing and ends nothing, whatever it holds."""
    claim = call("complete", status="success", summary="Everything is done.")
    cut = replace(claim if arguments else say(CLOSING), stop=StopReason.MAX_TOKENS, stop_raw="length")
    world = make()

    ending = world.wake([cut, cut, cut])

    assert ending.reason is ExitReason.OUTPUT_TRUNCATED
    assert world.now.status is GoalStatus.ACTIVE


def test_completion_on_last_turn_beats_the_cap(make: Callable[..., object]) -> None:
    """A claim that stands on the last allowed turn is a success, not a spent quota."""
    world = make(deliverables=("a.txt",), max_turns=2)

    assert world.wake(done()).reason is ExitReason.CURRENT_TASK_DONE


def test_closing_prose_saved_in_state_does_not_end_the_next_wakeup(make: Callable[..., object]) -> None:
    """Closing prose in every field of a checkpoint is not shown as such, and the next wakeup keeps its quota."""
    world = make(max_turns=5)
    checkpoint = call(
        "update_working_checkpoint",
        key_info=f"{CLOSING} The report lives in report.md.",
        summary=CLOSING,
        next_steps=[CLOSING],
        done=[CLOSING],
        pending=["Check the totals. " + CLOSING],
        failed_approaches=[{"approach": CLOSING, "outcome": CLOSING}],
    )
    world.wake([checkpoint, *(work(n) for n in range(4)), say("saved")])

    def closes_if_it_reads_closing(number: int) -> Callable[[object], Reply]:
        def step(request: object) -> Reply:
            first = request.messages[:2]  # type: ignore[attr-defined]
            shown = "\n".join(m.text for m in first)
            polluted = "final delivery" in shown or "全部完成" in shown
            return say(CLOSING) if polluted else work(number)

        return step

    ending = world.wake([*(closes_if_it_reads_closing(n) for n in range(5)), say("saved")])

    assert ending.reason is ExitReason.MAX_TURNS_EXCEEDED
    assert world.now.spent.turns == 10
    assert "report.md" in world.told(0)
    assert "unverified claim" in world.told(0)


def test_false_claim_is_rejected_and_told(make: Callable[..., object]) -> None:
    """B04: a file that was never written is no completion; the model is told which path is missing."""
    world = make(deliverables=("out/orders.json",), max_turns=3)
    claim = call("complete", status="success", summary="Written with 4 records.")

    ending = world.wake([calls(call("list_files"), claim), say("hm"), say("hm"), say("hm")])

    assert ending.reason is not ExitReason.CURRENT_TASK_DONE
    assert "out/orders.json" in world.told(1)
    assert world.now.status is GoalStatus.ACTIVE
