"""Goals that run until their limits: movements alternate, each leaves its report, the bar rises, one wrap-up."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest

from goalmode.domain.budget import Limits
from goalmode.domain.exits import ExitReason, GoalStatus
from goalmode.domain.messages import ToolResult, User
from goalmode.domain.work import MAX_REPORTS
from goalmode.inspection.show import show
from goalmode.inspection.turns import turns
from goalmode.testing import call, calls, say
from goalmode.workflows.load import shipped
from tests.state.builders import rows

Make = Callable[..., Any]

POLISH = shipped("polish")
FOLLOWING = {"create": "verify", "verify": "improve", "improve": "verify"}
WRITE = call("write_file", path="out.txt", content="a first version")
READ = call("read_file", path="out.txt")
SUCCESS = call("complete", status="success", summary="It stands.")
RAISED = "higher standard"


def go(to: str, reason: str = "it is time") -> Any:
    return call("transition", to=to, reason=reason)


@pytest.fixture
def polish(make: Make) -> Callable[..., Any]:
    def build(**options: Any) -> Any:
        given = {"limits": Limits(turns=100), "deliverables": ("out.txt",), "max_turns": 50, **options}
        return make(workflow=POLISH, until_budget=True, autonomous=True, **given)

    return build


def reports(world: Any) -> list[str]:
    return [i["text"] for i in show(world.store, world.goal.id)["work_items"] if i["provenance"] == "host"]


def said(world: Any, number: int = -1) -> list[str]:
    """The prompts that stand behind a request's last result."""
    messages = world.requests[number].messages
    behind = max(n for n, m in enumerate(messages) if isinstance(m, ToolResult))
    return [m.text for m in messages[behind:] if isinstance(m, User)]


def worker(world: Any) -> Iterator[Any]:
    """A model that does one thing in each movement, moves on, and saves when nothing else is on offer."""
    numbers = count(1)

    def step(request: Any) -> Any:
        if "shell" not in {tool.name for tool in request.tools}:
            return call("update_working_checkpoint", key_info="as far as it came")
        number = next(numbers)
        if number % 2:
            return call("shell", command=f"echo {world.now.movement} {number} >> out.txt; tail -1 out.txt")
        return go(FOLLOWING[world.now.movement], f"number {number}")

    while True:
        yield step


def test_polish_alternates_until_the_budget_ends(polish: Make) -> None:
    """Over several wakeups: create, then verify and improve in turn, each with its report; one wrap-up; EXHAUSTED."""
    world = polish(limits=Limits(turns=20), max_turns=6)
    steps, endings = worker(world), []
    while world.now.status is GoalStatus.ACTIVE:
        endings.append(world.wake([next(steps) for _ in range(8)], finished=False).reason)

    assert endings == [ExitReason.MAX_TURNS_EXCEEDED] * 3 + [ExitReason.GOAL_BUDGET_EXHAUSTED]
    assert world.now.status is GoalStatus.EXHAUSTED
    seen = turns(world.store, world.now)
    assert [t["purpose"] for t in seen].count("wrap_up") == 1
    assert world.now.spent.turns == 20
    worked = [t["movement"] for t in seen if [c["tool"] for c in t["calls"]] == ["shell"]]
    assert worked == ["create", *["verify", "improve"] * 5][: len(worked)]
    assert [r.partition(",")[0] for r in reports(world)] == [f"report of {m}" for m in worked[:-1]]
    assert [w["progress_by"]["reports"] for w in show(world.store, world.goal.id)["wakeups"]][:3] == [1, 2, 1]


def test_a_transition_leaves_its_report_as_a_work_item(polish: Make) -> None:
    """With the movement, the wakeup and the model's reason, as the host's item; later contexts show it as a report."""
    world = polish(max_turns=4)

    world.wake([WRITE, go("verify", "all five parts are there"), READ, READ, say("saved")])
    world.wake([READ, READ, READ, READ, say("saved")])

    assert reports(world) == ["report of create, wakeup 1: all five parts are there"]
    assert "[what the agent reported of a movement, wakeup 1] report of create, wakeup 1: all" in world.told(
        0
    )


def test_closing_words_of_a_report_are_withheld(polish: Make) -> None:
    """A report is the model's words: what it closes with is not read to it again."""
    world = polish(max_turns=3)
    world.wake([WRITE, go("verify", "All tasks are done, final delivery."), READ, say("saved")])

    world.wake([READ, READ, READ, say("saved")])

    assert "final delivery" not in world.told(0)
    assert "[unverified claim]" in world.told(0)


def test_goals_with_an_end_leave_no_reports(make: Make) -> None:
    """There a transition is a step on the way, and the bar stays where it is."""
    world = make(workflow=POLISH, deliverables=("out.txt",), max_turns=4)

    world.wake([WRITE, go("verify"), READ, go("improve"), say("saved")])

    assert reports(world) == []
    assert RAISED not in world.told()
    assert show(world.store, world.goal.id)["wakeups"][0]["progress_by"]["reports"] == 0


def test_a_verification_that_finds_nothing_raises_the_bar(polish: Make) -> None:
    """The prompt follows the result of the transition, before the next movement's instruction; it is progress."""
    world = polish(max_turns=5)

    world.wake([WRITE, go("verify"), READ, go("improve", "nothing to find"), READ, say("saved")])

    raised, entered = said(world, 4)
    assert RAISED in raised
    assert "found nothing to mend" in raised
    assert "now in the movement improve" in entered
    assert show(world.store, world.goal.id)["wakeups"][0]["progress_by"]["reports"] == 1
    stored = rows(world.store, "SELECT data FROM events WHERE kind = 'transition' ORDER BY id")
    assert [json.loads(data)["found_nothing"] for data in stored] == [False, True]


