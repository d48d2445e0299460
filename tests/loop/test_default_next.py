"""What follows a forced exit: `default_next`, and that nothing compromised ever becomes a success."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from goalmode.domain.budget import Limits
from goalmode.domain.exits import Exit, ExitReason, GoalStatus
from goalmode.domain.goal import GoalSpec
from goalmode.domain.messages import Assistant, Reply, ToolCall
from goalmode.domain.profile import ModelProfile
from goalmode.domain.signals import ErrorKind, StopReason
from goalmode.domain.workflow import (
    ABORT,
    ASK,
    COMPLETE,
    FORCED,
    EndTurn,
    Movement,
    Workflow,
    forced_next,
    overflow_next,
)
from goalmode.errors import ModelError
from goalmode.inspection.show import show
from goalmode.loop.decide import MAX_TRUNCATIONS
from goalmode.orchestrator.goals import create_goal
from goalmode.state import snapshot
from goalmode.testing import call, say
from goalmode.wiring import workshop
from tests.state.builders import rows

Make = Callable[..., Any]

WORK = call("shell", command="echo hello > out.txt")
IDLE = call("update_working_checkpoint", key_info="x")
BAD = call("complete", status="success")
SUCCESS = call("complete", status="success", summary="Done.")
CUT = say("half a", stop=StopReason.MAX_TOKENS)
BIG = call("shell", command="seq 1 2000")
OVERFLOWING_REPLIES = [say("half a", stop=StopReason.CONTEXT_OVERFLOW)] * 2
REFUSED_REQUESTS = [ModelError(ErrorKind.CONTEXT_OVERFLOW, "prompt is too long")] * 2


def one(default_next: str, **more: Any) -> Workflow:
    return Workflow("one", "only", (Movement("only", "Do it.", default_next=default_next, **more),))


def pair(default_next: str = "second", back: str = ABORT) -> Workflow:
    second = Movement("second", "Now this.", default_next=back)
    return Workflow("pair", "first", (Movement("first", "Do it.", default_next=default_next), second))


def truncated(world: Any) -> Exit:
    """The output limit, again and again."""
    return world.wake([CUT] * (MAX_TRUNCATIONS + 1))


def overflowing_reply(world: Any) -> Exit:
    """Replies that say that the window is full, also after the forced rebuild."""
    return world.wake([*[BIG] * 3, *OVERFLOWING_REPLIES])


def overflowing_request(world: Any) -> Exit:
    """A provider that refuses the request as too long, also after the forced rebuild."""
    return world.wake([*[BIG] * 3, *REFUSED_REQUESTS])


def context_refused(world: Any) -> Exit:
    """A provider that refuses the context alone: nothing is left to be taken out of it."""
    return world.wake(REFUSED_REQUESTS[:1])


def full_window(world: Any) -> Exit:
    """A model whose own window holds the context, and not what is said behind it."""
    shop = workshop(world.now, world.profile)
    first = shop.render(snapshot.snapshot(world.store, world.goal.id, now=world.clock.now())).tokens
    world.profile = replace(world.profile, window=first + 300, max_output=256)
    return world.wake([WORK] * 9, finished=False)


def too_large_to_begin(world: Any) -> Exit:
    """A context that does not fit into its budget at the wakeup's start."""
    world.profile = ModelProfile("scripted", "openai", "scripted", "http://127.0.0.1:9/v1", window=1_500)
    return world.wake([])


PATHS = {
    path.__name__: path
    for path in (
        truncated,
        overflowing_reply,
        overflowing_request,
        context_refused,
        full_window,
        too_large_to_begin,
    )
}


@pytest.mark.parametrize("default_next", [COMPLETE, ASK, ABORT])
@pytest.mark.parametrize("name", PATHS)
def test_no_cut_conversation_is_a_success_or_a_question(make: Make, name: str, default_next: str) -> None:
    """On every path to OUTPUT_TRUNCATED and CONTEXT_OVERFLOW COMPLETE and ASK are ABORT, even if the contract holds."""
    world = make(workflow=one(default_next), deliverables=("out.txt",))
    (world.workspace / "out.txt").write_text("all there")
    ending = PATHS[name](world)

    expected = ExitReason.OUTPUT_TRUNCATED if name == "truncated" else ExitReason.CONTEXT_OVERFLOW
    assert ending.reason is expected, ending
    assert world.now.status is GoalStatus.ACTIVE
    assert show(world.store, world.goal.id)["checks"] == []


def test_force_transition_with_default_complete_aborts(make: Make) -> None:
    """The conversation overflows in a movement whose default is COMPLETE: the wakeup ends for the overflow itself."""
    world = make(workflow=pair(default_next=COMPLETE), deliverables=("out.txt",))

    ending = world.wake([WORK, BIG, BIG, BIG, *REFUSED_REQUESTS])

    assert ending.reason is ExitReason.CONTEXT_OVERFLOW
    assert (world.workspace / "out.txt").exists()
    assert (world.now.status, world.now.movement) == (GoalStatus.ACTIVE, "first")


