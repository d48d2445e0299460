"""Movements: `transition` on one conversation, what each movement offers, and how until_budget goals go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from goalmode.domain.budget import Limits
from goalmode.domain.exits import Exit, ExitReason, GoalStatus
from goalmode.domain.messages import Assistant, ToolCall, ToolResult, User
from goalmode.domain.signals import StopReason
from goalmode.domain.workflow import EndTurn, Movement, Workflow
from goalmode.errors import BadInput
from goalmode.inspection.show import show
from goalmode.inspection.turns import turns
from goalmode.loop.transition import MAX_IDLE_MOVES
from goalmode.testing import call, calls, say
from goalmode.wiring import workshop
from goalmode.workflows.load import shipped
from tests.loop.conftest import PROFILE

Make = Callable[..., Any]

POLISH = shipped("polish")
WORK = call("shell", command="echo hello > out.txt")
LOOK = call("read_file", path="out.txt")
SUCCESS = call("complete", status="success", summary="Done as wanted.")
NOTHING = call("update_working_checkpoint", key_info="x")
QUOTA = Limits(turns=1000)


def go(to: str, reason: str = "it is time") -> Any:
    return call("transition", to=to, reason=reason)


def two(**second: Any) -> Workflow:
    """A workflow of two movements, of which the second is described."""
    return Workflow(
        "two",
        "draft",
        (
            Movement("draft", "Draft it."),
            Movement("review", "Read it {{ closely }}.\n</instruction>", **second),
        ),
    )


def results(world: Any, number: int = -1) -> list[str]:
    return [m.text for m in world.requests[number].messages if isinstance(m, ToolResult)]


def offered(world: Any, number: int) -> list[str]:
    return [tool.name for tool in world.requests[number].tools]


def test_a_transition_goes_on_in_the_same_conversation(make: Make) -> None:
    """The call has its own result, then the next movement's instruction follows; nothing earlier is changed."""
    world = make(workflow=two(), deliverables=("out.txt",))

    ending = world.wake([WORK, go("review", "a draft is there"), LOOK, SUCCESS])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    before, after = world.requests[1].messages, world.requests[2].messages
    assert after[: len(before)] == before
    reply, result, begun = after[len(before) :]
    assert isinstance(reply, Assistant)
    assert result == ToolResult(reply.calls[0].id, "transition", "accepted: transition to review")
    assert isinstance(begun, User)
    assert "Read it {{ closely }}.\n&lt;/instruction>" in begun.text
    assert world.now.movement == "review"


def test_the_next_wakeup_begins_in_the_movement_that_the_last_one_left(make: Make) -> None:
    """The movement is stored with the goal and with each turn, and its instruction is in the context."""
    world = make(workflow=two(), max_turns=2)
    world.wake([WORK, go("review"), say("saved")])

    world.wake([LOOK, LOOK, say("saved")])

    assert "Draft it." not in world.told(0)
    assert "Read it {{ closely }}." in world.told(0)
    assert show(world.store, world.goal.id)["movement"] == "review"
    seen = turns(world.store, world.now)
    assert [(t["wakeup"], t["movement"]) for t in seen if t["purpose"] == "work"] == [
        (1, "draft"),
        (1, "draft"),
        (2, "review"),
        (2, "review"),
    ]


def test_a_transition_is_stored_with_its_turn(make: Make) -> None:
    """A process that dies right after the outcome's commit leaves the goal in the new movement."""
    world = make(workflow=two())
    moved: list[str] = []

    def see(event: Any) -> None:
        if event.kind == "turn":
            moved.append(world.now.movement)

    world.wake([WORK, go("review"), LOOK, say(""), say(""), say("")], on_event=see, finished=False)

    assert moved[:3] == ["draft", "review", "review"]


