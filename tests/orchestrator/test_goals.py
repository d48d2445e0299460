"""What a user may do with a goal, and that bad input is one clear refusal that changes nothing."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from goalmode.domain.budget import Limits
from goalmode.domain.contract import Requirement
from goalmode.domain.exits import Exit, ExitReason, GoalStatus
from goalmode.domain.goal import MAX_OBJECTIVE, Control, Goal, GoalSettings, GoalSpec
from goalmode.domain.questions import MAX_ANSWER
from goalmode.errors import BadInput, NotAllowed, UnknownGoal
from goalmode.orchestrator.contract import MAX_LINE
from goalmode.orchestrator.goals import (
    create_goal,
    delete_goal,
    edit_goal,
    resume_goal,
    stop_goal,
)
from goalmode.orchestrator.skip import Skip
from goalmode.state import goals
from goalmode.state import tables as t
from goalmode.state.store import Store
from goalmode.testing import ManualClock
from tests.orchestrator.builders import DONE, GO_ON, attempt, begin, new_goal, now
from tests.state.builders import dump

S = GoalStatus


def put(store: Store, status: GoalStatus) -> None:
    with store.writing() as connection:
        connection.execute(t.goals.update().values(status=status, next_wakeup_at=None))


BAD: list[tuple[str, dict[str, Any]]] = [
    ("objective", {"objective": ""}),
    ("objective", {"objective": " \n\t　"}),
    ("objective", {"objective": "x" * (MAX_OBJECTIVE + 1)}),
    ("workspace", {"workspace": ""}),
    ("workspace", {"workspace": "/nowhere/at/all"}),
    ("workspace", {"workspace": "nul\x00"}),
    ("require", {"requirements": (Requirement("", " "),)}),
    ("require", {"requirements": (Requirement("", "x" * (MAX_LINE + 1)),)}),
    ("check", {"requirements": (Requirement("", "t", ""),)}),
    ("check", {"requirements": (Requirement("", "t", "a\x00b"),)}),
    ("check", {"requirements": (Requirement("", "t", "cat \udcff"),)}),
    ("deliverable", {"deliverables": ("../out",)}),
    ("deliverable", {"deliverables": ("/etc/passwd",)}),
    ("deliverable", {"deliverables": ("",)}),
    ("deliverable", {"deliverables": (".",)}),
    ("deliverable", {"deliverables": ("a\x00b",)}),
    ("deliverable", {"deliverables": ("a\udcff",)}),
    ("turns", {"limits": Limits(turns=-1)}),
    ("turns", {"limits": Limits(turns="5")}),  # type: ignore[arg-type]
    ("turns", {"limits": Limits(turns=2.5)}),  # type: ignore[arg-type]
    ("wakeups", {"limits": Limits(wakeups=True)}),
    ("tokens", {"limits": Limits(tokens=-(10**9))}),
    ("cost_micro", {"limits": Limits(cost_micro=-1)}),
    ("cost_micro", {"limits": Limits(cost_micro=2.5)}),  # type: ignore[arg-type]
    ("active_seconds", {"limits": Limits(active_seconds=-0.1)}),
    ("active_seconds", {"limits": Limits(active_seconds=float("nan"))}),
    ("active_seconds", {"limits": Limits(active_seconds=float("inf"))}),
    ("deadline", {"limits": Limits(deadline=datetime(2001, 1, 1).astimezone())}),
    ("deadline", {"limits": Limits(deadline=datetime(2100, 1, 1))}),  # noqa: DTZ001 - naive on purpose
    ("deadline", {"limits": Limits(deadline=datetime.fromisoformat("9999-12-31T23:00-05:00"))}),
    ("deadline", {"limits": Limits(deadline=datetime.fromisoformat("9000-01-01T00:00Z"))}),
    ("max-turns", {"settings": GoalSettings(max_turns=0)}),
    ("early-turns", {"settings": GoalSettings(early_turns=-1)}),
    ("max-recoveries", {"settings": GoalSettings(max_recoveries=-1)}),
    ("lang", {"settings": GoalSettings(lang="fr")}),
    ("context-tokens", {"settings": GoalSettings(context_tokens=10)}),
    ("work-window", {"settings": GoalSettings(work_window=999)}),
]


@pytest.mark.parametrize(("field", "fields"), BAD, ids=lambda value: str(value)[:60])
def test_bad_input_creates_nothing(store: Store, workspace: Path, field: str, fields: dict[str, Any]) -> None:
    """B25: each names its field and what would be right, in one line, with exit code 2; the store is as it was."""
    before = dump(store)

    asked = {"objective": "Write the report.", "workspace": str(workspace), **fields}

    with pytest.raises(BadInput) as caught:
        create_goal(store, GoalSpec(**asked))

    assert (caught.value.field, caught.value.exit_code) == (field, 2)
    assert caught.value.expected
    assert dump(store) == before


def test_a_workspace_must_be_a_directory(store: Store, workspace: Path) -> None:
    """A file is told from a missing path."""
    file = workspace / "file"
    file.touch()

    with pytest.raises(BadInput, match="there is a file"):
        new_goal(store, file)


def test_a_workspace_whose_name_is_no_text_is_refused(store: Store, workspace: Path) -> None:
    """Its name could neither be stored nor sent."""
    odd = workspace / "odd-\udcff"
    odd.mkdir()

    with pytest.raises(BadInput, match="workspace"):
        new_goal(store, odd)


@pytest.mark.parametrize("value", [0, 1, None])
def test_limits_from_zero_are_accepted_and_kept_apart_from_none(
    store: Store, workspace: Path, value: int | None
) -> None:
    """B25: 0 is a limit of zero, None is no limit."""
    goal = new_goal(store, workspace, limits=Limits(turns=value, tokens=value, active_seconds=value))

    assert (goal.limits.turns, goal.limits.tokens, goal.limits.active_seconds) == (value, value, value)


def test_a_contract_is_stored_in_its_normal_form(store: Store, workspace: Path) -> None:
    """Requirements are numbered, paths relative and named once, whatever form they were given in."""
    goal = new_goal(
        store,
        workspace,
        requirements=(Requirement("x", "readable"), Requirement("", "tests", "pytest -q")),
        deliverables=("./out/a.md", "out/../out/a.md", str(workspace / "b.md")),
    )

    assert [(r.id, r.check) for r in goal.requirements] == [("R1", None), ("R2", "pytest -q")]
    assert [d.path for d in goal.deliverables] == ["out/a.md", "b.md"]
    assert goal.workspace == str(workspace)


def test_an_edit_needs_something_to_change(store: Store, workspace: Path) -> None:
    """And what it changes is checked like a new goal's."""
    goal = new_goal(store, workspace)
    before = dump(store)

    with pytest.raises(BadInput, match="edit"):
        edit_goal(store, goal)
    with pytest.raises(BadInput, match="objective"):
        edit_goal(store, goal, objective=" ")
    with pytest.raises(BadInput, match="deliverable"):
        edit_goal(store, goal, deliverables=["../x"])

    assert dump(store) == before