@pytest.mark.parametrize("reason", ExitReason)
@pytest.mark.parametrize("default_next", [COMPLETE, ASK, ABORT, "second"])
def test_only_forced_exits_have_a_next(reason: ExitReason, default_next: str) -> None:
    """Every other ending is somebody's decision, and stands; cut ones keep nothing but a movement's name."""
    found = forced_next(reason, default_next)

    if reason in (ExitReason.OUTPUT_TRUNCATED, ExitReason.CONTEXT_OVERFLOW):
        assert found == overflow_next(default_next) == (default_next if default_next == "second" else ABORT)
    else:
        assert found == (default_next if reason in FORCED else ABORT)


def test_default_complete_is_a_claim_that_is_checked(make: Make) -> None:
    """EARLY_NO_TOOL with every deliverable there: the goal is done, as checked, by nobody's claim."""
    world = make(workflow=one(COMPLETE), deliverables=("out.txt",), checks=("true",))
    (world.workspace / "out.txt").write_text("x")

    ending = world.wake([say("")] * 3)

    assert (ending.reason, ending.facts["basis"]) == (ExitReason.CURRENT_TASK_DONE, "checks")
    assert "claimed by default after EARLY_NO_TOOL" in ending.detail
    assert show(world.store, world.goal.id)["deliverables"][0]["verified"]


@pytest.mark.parametrize(
    ("steps", "reason"),
    [([say("")] * 3, ExitReason.EARLY_NO_TOOL), ([BAD] * 5, ExitReason.NO_PROGRESS)],
    ids=["early", "no progress"],
)
@pytest.mark.parametrize("contract", ["a missing file", "a failing check", "words alone", "nothing at all"])
def test_default_complete_needs_every_check_and_deliverable(
    make: Make, steps: Any, reason: ExitReason, contract: str
) -> None:
    """What does not hold, or cannot be checked, closes with the forcing reason; evidence alone is never enough."""
    contracts: dict[str, dict[str, Any]] = {
        "a missing file": {"deliverables": ("out.txt", "other.txt")},
        "a failing check": {"deliverables": ("out.txt",), "checks": ("false",)},
        "words alone": {"deliverables": ("out.txt",), "requirements": ("out.txt reads well",)},
        "nothing at all": {},
    }
    world = make(workflow=one(COMPLETE), **contracts[contract])
    (world.workspace / "out.txt").write_text("x")

    ending = world.wake(steps)

    assert ending.reason is reason
    assert ending.facts["missing"]
    assert world.now.status is GoalStatus.ACTIVE


def test_an_open_item_refuses_a_claim_by_default(make: Make) -> None:
    """Nothing is complete while an item awaits verification."""
    world = make(workflow=one(COMPLETE), deliverables=("out.txt",), early_turns=9)
    (world.workspace / "out.txt").write_text("x")

    ending = world.wake([call("update_working_checkpoint", pending=["it reads well"]), *[say("")] * 3])

    assert ending.reason is ExitReason.EARLY_NO_TOOL


def test_a_claim_by_default_of_an_until_budget_goal_raises_the_bar(make: Make) -> None:
    """It goes on in the same wakeup, and does not stand again before something was done."""
    world = make(
        workflow=one(COMPLETE), until_budget=True, deliverables=("out.txt",), limits=Limits(turns=99)
    )

    ending = world.wake([WORK, *[BAD] * 5, *[BAD] * 5])

    assert ending.reason is ExitReason.NO_PROGRESS
    assert "higher standard" in world.told(6)
    assert world.now.status is GoalStatus.ACTIVE


def test_ask_opens_a_question(make: Make) -> None:
    """The goal waits for the user, who is told what forced it and why nothing is assumed."""
    world = make(workflow=one(ASK))

    ending = world.wake([say("")] * 3)

    assert ending.reason is ExitReason.NEEDS_USER_INPUT
    assert ending.facts["forced_by"] == "EARLY_NO_TOOL"
    assert "EARLY_NO_TOOL" in str(ending.facts["missing_info"])
    assert ending.facts["why_no_default"]
    assert world.now.status is GoalStatus.WAITING_USER