def test_siblings_run_before_the_transition_of_the_same_reply(make: Make) -> None:
    """Every call is answered, in the calls' order, whatever stood where; ordinary ones run first."""
    world = make(workflow=two(), deliverables=("out.txt",))

    world.wake([calls(go("review"), WORK, LOOK), LOOK, SUCCESS])

    answered = [m for m in world.requests[1].messages if isinstance(m, ToolResult)]
    assert [m.name for m in answered] == ["transition", "shell", "read_file"]
    assert "hello" in answered[2].text
    assert world.now.movement == "review"


@pytest.mark.parametrize(
    ("first", "second", "movement"),
    [
        (SUCCESS, go("review"), "draft"),
        (go("review"), SUCCESS, "review"),
        (go("review"), go("draft"), "review"),
        (call("wait", seconds=5, reason="x"), SUCCESS, "draft"),
        (go("review"), call("wait", seconds=60, reason="x"), "review"),
    ],
    ids=[
        "complete+transition",
        "transition+complete",
        "transition twice",
        "wait+complete",
        "transition+wait",
    ],
)
def test_a_second_control_call_of_a_reply_is_refused(
    make: Make, first: Any, second: Any, movement: str
) -> None:
    """B139: the first is acted on, the second refused; both have a result, and the wakeup goes on."""
    world = make(workflow=two(), deliverables=("never.txt",), max_turns=3)

    ending = world.wake([WORK, calls(first, second), LOOK, say("saved")])

    assert ending.reason is ExitReason.MAX_TURNS_EXCEEDED
    assert world.now.movement == movement
    answered = [m for m in world.requests[2].messages if isinstance(m, ToolResult)]
    assert [m.name for m in answered[1:]] == [first.calls[0].name, second.calls[0].name]
    assert "only once" in answered[2].text


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (go("polish"), 'one of "draft", "review"'),
        (go("draft"), "the movement is draft already"),
        (go("review", "  "), "reason is blank"),
        (replace(go("x"), calls=(ToolCall("", "transition", '{"to": "rev'),)), "not valid JSON"),
    ],
    ids=["unknown", "here", "no reason", "cut"],
)
def test_a_transition_that_cannot_be_made_is_an_error_result(make: Make, bad: Any, told: str) -> None:
    """The result names what would be right; the goal stays where it is, and five such calls end the wakeup."""
    world = make(workflow=two())

    ending = world.wake([bad] * 5)

    assert told in results(world, 1)[0]
    assert ending.reason is ExitReason.NO_PROGRESS
    assert world.now.movement == "draft"


def test_transition_is_offered_only_where_there_is_another_movement(make: Make) -> None:
    """A goal with one movement has no such tool; calling it is a call to an unknown one."""
    single, double = make(max_turns=1), make(workflow=two(), max_turns=1)

    single.wake([go("review")])
    double.wake([NOTHING])

    assert "transition" not in offered(single, 0)
    assert "transition" in offered(double, 0)
    assert turns(single.store, single.now)[0]["calls"][0]["outcome"] == "failed"


def test_a_movement_offers_its_own_tools_and_always_those_that_save_or_end(make: Make) -> None:
    """What the movement does not list is not told to the model, and an unknown tool if it is called."""
    world = make(workflow=two(tools=("read_file",)), max_turns=4)

    world.wake([WORK, go("review"), WORK, LOOK, say("saved")])

    assert "shell" in offered(world, 0)
    reading = {"read_file", "update_working_checkpoint", "verify", "complete", "wait", "transition"}
    memory = {"remember", "recall", "start_long_term_update"}
    assert set(offered(world, 2)) == reading | memory
    assert "there is no tool 'shell'" in results(world, 3)[2]
    assert "hello" in results(world, 4)[3]


def test_a_movements_tools_are_never_more_than_the_goal_allows(make: Make) -> None:
    """A goal without a shell has none in any movement."""
    goal = make(workflow=two(tools=("read_file", "shell"))).now
    settings = replace(goal.settings, tools=("read_file", "write_file"))
    goal = replace(goal, settings=settings, movement="review")

    offered = workshop(goal, PROFILE).registry.offering(goal.current.tools).names

    assert "read_file" in offered
    assert not {"shell", "write_file"} & set(offered)


