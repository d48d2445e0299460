"""Only an accepted claim can lead to success: the whole enum is walked."""

from __future__ import annotations

import itertools

import pytest

from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.goal import GoalSettings
from goalmode.domain.messages import Reply, ToolCall
from goalmode.domain.signals import StopReason
from goalmode.domain.steps import Claim, Close, Nudge, Resend, RunTools, Transition
from goalmode.domain.workflow import EndTurn, Movement
from goalmode.loop.decide import MAX_MALFORMED, MAX_PAUSES, MAX_TRUNCATIONS, decide
from goalmode.loop.history import History

WORK = ToolCall("c1", "shell", '{"command": "true"}')
COMPLETE = ToolCall("c2", "complete", '{"status": "success", "summary": "done"}')
GO = ToolCall("c3", "transition", '{"to": "b", "reason": "it is time"}')
WAIT = ToolCall("c4", "wait", '{"seconds": 60, "reason": "the build"}')
NOT_EXECUTED = {StopReason.MAX_TOKENS, StopReason.MISSING, StopReason.CONTEXT_OVERFLOW}
FAIL_CLOSED = {
    StopReason.PROVIDER_ERROR,
    StopReason.CANCELLED,
    StopReason.MISSING,
    StopReason.UNKNOWN,
}


@pytest.mark.parametrize("stop", list(StopReason), ids=lambda s: s.value)
@pytest.mark.parametrize(
    "calls", [(), (WORK,), (COMPLETE,), (WORK, COMPLETE)], ids=["none", "work", "claim", "both"]
)
@pytest.mark.parametrize("text", ["", "All done."], ids=["silent", "prose"])
def test_no_ending_is_inferred(stop: StopReason, calls: tuple[ToolCall, ...], text: str) -> None:
    """Success needs a claim, and a claim needs a reply that ended properly."""
    bounds = ((0, 2), (0, MAX_PAUSES), (0, MAX_TRUNCATIONS), (0, MAX_MALFORMED))
    for recoveries, pauses, cuts, malformed in itertools.product(*bounds):
        history = History(turn=1, recoveries=recoveries, pauses=pauses, truncations=cuts, malformed=malformed)
        step = decide(Reply(stop, text, calls), history, GoalSettings())
        match step:
            case Close(exit):
                assert exit.reason is not ExitReason.CURRENT_TASK_DONE
            case Claim(_, complete):
                assert complete is COMPLETE
                assert stop in (StopReason.TOOL_USE, StopReason.END_TURN, StopReason.STOP_SEQUENCE)
            case RunTools(run):
                assert stop not in NOT_EXECUTED
                assert run == calls
            case Nudge() | Resend():
                pass
        if stop in FAIL_CLOSED:
            assert isinstance(step, Close)
            assert step.exit.reason is ExitReason.BACKEND_ERROR


@pytest.mark.parametrize(
    ("stop", "field", "bound", "beyond"),
    [
        (StopReason.PAUSE, "pauses", MAX_PAUSES, ExitReason.BACKEND_ERROR),
        (StopReason.MAX_TOKENS, "truncations", MAX_TRUNCATIONS, ExitReason.OUTPUT_TRUNCATED),
        (StopReason.MALFORMED_TOOL_CALL, "malformed", MAX_MALFORMED, ExitReason.NO_PROGRESS),
    ],
)
def test_bounds(stop: StopReason, field: str, bound: int, beyond: ExitReason) -> None:
    """Each bounded answer is given up to its bound, and the next one ends the wakeup for the documented reason."""
    inside = decide(Reply(stop, "partial"), History(turn=9, **{field: bound - 1}), GoalSettings())
    outside = decide(Reply(stop, "partial"), History(turn=9, **{field: bound}), GoalSettings())

    assert not isinstance(inside, Close)
    assert isinstance(outside, Close)
    assert outside.exit.reason is beyond