@pytest.mark.parametrize(
    "steps",
    [
        [say("")] * 3,
        [BAD] * 5,
        [CUT] * 3,
        [*[BIG] * 3, *REFUSED_REQUESTS],
        [*[BIG] * 3, *OVERFLOWING_REPLIES],
    ],
    ids=["early", "no progress", "truncated", "refused request", "overflowing reply"],
)
def test_a_named_movement_takes_over_freshly_rendered(make: Make, steps: Any) -> None:
    """In the same wakeup: its context holds its instruction and nothing of the conversation before."""
    world = make(workflow=pair(), deliverables=("out.txt",))

    ending = world.wake([*steps, WORK, SUCCESS])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    first = world.requests[len(steps)].messages
    assert not any(isinstance(message, Assistant) for message in first)
    assert "Now this." in world.told(len(steps))
    assert "Do it." not in world.told(len(steps))
    assert world.now.movement == "second"
    contexts = [e.data["context_tokens"] for e in world.events if e.kind == "context_rerendered"]
    assert contexts


def test_forced_exits_lead_nowhere_without_a_success_between(make: Make) -> None:
    """Two movements that do nothing do not pass the wakeup back and forth: the second closes with its reason."""
    world = make(workflow=pair(back="first"))

    ending = world.wake([say("")] * 4)

    assert ending.reason is ExitReason.EARLY_NO_TOOL
    assert (world.now.movement, world.now.streak) == ("second", 1)


def test_a_success_between_lets_a_forced_exit_lead_on_again(make: Make) -> None:
    """After work, the workflow goes its way."""
    world = make(workflow=pair(back="first"), deliverables=("out.txt",))

    ending = world.wake([*[BAD] * 5, WORK, *[BAD] * 5, SUCCESS])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert world.now.movement == "first"


def test_a_forced_transition_is_told_by_the_journal(make: Make) -> None:
    """From where to where, and what forced it, is an event of the goal."""
    world = make(workflow=pair(), max_turns=4)
    world.wake([*[say("")] * 3, IDLE])

    [stored] = rows(world.store, "SELECT data FROM events WHERE kind = 'transition'")
    told = json.loads(stored)
    assert (told["from"], told["to"], told["forced"]) == ("first", "second", True)
    assert "EARLY_NO_TOOL" in told["reason"]


CALLS = {
    "no calls": (),
    "a call": (ToolCall("", "list_files", "{}"),),
    "a claim": (ToolCall("", "complete", '{"status": "success", "summary": "Done."}'),),
}
ENDED = {StopReason.TOOL_USE, StopReason.END_TURN, StopReason.STOP_SEQUENCE}
"""Stops after which the calls of a reply run."""


def may_succeed(stop: StopReason, calls: str, text: str, movement: Movement) -> bool:
    """Whether a goal whose contract holds may be done by such replies: the three ways, and no fourth."""
    accepted = calls == "a claim" and stop in ENDED
    ended = (stop, calls) == (StopReason.END_TURN, "no calls") and text != ""
    # Without calls these end early or are malformed, again and again: EARLY_NO_TOOL or NO_PROGRESS.
    forced = (stop in ENDED and calls == "no calls") or stop is StopReason.MALFORMED_TOOL_CALL
    by_ending = ended and movement.end_turn is EndTurn.CLAIM
    return accepted or by_ending or (forced and movement.default_next == COMPLETE)


@pytest.mark.long
@pytest.mark.once
@pytest.mark.parametrize("calls", CALLS)
@pytest.mark.parametrize("stop", list(StopReason), ids=lambda stop: stop.value)
def test_only_what_was_checked_leads_to_success(make: Make, stop: StopReason, calls: str) -> None:
    """The whole enum x calls x text x end_turn x default_next, in real wakeups: three ways lead to success.

    An accepted `complete`, an END_TURN in a movement of claims, a default COMPLETE: each only if the contract holds.
    """
    world = make()
    (world.workspace / "out.txt").write_text("x")
    for text, end_turn, default_next in itertools.product(
        ("", "It is all done."), EndTurn, (ABORT, COMPLETE)
    ):
        workflow = one(default_next, end_turn=end_turn)
        reply = Reply(stop, text, CALLS[calls], stop_raw="x")

        holds = _ending(world, reply, workflow, "out.txt")
        lacks = _ending(world, reply, workflow, "never.txt")

        wanted = may_succeed(stop, calls, text, workflow.movements[0])
        assert (holds.reason is ExitReason.CURRENT_TASK_DONE) == wanted, (text, end_turn, default_next, holds)
        assert lacks.reason is not ExitReason.CURRENT_TASK_DONE, (text, end_turn, default_next)


def _ending(world: Any, reply: Reply, workflow: Workflow, deliverable: str) -> Exit:
    """The ending of a wakeup, of a goal of its own, in which every reply is this one."""
    settings = replace(world.goal.settings, workflow=workflow, max_turns=7)
    spec = GoalSpec("Write it.", str(world.workspace), deliverables=(deliverable,), settings=settings)
    world.goal = create_goal(world.store, spec)
    return world.wake([lambda request: reply] * 20, finished=False)