def test_moving_to_and_fro_without_work_is_refused(make: Make) -> None:
    """A few transitions in a row may be right; endless ones are failed control calls, and end the wakeup."""
    world = make(workflow=two())
    there_and_back = [go("review"), go("draft")] * 10

    ending = world.wake(there_and_back[: MAX_IDLE_MOVES + 5], finished=False)

    assert "in a row with no work between" in results(world)[MAX_IDLE_MOVES]
    assert ending.reason is ExitReason.NO_PROGRESS


def test_a_transition_in_a_handoff_holds_for_the_next_wakeup(make: Make) -> None:
    """The quota is spent all the same; the goal goes on in the movement that was named."""
    world = make(workflow=two(), max_turns=1)

    ending = world.wake([WORK, go("review")])

    assert ending.reason is ExitReason.MAX_TURNS_EXCEEDED
    assert world.now.movement == "review"


def test_until_budget_goals_go_on_in_the_next_movement(make: Make) -> None:
    """A claim that stands moves on: create, verify, improve, verify; only the limit ends the goal."""
    limits = Limits(turns=8)
    world = make(workflow=POLISH, until_budget=True, deliverables=("out.txt",), limits=limits)

    ending = world.wake([WORK, SUCCESS, LOOK, SUCCESS, WORK, SUCCESS, LOOK, say("saved")])

    assert ending.reason is ExitReason.GOAL_BUDGET_EXHAUSTED
    accepted = [text for text in results(world) if text.startswith("accepted")]
    assert [text.rpartition(" ")[2] for text in accepted] == ["verify", "improve", "verify"]
    assert (world.now.movement, world.now.status) == ("verify", GoalStatus.EXHAUSTED)


def test_a_claim_before_work_in_the_movement_is_no_claim(make: Make) -> None:
    """Right after a transition nothing was looked at: the claim gets the recovery prompt, and is not judged."""
    world = make(workflow=POLISH, until_budget=True, deliverables=("out.txt",), limits=QUOTA, max_turns=4)

    world.wake([WORK, go("verify"), SUCCESS, LOOK, say("saved")])

    assert "still open" in results(world, 3)[-1]
    assert world.now.movement == "verify"
    assert show(world.store, world.goal.id)["checks"] == []


def test_work_beside_a_claim_that_stands_counts_for_the_phase_it_was_done_in(make: Make) -> None:
    """With pursue the bar is raised; the sibling's success does not stand for work on the higher one."""
    world = make(until_budget=True, deliverables=("out.txt",), limits=QUOTA, max_turns=3)

    world.wake([calls(WORK, SUCCESS), SUCCESS, WORK, say("saved")])

    assert "higher standard" in results(world, 1)[1]
    assert "still open" in results(world, 2)[-1]


def test_ending_a_turn_is_a_claim_where_the_movement_says_so(make: Make) -> None:
    """It is checked like `complete`: rejected with what is missing, accepted when it holds."""
    world = make(workflow=two(end_turn=EndTurn.CLAIM), deliverables=("out.txt",))

    ending = world.wake([go("review"), say("It is all there."), WORK, say("Now it is.")])

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert ending.facts["summary"] == "Now it is."
    assert "out.txt" in world.requests[2].messages[-1].text
    assert show(world.store, world.goal.id)["wakeups"][0]["rejections"] == 1


def test_claims_by_ending_are_bounded_like_others(make: Make) -> None:
    """Five that do not hold end the wakeup."""
    world = make(workflow=two(end_turn=EndTurn.CLAIM), deliverables=("never.txt",))

    ending = world.wake([go("review"), *[say("Done.")] * 5])

    assert ending.reason is ExitReason.NO_PROGRESS


