"""Goals as users make, find, change, stop and delete them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from goalmode.domain.budget import Limits
from goalmode.domain.contract import Requirement, RequirementStatus
from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Control, GoalSettings, Obstacle
from goalmode.domain.workflow import EndTurn, Movement, Workflow
from goalmode.errors import NotAllowed, UnknownGoal
from goalmode.state import goals
from goalmode.state import tables as t
from goalmode.state.checks import CheckResult
from goalmode.state.goals import Edit
from goalmode.state.owner import Owner
from goalmode.state.store import Store
from goalmode.state.wakeups import met_obstacle
from goalmode.testing import ManualClock
from tests.state.builders import claim, close, dump, intent, new_goal, outcome, record, reply, rows, take_turn


def test_a_new_goal_is_due_at_once(store: Store, clock: ManualClock) -> None:
    """It comes back as it was asked for, and its first revision is kept."""
    limits = Limits(turns=5, active_seconds=3.5, deadline=clock.now() + timedelta(days=1))
    checks = (Requirement("R1", "tests pass", "pytest -q"), Requirement("R2", "readable"))

    goal = new_goal(store, requirements=checks, deliverables=("a.md",), limits=limits)

    assert (goal.status, goal.next_wakeup_at, goal.wake_reason) == (GoalStatus.ACTIVE, clock.now(), "created")
    assert (goal.requirements, goal.limits, goal.revision, goal.fence) == (checks, limits, 1, 0)
    assert [d.path for d in goal.deliverables] == ["a.md"]
    assert goals.get(store, goal.id) == goal
    [first] = goals.revisions(store, goal)
    assert first["contract"]["requirements"][0] == {
        "text": "tests pass",
        "kind": "command",
        "check": "pytest -q",
        "file": None,
    }


def test_a_goal_is_found_by_a_unique_prefix(store: Store) -> None:
    """In either case; an ambiguous, unknown or empty prefix says so and names the candidates."""
    first, second = new_goal(store), new_goal(store)
    for goal, uid in ((first, "abc"), (second, "abcd")):
        rows(store, "UPDATE goals SET uid = ? WHERE id = ?", uid, goal.id)

    assert goals.find(store, " ABCD ").id == second.id
    assert goals.find(store, "abc").id == first.id
    with pytest.raises(UnknownGoal, match="several goals: abc, abcd"):
        goals.find(store, "ab")
    for unknown in ("x", "", "%", "a_c"):
        with pytest.raises(UnknownGoal, match="no goal"):
            goals.find(store, unknown)


def test_goals_are_listed_newest_first(store: Store) -> None:
    """With a limit and an offset."""
    made = [new_goal(store).id for _ in range(4)]

    assert [g.id for g in goals.every(store) if isinstance(g, goals.Goal)] == made[::-1]
    page = goals.every(store, limit=2, offset=1)
    assert [g.id for g in page if isinstance(g, goals.Goal)] == [made[2], made[1]]


def test_an_edit_is_a_new_revision_of_the_whole_contract(store: Store, clock: ManualClock) -> None:
    """What is not given stays; checks start open; both revisions are kept."""
    goal = new_goal(store, requirements=(Requirement("R1", "a", "true"),), deliverables=("a.md",))
    claimed = claim(store, goal)
    turn = intent(store, claimed, reply("complete"))
    outcome(store, claimed, turn, record("c0"), checks=[CheckResult("R1", True, 0)])
    assert goals.get(store, goal.id).requirements[0].status is RequirementStatus.PASSED

    edited = goals.edit(store, goal, Edit(1, deliverables=("b.md",)), now=clock.now())

    assert (edited.revision, edited.objective) == (2, goal.objective)
    assert edited.requirements == (Requirement("R1", "a", "true"),)
    assert [d.path for d in edited.deliverables] == ["b.md"]
    assert [r["revision"] for r in goals.revisions(store, goal)] == [1, 2]
    assert rows(store, "SELECT kind, text FROM inbox") == [("edit", "revision 2")]


def test_two_edits_of_one_revision_do_not_overwrite_each_other(store: Store, clock: ManualClock) -> None:
    """The second is refused and changes nothing."""
    goal = new_goal(store)
    goals.edit(store, goal, Edit(1, "first"), now=clock.now())
    before = dump(store)

    with pytest.raises(NotAllowed, match="edited by somebody else"):
        goals.edit(store, goal, Edit(1, "second"), now=clock.now())

    assert dump(store) == before


@pytest.mark.parametrize("status", GoalStatus)
def test_only_a_goal_that_was_done_is_reopened_by_an_edit(
    store: Store, clock: ManualClock, status: GoalStatus
) -> None:
    """All others keep their status."""
    goal = new_goal(store)
    with store.writing() as connection:
        connection.execute(t.goals.update().values(status=status, next_wakeup_at=None))

    edited = goals.edit(store, goal, Edit(1, "more"), now=clock.now())

    assert edited.status is (GoalStatus.ACTIVE if status is GoalStatus.DONE else status)
    assert (edited.next_wakeup_at is not None) == (status is GoalStatus.DONE)


def test_a_resume_is_one_commit_that_starts_counts_anew(store: Store, clock: ManualClock) -> None:
    """Due now, streak, failures and obstacles at zero, what is spent untouched."""
    goal = new_goal(store, limits=Limits(turns=5))
    claimed = claim(store, goal)
    assert met_obstacle(store, claimed, "No  Network") == Obstacle("O1", "No Network", "", (1,))
    take_turn(store, claimed, 1)
    close(store, claimed)
    with store.writing() as connection:
        connection.execute(
            t.goals.update().values(status="BLOCKED", streak=3, failures=4, next_wakeup_at=None)
        )
    clock.advance(60)

    found = goals.make_due(store, goal, now=clock.now(), reason="resumed", limits=Limits(turns=9))

    assert (found.status, found.next_wakeup_at, found.streak, found.failures) == (
        GoalStatus.ACTIVE,
        clock.now(),
        0,
        0,
    )
    assert (found.spent.turns, found.limits, found.limits_revision) == (1, Limits(turns=9), 2)
    assert found.obstacles == (Obstacle("O1", "No Network"),)
    assert met_obstacle(store, claim(store, goal), "no network") == Obstacle("O1", "No Network", "", (2,))


def test_an_obstacle_is_counted_over_wakeups_not_mentions(store: Store) -> None:
    """9.4: twice in one wakeup counts once; three wakeups count three, however it is spelled."""
    goal = new_goal(store)
    counts = []
    for spelled in ("no network", "No Network", " no\tnetwork "):
        claimed = claim(store, goal)
        counts += [met_obstacle(store, claimed, said).wakeups for said in (spelled, "o1")]
        close(store, claimed)

    assert counts == [(1,), (1,), (1, 2), (1, 2), (1, 2, 3), (1, 2, 3)]
    assert met_obstacle(store, claim(store, goal), "another one") == Obstacle("O2", "another one", "", (4,))


@pytest.mark.parametrize(
    ("control", "status"), [(Control.PAUSE, GoalStatus.PAUSED), (Control.ABORT, GoalStatus.ABORTED)]
)
def test_a_stop_takes_effect_at_once_where_nobody_runs(
    store: Store, control: Control, status: GoalStatus
) -> None:
    """No request is left over that would keep the next wakeup from starting after a resume."""
    goal = new_goal(store)

    stopped, running = goals.stop(store, goal, control, now=store.clock.now())

    assert (stopped.status, stopped.control, stopped.next_wakeup_at, running) == (
        status,
        Control.NONE,
        None,
        False,
    )


def test_a_stop_asks_a_running_wakeup(store: Store) -> None:
    """The status is the wakeup's to change."""
    goal = new_goal(store)
    claim(store, goal)

    stopped, running = goals.stop(store, goal, Control.PAUSE, now=store.clock.now())

    assert (stopped.status, stopped.control, running) == (GoalStatus.ACTIVE, Control.PAUSE, True)