def test_an_edit_of_a_done_goal_reopens_it(store: Store, workspace: Path) -> None:
    """With a clean streak: what went wrong before the success is over."""
    goal = new_goal(store, workspace)
    begin(store, goal).close(Exit(ExitReason.NO_PROGRESS, "x"))
    begin(store, goal, only_if_due=False).close(DONE)

    edited = edit_goal(store, now(store, goal), objective="Write another.")

    assert (edited.status, edited.streak, edited.revision) == (S.ACTIVE, 0, 2)


@pytest.mark.parametrize("status", [S.PAUSED, S.BLOCKED, S.EXHAUSTED, S.ACTIVE])
def test_a_resume_makes_these_due(
    store: Store, workspace: Path, clock: ManualClock, status: GoalStatus
) -> None:
    """PAUSED, BLOCKED, EXHAUSTED and ACTIVE goals run on; totals are never reset."""
    goal = new_goal(store, workspace)
    begin(store, goal).close(GO_ON)
    put(store, status)
    clock.advance(5)

    found = resume_goal(store, now(store, goal))

    assert (found.status, found.next_wakeup_at, found.spent.wakeups) == (S.ACTIVE, clock.now(), 1)


def test_a_waiting_goal_wants_an_answer(store: Store, workspace: Path) -> None:
    """B124: none, an empty one, too long a one, and one that nobody asked for are refused; the question stays open."""
    goal = new_goal(store, workspace)
    begin(store, goal).close(Exit(ExitReason.NEEDS_USER_INPUT, "which station?"))
    waiting, before = now(store, goal), dump(store)

    with pytest.raises(NotAllowed, match=r"goalmode answer .* TEXT"):
        resume_goal(store, waiting)
    for answer in ("", " \n ", "x" * (MAX_ANSWER + 1)):
        with pytest.raises(BadInput, match="answer"):
            resume_goal(store, waiting, answer=answer)
    assert dump(store) == before

    answered = resume_goal(store, waiting, answer="Cuxhaven")
    assert (answered.status, answered.wake_reason) == (S.ACTIVE, "answered")
    with pytest.raises(NotAllowed, match="waits for no answer"):
        resume_goal(store, answered, answer="again")