@pytest.mark.parametrize(
    "finding",
    [
        call("update_working_checkpoint", pending=["chapter 2 cites its sources"]),
        call("update_working_checkpoint", next_steps=["mend chapter 2"]),
        call("verify", item="W1", outcome="failed", evidence="it is missing"),
    ],
    ids=["a new pending item", "other next steps", "a failed verification"],
)
def test_a_verification_with_a_finding_leaves_the_bar(polish: Make, finding: Any) -> None:
    """There is something to mend: that comes first."""
    world = polish(max_turns=7)
    save = call("update_working_checkpoint", pending=["chapter 1 is there"], next_steps=["look"])

    world.wake([WRITE, save, go("verify"), READ, finding, go("improve"), READ, say("saved")])

    assert [RAISED in text for text in said(world, 6)] == [False]
    assert show(world.store, world.goal.id)["wakeups"][0]["progress_by"]["reports"] == 0


def test_the_same_state_saved_again_is_no_finding(polish: Make) -> None:
    """A checkpoint that says what was known before, and an item that was verified, leave nothing to mend."""
    world = polish(max_turns=7)
    save = call("update_working_checkpoint", pending=["chapter 1 is there"], next_steps=["look"])
    passed = call("verify", item="W1", outcome="passed", evidence="read out.txt")

    world.wake([WRITE, save, go("verify"), calls(READ, passed), save, go("improve"), READ, say("saved")])

    assert RAISED in said(world, 6)[0]


def test_what_was_found_before_is_still_to_be_mended(polish: Make) -> None:
    """A wakeup that goes on in a verification with a failed item has not found nothing."""
    world = polish(max_turns=5)
    save = call("update_working_checkpoint", pending=["chapter 1 is there"])
    failed = call("verify", item="W1", outcome="failed", evidence="it is missing")
    world.wake([WRITE, save, go("verify"), READ, failed])

    world.wake([READ, go("improve"), READ, READ, READ, say("saved")])

    assert [RAISED in text for text in said(world, 2)] == [False]


def test_a_verification_that_looked_at_nothing_raises_nothing(polish: Make) -> None:
    """Leaving at once is neither a finding nor progress."""
    world = polish(max_turns=4)

    world.wake([WRITE, go("verify"), go("improve"), READ, say("saved")])

    assert [RAISED in text for text in said(world, 3)] == [False]
    assert show(world.store, world.goal.id)["wakeups"][0]["progress_by"]["reports"] == 0


@pytest.mark.long
def test_verifications_that_find_nothing_are_never_stuck(polish: Make) -> None:
    """Wakeups in which nothing changes but the reports end badly again and again, and do not block the goal."""
    world = polish(limits=Limits(turns=1000), early_turns=0)
    (world.workspace / "out.txt").write_text("x")
    world.wake([READ, go("verify"), READ, *[say("")] * 2])
    for _ in range(6):
        away = [go("verify")] if world.now.movement == "improve" else []
        ending = world.wake([*away, READ, go("improve", "nothing"), READ, say(""), say("")])
        assert ending.reason is ExitReason.YIELDED

    assert (world.now.status, world.now.streak) == (GoalStatus.ACTIVE, 0)
    marks = show(world.store, world.goal.id)["wakeups"][-1]["progress_by"]
    assert {kind for kind, n in marks.items() if n} == {"reports"}


def test_a_claim_that_stands_in_a_verification_raises_the_bar_too(polish: Make) -> None:
    """It moves on, leaves its summary as the report, and says that the contract holds."""
    world = polish(max_turns=5)

    world.wake([WRITE, go("verify"), READ, SUCCESS, READ, say("saved")])

    assert world.now.movement == "improve"
    assert reports(world)[1] == "report of verify, wakeup 1: a claim stood: It stands."
    assert "The contract holds" in said(world, 4)[0]


def test_with_one_movement_a_claim_that_stands_leaves_a_report(make: Make) -> None:
    """The workflow pursue has nowhere to go on to: its bar rises, and what was claimed is kept."""
    world = make(until_budget=True, deliverables=("out.txt",), limits=Limits(turns=100), max_turns=3)

    world.wake([WRITE, SUCCESS, READ, say("saved")])

    assert reports(world) == ["report of pursue, wakeup 1: a claim stood: It stands."]
    assert RAISED in world.told()


@pytest.mark.long
def test_reports_are_bounded_and_numbers_are_not_used_again(polish: Make) -> None:
    """The newest are kept; what the agent saved stays whatever its number."""
    world = polish(limits=Limits(turns=1000), max_turns=200)
    save = call("update_working_checkpoint", done=["chapter 1"])
    steps: list[Any] = [WRITE, save, go("verify", "0")]
    here = "verify"
    for number in range(1, MAX_REPORTS + 5):
        here = FOLLOWING[here]
        steps += [call("shell", command=f"echo {number}"), go(here, str(number))]

    world.wake([*steps, READ, say(""), say("")], finished=False)

    items = show(world.store, world.goal.id)["work_items"]
    kept = [i["id"] for i in items if i["provenance"] == "host"]
    assert len(kept) == MAX_REPORTS
    assert kept[-1] == f"W{MAX_REPORTS + 6}"
    assert [i["text"] for i in items if i["provenance"] == "model"] == ["chapter 1"]
