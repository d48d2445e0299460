"""A claim before the whole contract: people, protected files, items that went stale, and a contract that was edited."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from goalmode.domain.budget import Limits
from goalmode.domain.contract import FileCheck, FileTest, Requirement
from goalmode.domain.exits import ExitReason, GoalStatus
from goalmode.domain.questions import QuestionKind
from goalmode.domain.work import ItemStatus
from goalmode.domain.workflow import COMPLETE, EndTurn, Movement, Workflow
from goalmode.inspection.show import show
from goalmode.orchestrator.accept import accept
from goalmode.orchestrator.goals import edit_goal
from goalmode.orchestrator.questions import answer_question
from goalmode.state import questions
from goalmode.testing import call, say
from goalmode.tools.builtin import builtin_tools
from tests.state.builders import rows

Make = Callable[..., Any]

SUCCESS = call("complete", status="success", summary="Done.")
WORK = call("shell", command="echo hello > out.txt")
BEAUTIFUL = Requirement("", "It is beautiful.", human=True)


def agree(world: Any, *requirements: Requirement, **more: Any) -> None:
    """Give the world's goal these requirements."""
    edit_goal(world.store, world.now, requirements=requirements, **more)


def asked(world: Any) -> list[tuple[QuestionKind, bool, str]]:
    with world.store.reading() as connection:
        found = questions.of_goal(connection, world.now)
    return [(q.asking.kind, q.is_open, q.asking.text) for q in found]


def statuses(world: Any) -> list[str]:
    return [r.status.value for r in world.now.requirements]


def test_an_open_human_requirement_asks_and_does_not_loop(make: Make) -> None:
    """All else holds: one claim, one question, no further request; once accepted the next claim stands."""
    world = make(deliverables=("out.txt",))
    agree(world, BEAUTIFUL)

    ending = world.wake([WORK, SUCCESS])

    assert (ending.reason, ending.facts["sign_off"]) == (ExitReason.NEEDS_USER_INPUT, ["R1"])
    assert world.now.status is GoalStatus.WAITING_USER
    [(kind, is_open, text)] = asked(world)
    assert (kind, is_open) == (QuestionKind.SIGN_OFF, True)
    assert f"goalmode accept {world.goal.uid} R1" in text
    assert "It is beautiful." in text
    accept(world.store, world.now, ["R1"])
    assert world.now.status is GoalStatus.ACTIVE

    assert world.wake([SUCCESS]).reason is ExitReason.CURRENT_TASK_DONE
    assert "[a person has accepted it] It is beautiful." in world.told(0)
    assert "accepted: R1 (It is beautiful.)" in world.told(0)


def test_the_model_is_told_that_a_person_is_asked(make: Make) -> None:
    """Its call has succeeded: nothing was wrong with the claim."""
    world = make(deliverables=("out.txt",))
    agree(world, BEAUTIFUL)
    world.wake([WORK, SUCCESS])

    stored = rows(world.store, "SELECT outcome FROM tool_calls WHERE tool = 'complete'")
    assert stored == ["success"]
    assert rows(world.store, "SELECT rejections FROM wakeups") == [0]


def test_nobody_is_asked_before_all_else_holds(make: Make) -> None:
    """A claim that lacks a file is rejected; the person is asked about the whole, once."""
    world = make(deliverables=("out.txt",))
    agree(world, BEAUTIFUL)

    ending = world.wake([SUCCESS, WORK, SUCCESS])

    assert "out.txt" in world.told(1)
    assert "beautiful" not in world.told(1).split("The claim was not accepted")[1]
    assert ending.reason is ExitReason.NEEDS_USER_INPUT


def test_what_was_accepted_before_the_claim_is_not_asked(make: Make) -> None:
    """A person may look first."""
    world = make(deliverables=("out.txt",))
    (world.workspace / "out.txt").write_text("as it shall be")
    agree(world, BEAUTIFUL)
    accept(world.store, world.now, ["R1"])

    assert world.wake([SUCCESS]).reason is ExitReason.CURRENT_TASK_DONE
    assert asked(world) == []


def test_a_deliverable_that_changes_after_acceptance_is_asked_about_again(make: Make) -> None:
    """What the person saw is not what is there now; the next context and the question say so."""
    world = make(deliverables=("out.txt",))
    (world.workspace / "out.txt").write_text("first")
    agree(world, BEAUTIFUL)
    accept(world.store, world.now, ["R1"])

    ending = world.wake([WORK, SUCCESS])

    assert "R1 had been accepted, but the deliverables changed since" in str(ending.facts["why_no_default"])
    assert show(world.store, world.goal.id)["requirements"][0]["outdated"]
    answer_question(world.store, world.now, "not yet")
    world.wake([SUCCESS])
    assert "a person had accepted it, but the deliverables changed since" in world.told(0)