@pytest.mark.parametrize("stop", [StopReason.REFUSAL, StopReason.CONTENT_FILTER])
def test_refusal_keeps_its_explanation(stop: StopReason) -> None:
    """B92: what the provider said about a refusal is in the ending."""
    step = decide(Reply(stop, stop_detail="cyber: not allowed"), History(turn=1), GoalSettings())

    assert isinstance(step, Close)
    assert step.exit.reason is ExitReason.MODEL_REFUSED
    assert "cyber: not allowed" in step.exit.detail


@pytest.mark.parametrize("stop", list(StopReason), ids=lambda s: s.value)
def test_a_last_call_ends_as_planned_unless_it_acts(stop: StopReason) -> None:
    """Whatever a wrap-up without calls says, the ending it precedes stands."""
    last = Exit(ExitReason.GOAL_BUDGET_EXHAUSTED, "turns")

    step = decide(Reply(stop, "All done."), History(turn=1), GoalSettings(), last)

    assert step == Close(last, ())


def test_early_turns_boundary() -> None:
    """Turn 3 is early, turn 4 is not once something substantive has succeeded."""
    early = decide(Reply(StopReason.END_TURN, "x"), History(turn=3, substantive=1), GoalSettings())
    late = decide(Reply(StopReason.END_TURN, "x"), History(turn=4, substantive=1), GoalSettings())
    idle = decide(Reply(StopReason.END_TURN, "x"), History(turn=40, substantive=0), GoalSettings())

    assert (early, late, idle) == (
        Nudge("recovery", recovery=True),
        Nudge("nudge"),
        Nudge("recovery", recovery=True),
    )


def test_a_nudge_is_given_again_after_each_success() -> None:
    """Later no-tool replies get one nudge each time something succeeded, then YIELDED."""
    settings = GoalSettings()
    again = decide(Reply(StopReason.END_TURN), History(turn=9, substantive=5, nudged_at=4), settings)
    spent = decide(Reply(StopReason.END_TURN), History(turn=9, substantive=5, nudged_at=5), settings)

    assert again == Nudge("nudge")
    assert isinstance(spent, Close)
    assert spent.exit.reason is ExitReason.YIELDED


@pytest.mark.parametrize(
    ("calls", "step"),
    [
        ((WORK, GO), Transition((WORK,), GO)),
        ((GO, WORK, COMPLETE), Transition((WORK,), GO, (COMPLETE,))),
        ((COMPLETE, GO), Claim((), COMPLETE, (GO,))),
        ((WAIT, WORK), RunTools((WORK, WAIT))),
        ((WAIT, WORK, COMPLETE), RunTools((WORK, WAIT), (COMPLETE,))),
        ((WORK, COMPLETE, GO, WAIT), Claim((WORK,), COMPLETE, (GO, WAIT))),
    ],
)
def test_the_first_control_call_comes_last_and_others_not_at_all(
    calls: tuple[ToolCall, ...], step: object
) -> None:
    """Siblings first, then the first control call; each further one is surplus, in the reply's order."""
    assert decide(Reply(StopReason.TOOL_USE, "", calls), History(turn=1), GoalSettings()) == step


@pytest.mark.parametrize("stop", list(StopReason), ids=lambda s: s.value)
@pytest.mark.parametrize("text", ["", " ", "All done."], ids=["silent", "blank", "prose"])
@pytest.mark.parametrize("calls", [(), (WORK,), (GO,)], ids=["none", "work", "transition"])
def test_only_an_ended_turn_with_words_claims_by_ending(
    stop: StopReason, text: str, calls: tuple[ToolCall, ...]
) -> None:
    """In a movement of claims: END_TURN, words, no calls, and no last call to be made; nothing else."""
    movement = Movement("a", "x", end_turn=EndTurn.CLAIM)
    last = Exit(ExitReason.MAX_TURNS_EXCEEDED)

    step = decide(Reply(stop, text, calls), History(turn=1), GoalSettings(), movement=movement)
    final = decide(Reply(stop, text, calls), History(turn=1), GoalSettings(), last, movement=movement)

    claims = stop is StopReason.END_TURN and bool(text.strip()) and not calls
    assert (step == Claim((), None)) == claims
    assert not isinstance(final, Claim)