def test_a_done_goal_is_reopened_by_an_edit_only(store: Store, workspace: Path) -> None:
    """A resume says so."""
    goal = new_goal(store, workspace)
    put(store, S.DONE)

    with pytest.raises(NotAllowed, match="goalmode edit"):
        resume_goal(store, now(store, goal))


def test_an_aborted_goal_can_only_be_read(store: Store, workspace: Path) -> None:
    """Edit, resume, pause and abort are refused; deleting is not."""
    aborted, running = stop_goal(store, new_goal(store, workspace), Control.ABORT)
    before = dump(store)

    assert not running
    for command in (
        lambda: edit_goal(store, aborted, objective="x"),
        lambda: resume_goal(store, aborted),
        lambda: stop_goal(store, aborted, Control.PAUSE),
        lambda: stop_goal(store, aborted, Control.ABORT),
    ):
        with pytest.raises(NotAllowed, match="aborted"):
            command()
    assert dump(store) == before

    delete_goal(store, aborted)
    with pytest.raises(UnknownGoal):
        now(store, aborted)


@pytest.mark.parametrize("status", [S.DONE, S.PAUSED])
def test_there_is_nothing_to_pause(store: Store, workspace: Path, status: GoalStatus) -> None:
    """A goal that is done or paused stays what it is."""
    goal = new_goal(store, workspace)
    put(store, status)

    with pytest.raises(NotAllowed, match="nothing to pause"):
        stop_goal(store, now(store, goal), Control.PAUSE)


def test_a_running_goal_is_not_deleted(store: Store, workspace: Path) -> None:
    """Its wakeup has to end first."""
    goal = new_goal(store, workspace)
    wake = begin(store, goal)

    with pytest.raises(NotAllowed, match="a wakeup runs"):
        delete_goal(store, goal)

    wake.close(GO_ON)
    delete_goal(store, goal)
    assert goals.every(store) == []


def test_a_pause_that_crosses_the_end_of_a_wakeup_is_not_lost(store: Store, workspace: Path) -> None:
    """The goal was read while a wakeup ran, which has ended since: it is paused at once and can be resumed."""
    goal = new_goal(store, workspace)
    wake = begin(store, goal)
    seen = now(store, goal)
    wake.close(GO_ON)

    paused, running = stop_goal(store, seen, Control.PAUSE)

    assert (paused.status, paused.control, running) == (S.PAUSED, Control.NONE, False)
    resume_goal(store, paused)
    begin(store, goal).close(GO_ON)


def test_a_raised_limit_allows_one_more_wrap_up(store: Store, workspace: Path) -> None:
    """Each change is a new limits revision; a resume without one is none."""
    goal = new_goal(store, workspace, limits=Limits(turns=1))

    assert resume_goal(store, goal, limits=Limits(turns=1)).limits_revision == 1
    assert resume_goal(store, goal, limits=Limits(turns=2)).limits_revision == 2
    with pytest.raises(BadInput, match="turns"):
        resume_goal(store, goal, limits=Limits(turns=-2))


def test_a_refused_create_leaves_the_list_empty(store: Store, workspace: Path) -> None:
    """And a valid one is woken at once."""
    with pytest.raises(BadInput):
        new_goal(store, workspace, objective=" ")
    assert goals.every(store) == []

    goal = new_goal(store, workspace)
    assert isinstance(goal, Goal)
    assert not isinstance(attempt(store, goal), Skip)