def test_an_answer_that_is_no_acceptance_sends_the_model_on(make: Make) -> None:
    """B124: the user's words stand in the next context; the requirement stays open, and the next claim asks anew."""
    world = make(deliverables=("out.txt",))
    agree(world, BEAUTIFUL)
    world.wake([WORK, SUCCESS])
    answer_question(world.store, world.now, "No: make it blue.")

    ending = world.wake([WORK, SUCCESS])

    assert "make it blue" in world.told(0)
    assert ending.reason is ExitReason.NEEDS_USER_INPUT
    assert [is_open for _, is_open, _ in asked(world)] == [False, True]


def test_a_goal_without_an_end_asks_too_and_then_goes_on(make: Make) -> None:
    """An until_budget goal waits for the person; accepted, the next claim raises the bar."""
    world = make(deliverables=("out.txt",), until_budget=True, limits=Limits(turns=5))
    agree(world, BEAUTIFUL)

    assert world.wake([WORK, SUCCESS]).reason is ExitReason.NEEDS_USER_INPUT
    accept(world.store, world.now, ["R1"])
    ending = world.wake(
        [call("read_file", path="out.txt"), SUCCESS, call("update_working_checkpoint", summary="s")]
    )

    assert ending.reason is ExitReason.GOAL_BUDGET_EXHAUSTED
    assert len(asked(world)) == 1


@pytest.mark.parametrize("way", ["end of turn", "default_next"])
def test_a_claim_without_a_call_asks_like_any_other(make: Make, way: str) -> None:
    """By the reply's ending, or by the movement's default."""
    more = {"end_turn": EndTurn.CLAIM} if way == "end of turn" else {"default_next": COMPLETE}
    workflow = Workflow("one", "only", (Movement("only", "Do it.", **more),))
    world = make(deliverables=("out.txt",), workflow=workflow, early_turns=0, max_recoveries=0)
    agree(world, BEAUTIFUL)

    last = [say("It is there.")] if way == "end of turn" else [call("complete", status="success")] * 5
    ending = world.wake([WORK, *last])

    assert (ending.reason, ending.facts["sign_off"]) == (ExitReason.NEEDS_USER_INPUT, ["R1"])
    assert world.now.status is GoalStatus.WAITING_USER


def test_an_edit_while_a_person_is_about_to_be_asked_makes_the_goal_due(make: Make) -> None:
    """The question may be about what nobody wants any more."""
    world = make(deliverables=("out.txt",))
    agree(world, BEAUTIFUL)

    def edit(event: Any) -> None:
        if event.kind == "turn" and event.data["turn"] == 2:
            edit_goal(world.store, world.now, objective="Another.")

    assert world.wake([WORK, SUCCESS], on_event=edit).reason is ExitReason.NEEDS_USER_INPUT
    assert world.now.status is GoalStatus.ACTIVE


def test_file_requirements_are_looked_at(make: Make) -> None:
    """The model learns what is wrong with the file; what held and what did not is stored."""
    world = make()
    agree(
        world,
        Requirement("", "", file=FileCheck(FileTest.CONTAINS, "out.txt", "hello")),
        Requirement("", "", file=FileCheck(FileTest.JSON, "out.json")),
    )

    seen: list[list[str]] = []

    def look(event: Any) -> None:
        if event.kind == "turn" and event.data["turn"] == 2:
            seen.append(statuses(world))

    ending = world.wake(
        [WORK, SUCCESS, call("write_file", path="out.json", content="{}"), SUCCESS], on_event=look
    )

    assert "requirement R2 (file json:out.json): the file does not exist" in world.told(2)
    assert seen == [["passed", "failed"]]
    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert ending.facts["basis"] == "checks"
    assert statuses(world) == ["passed", "passed"]


def test_a_changed_protected_file_refuses_the_claim_until_it_is_restored(make: Make) -> None:
    """A test made easier is no passed test; the model is told which file, and puts it back."""
    world = make()
    (world.workspace / "run.sh").write_text("grep -q hello out.txt")
    agree(world, Requirement("", "sh run.sh", "sh run.sh"))
    ease = call("write_file", path="run.sh", content="exit 0")
    restore = call("write_file", path="run.sh", content="grep -q hello out.txt")

    ending = world.wake([ease, SUCCESS, restore, WORK, SUCCESS])

    assert "protected file run.sh was changed" in world.told(2)
    assert ending.reason is ExitReason.CURRENT_TASK_DONE


def test_a_change_that_the_user_accepts_refuses_nothing_more(make: Make) -> None:
    """Between two wakeups; until then the context says what is wrong."""
    world = make(deliverables=("out.txt",), max_turns=2)
    (world.workspace / "run.sh").write_text("exit 0")
    agree(world, Requirement("", "sh run.sh", "sh run.sh"))
    world.wake([call("shell", command="echo >> run.sh; echo hello > out.txt"), SUCCESS, say("saved")])

    world.wake([SUCCESS, say("x"), say("saved")], finished=False)
    assert "[was changed: restore it as it was; only the user can accept the change] run.sh" in world.told(0)
    accept(world.store, world.now, ["run.sh"])

    assert world.wake([SUCCESS]).reason is ExitReason.CURRENT_TASK_DONE
    assert "was changed" not in world.told(0)