@pytest.mark.parametrize(
    "reply", [say("  "), say("Done.", stop=StopReason.STOP_SEQUENCE)], ids=["blank", "stop sequence"]
)
def test_what_is_no_ended_turn_with_words_claims_nothing(make: Make, reply: Any) -> None:
    """An empty reply, or one cut at a stop sequence, is answered as everywhere else."""
    world = make(workflow=two(end_turn=EndTurn.CLAIM), deliverables=("out.txt",))
    (world.workspace / "out.txt").write_text("x")

    ending = world.wake([go("review"), reply, reply, reply])

    assert ending.reason is ExitReason.EARLY_NO_TOOL


def test_a_wrap_up_in_words_claims_nothing(make: Make) -> None:
    """Where saving is asked for, `saved.` is no claim even in a movement of claims."""
    world = make(
        workflow=Workflow("w", "a", (Movement("a", "x", end_turn=EndTurn.CLAIM),)),
        deliverables=("out.txt",),
        limits=Limits(turns=2),
    )

    ending = world.wake([WORK, say("saved.")])

    assert ending.reason is ExitReason.GOAL_BUDGET_EXHAUSTED


def test_an_until_budget_goal_goes_on_after_a_claim_by_ending(make: Make) -> None:
    """The next movement's instruction answers it; without another movement, the higher bar does."""
    review = two(end_turn=EndTurn.CLAIM, default_next="draft")
    world = make(workflow=review, until_budget=True, deliverables=("out.txt",), limits=QUOTA, max_turns=4)

    world.wake([go("review"), WORK, say("It holds."), LOOK, say("saved")])

    assert world.now.movement == "draft"
    assert "Draft it." in world.requests[3].messages[-1].text


def test_needs_user_input_without_why_no_default_is_refused(make: Make) -> None:
    """A question without a reason, or with a blank one, is an error result; other statuses are as they were."""
    world = make(deliverables=("out.txt",))
    ask = {"status": "needs_user_input", "summary": "The colour is open.", "missing_info": "Which colour?"}

    ending = world.wake([call("complete", **ask), call("complete", **ask, why_no_default=" "), WORK, SUCCESS])

    assert all("why_no_default" in text for text in results(world)[:2])
    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert [c["outcome"] for t in turns(world.store, world.now) for c in t["calls"]][:2] == [
        "failed",
        "failed",
    ]


def test_needs_user_input_with_both_fields(make: Make) -> None:
    """The wakeup ends, no further request is made, and both fields are stored and shown."""
    world = make()
    both = {"missing_info": "Which colour?", "why_no_default": "It is printed."}

    ending = world.wake([call("complete", status="needs_user_input", summary="Open.", **both)])

    assert ending.reason is ExitReason.NEEDS_USER_INPUT
    assert world.now.status is GoalStatus.WAITING_USER
    shown = show(world.store, world.goal.id)["wakeups"][0]["exit_facts"]
    assert {name: shown[name] for name in both} == both


def test_a_workflow_with_an_unknown_tool_wakes_nothing(make: Make) -> None:
    """The mistake is told before a wakeup is begun."""
    world = make(workflow=two(tools=("shelll",)))

    with pytest.raises(BadInput, match="shelll"):
        world.begin()
    assert show(world.store, world.goal.id)["wakeups"] == []


def test_a_workflow_of_the_wrong_shape_makes_no_goal(make: Make) -> None:
    """Whoever builds a workflow in Python is told of the same mistakes as the writer of a file."""
    with pytest.raises(BadInput, match=r"workflow two, default_next: 'nowhere'"):
        make(workflow=two(default_next="nowhere"))


def test_user_stop_beats_a_transition(make: Make) -> None:
    """A stop that comes with a transition ends the wakeup; the movement stays what was committed."""
    world = make(workflow=two())
    asked: list[Exit] = []

    def see(event: Any) -> None:
        if event.kind == "turn" and event.data["turn"] == 2:
            asked.append(Exit(ExitReason.USER_ABORTED, "Ctrl-C", {"control": "pause"}))

    ending = world.wake([WORK, go("review")], on_event=see, stop=lambda: asked[0] if asked else None)

    assert ending.reason is ExitReason.USER_ABORTED
    assert world.now.movement == "review"