def test_a_stop_asks_nobody_who_is_dead(store: Store) -> None:
    """B43: with the owner gone the goal is stopped at once; its wakeup is closed by whoever comes next."""
    goal = new_goal(store)
    claim(store, goal)
    rows(store, "UPDATE wakeups SET pid_start = 'another process'")

    stopped, running = goals.stop(store, goal, Control.PAUSE, now=store.clock.now())

    assert (stopped.status, stopped.control, running) == (GoalStatus.PAUSED, Control.NONE, False)


def test_deleting_a_goal_leaves_nothing_of_it_and_all_of_the_others(store: Store, clock: ManualClock) -> None:
    """Rows of every table and the texts they point to."""
    kept = new_goal(store, "The other one.")
    take_turn(store, claim(store, kept), 1)
    before = dump(store)
    goal = new_goal(store, requirements=(Requirement("R1", "a", "true"),), deliverables=("a.md",))
    claimed = claim(store, goal)
    turn = intent(store, claimed, reply("shell"))
    checks = [CheckResult("R1", True, 0, tail="fine")]
    outcome(store, claimed, turn, record("c0"), checks=checks)
    goals.make_due(store, goal, now=clock.now(), reason="resumed", limits=Limits(turns=3))

    goals.delete(store, goal)

    assert dump(store) == before
    with pytest.raises(UnknownGoal):
        goals.get(store, goal.id)


def test_times_are_aware_utc_and_naive_ones_are_refused(store: Store, clock: ManualClock) -> None:
    """A naive time never reaches the file."""
    goal = new_goal(store)
    assert goal.created_at.utcoffset() == timedelta(0)

    with pytest.raises(Exception, match="naive time"):
        goals.make_due(store, goal, now=clock.now().replace(tzinfo=None), reason="resumed")

    assert goals.get(store, goal.id) == goal


def test_a_goal_belongs_to_the_host_of_its_workspace(store: Store) -> None:
    """Its label is the creator's."""
    with Store(store.url, owner=replace(Owner.current(), host_label="build-7")) as elsewhere:
        assert new_goal(elsewhere).host_label == "build-7"


def test_a_workflow_is_stored_with_its_goal(store: Store) -> None:
    """A goal keeps the movements it was created with and begins at their start; secrets are struck out."""
    first = Movement("a", "Do it with sk-" + "a1b2" * 10 + ".", "", ("shell",), "b", EndTurn.CLAIM)
    workflow = Workflow("mine", "b", (first, Movement("b", instruction_template="pursue", verifies=True)))

    goal = new_goal(store, settings=GoalSettings(workflow=workflow))

    kept = goal.settings.workflow
    assert goal.movement == "b"
    assert (kept.name, kept.start, kept.movements[1:]) == ("mine", "b", workflow.movements[1:])
    assert replace(kept.movements[0], instruction="") == replace(first, instruction="")
    assert "a1b2a1b2" not in kept.movements[0].instruction
    assert kept.movements[0].instruction.startswith("Do it with ")