def test_a_verified_item_goes_stale_when_its_file_changes(make: Make) -> None:
    """Nothing is stored of it; contexts show it as pending, and a claim is refused until it is verified again."""
    world = make(deliverables=("out.txt",))
    save = call("update_working_checkpoint", pending=["out.txt holds the greeting"])
    verify = call("verify", item="W1", outcome="passed", evidence="cat: hello")
    world.wake([WORK, save, verify, call("wait", seconds=60, reason="the build")])
    (world.workspace / "out.txt").write_text("goodbye")

    ending = world.wake([SUCCESS, verify, SUCCESS])

    assert (
        "W1 [was verified, but out.txt changed since: verify again] out.txt holds the greeting"
        in world.told(0)
    )
    assert "item W1 was verified, but out.txt changed since, verify it again" in world.told(1)
    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert rows(world.store, "SELECT status FROM work_items") == ["verified"]


def test_a_stale_item_is_shown_and_is_fresh_again_when_the_file_is_put_back(make: Make) -> None:
    """`show` looks at the files as they are."""
    world = make(deliverables=("out.txt",))
    save = call("update_working_checkpoint", pending=["out.txt holds the greeting"])
    verify = call("verify", item="W1", outcome="passed", evidence="cat: hello")
    world.wake([WORK, save, verify, call("wait", seconds=60, reason="the build")])

    def item() -> tuple[str, list[str], list[str]]:
        [found] = show(world.store, world.goal.id)["work_items"]
        return found["status"], found["rests_on"], found["changed"]

    assert item() == (ItemStatus.VERIFIED, ["out.txt"], [])
    (world.workspace / "out.txt").unlink()
    assert item() == (ItemStatus.STALE, ["out.txt"], ["out.txt"])
    (world.workspace / "out.txt").write_text("hello\n")
    assert item() == (ItemStatus.VERIFIED, ["out.txt"], [])


def test_a_check_that_is_added_while_the_claim_is_judged_is_run(make: Make) -> None:
    """Success is never stored at a contract that was not checked: the claim is judged again, at the new revision."""
    world = make(deliverables=("out.txt",))

    def add_a_check(event: Any) -> None:
        if event.kind == "turn" and event.data["turn"] == 2:
            agree(world, Requirement("", "t", "grep -q more out.txt"))

    more = call("shell", command="echo more >> out.txt")
    ending = world.wake([WORK, SUCCESS, SUCCESS, more, SUCCESS], on_event=add_a_check)

    assert "must exit 0: grep -q more out.txt" in world.told(2)
    assert "exit code 1" in world.told(3)
    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert statuses(world) == ["passed"]
    assert rows(world.store, "SELECT DISTINCT revision FROM checks ORDER BY 1") == [1, 2]


def test_a_claim_that_an_edit_overtook_verifies_nothing(make: Make) -> None:
    """The deliverables of the older revision are not marked as accepted."""
    world = make(deliverables=("out.txt",), max_turns=2)

    def edit(event: Any) -> None:
        if event.kind == "turn" and event.data["turn"] == 2:
            edit_goal(world.store, world.now, deliverables=("out.txt", "b.txt"))

    ending = world.wake([WORK, SUCCESS, say("saved")], on_event=edit)

    assert ending.reason is ExitReason.MAX_TURNS_EXCEEDED
    assert [d.sha_verified for d in world.now.deliverables] == [None, None]


def test_the_claims_evidence_stands_beside_the_contract(make: Make) -> None:
    """At completion each requirement has what speaks for it, and each deliverable the hash it was accepted with."""
    world = make(deliverables=("out.txt",))
    agree(world, Requirement("", "It greets."), Requirement("", "t", "cat out.txt"), BEAUTIFUL)
    (world.workspace / "out.txt").write_text("hello\n")
    accept(world.store, world.now, ["R3"])
    world.wake([call("complete", status="success", summary="Done.", evidence=["out.txt greets"])])

    found = show(world.store, world.goal.id)

    assert [(r["kind"], r["status"], r["exit_code"], r["evidence"]) for r in found["requirements"]] == [
        ("evidence", "passed", None, "out.txt greets"),
        ("command", "passed", 0, "hello"),
        ("human", "passed", None, ""),
    ]
    assert all(r["checked_at"] for r in found["requirements"])
    [deliverable] = found["deliverables"]
    assert deliverable["seen_sha256"] == deliverable["verified_sha256"] == deliverable["sha256"]


def test_no_tool_changes_the_contract() -> None:
    """What is wanted, what is protected and what was accepted is the user's."""
    named = {tool.name for tool in builtin_tools()}

    assert not {
        name
        for name in named
        if any(w in name for w in ("accept", "contract", "require", "protect", "edit_goal"))
    }
