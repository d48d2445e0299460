"""A server's looks: whom it wakes, in which order, how many at once, and what can go wrong without stopping it."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Control
from goalmode.errors import BadInput, StoreError
from goalmode.orchestrator.goals import resume_goal, stop_goal
from goalmode.orchestrator.questions import answer_question
from goalmode.orchestrator.schedule import every, on_file, on_goal, schedule
from goalmode.scheduler import lookout
from goalmode.scheduler.lookout import Lookout
from goalmode.state import due
from goalmode.state.owner import LEASE_MS
from goalmode.state.store import Store
from goalmode.testing import call, say
from tests.orchestrator.builders import begin
from tests.scheduler.conftest import Park, done, mark, uids
from tests.state.builders import claim, rows


def asks() -> object:
    return call(
        "complete",
        status="needs_user_input",
        summary="Stuck.",
        missing_info="Red or blue?",
        why_no_default="Taste.",
    )


def test_a_due_goal_is_woken_and_told_of(park: Park) -> None:
    """How its wakeup began, and how it ended."""
    goal = park.goal(mark(), done())

    assert park.tick(park.server()) == [1]

    assert park.kinds == ["claimed", "ended"]
    claimed, ended = park.events
    assert claimed.data == {
        "goal": goal.uid,
        "wakeup": 1,
        "why": "created",
        "due_at": "2030-01-01T00:00:00+00:00",
    }
    assert (ended.data["exit_reason"], ended.data["turns"]) == ("CURRENT_TASK_DONE", 2)


def test_a_goal_that_is_done_is_left_alone(park: Park) -> None:
    """B08: no further request, in this wakeup or in the next three intervals."""
    goal = park.goal(mark(), mark("ls"), mark("pwd"), done(), mark())
    server = park.server()
    park.tick(server)

    assert park.intervals(server, 3) == 0
    assert park.endings(goal) == ["CURRENT_TASK_DONE"]
    assert park.requests(goal) == 4


def test_a_spent_turn_quota_is_no_failure(park: Park) -> None:
    """B19: the goal goes on in the next wakeups, by itself, until it is done."""
    saved = call("update_working_checkpoint", key_info="five more")
    twelve = [mark(f"echo {n} >> marks") for n in range(12)]
    goal = park.goal(*twelve[:5], saved, *twelve[5:10], saved, *twelve[10:], done(), max_turns=5)

    park.intervals(park.server(), 4, seconds=1)

    assert park.endings(goal) == ["MAX_TURNS_EXCEEDED", "MAX_TURNS_EXCEEDED", "CURRENT_TASK_DONE"]
    assert park.marks() == 12


def test_a_question_is_waited_for_and_its_answer_wakes_once(park: Park) -> None:
    """B122: no request while the goal waits; the answer starts exactly one wakeup, which knows both."""
    goal = park.goal(mark(), mark("ls"), mark("pwd"), asks(), done())
    server = park.server()
    park.tick(server)
    assert park.status(goal) is GoalStatus.WAITING_USER

    assert park.intervals(server, 5) == 0
    assert park.requests(goal) == 4
    answer_question(park.store, park.now(goal), "Blue.")
    assert park.intervals(server, 3) == 1

    assert park.endings(goal) == ["NEEDS_USER_INPUT", "CURRENT_TASK_DONE"]
    context = str(park.scripts[goal.id].requests[-1].messages)
    assert "Red or blue?" in context
    assert "Blue." in context


def test_a_default_answers_when_its_time_has_come(park: Park) -> None:
    """Found by its own index; the goal goes on by itself, once."""
    asked = call(
        "complete",
        status="needs_user_input",
        summary="Stuck.",
        missing_info="Red or blue?",
        why_no_default="Taste.",
        default="Red.",
        default_after_seconds=3600,
    )
    goal = park.goal(mark(), asked, done())
    server = park.server()
    park.tick(server)
    assert park.intervals(server, 59) == 0

    assert park.intervals(server, 1) == 1

    assert park.endings(goal) == ["NEEDS_USER_INPUT", "CURRENT_TASK_DONE"]


def test_the_longest_due_are_woken_first_and_no_more_than_wanted(park: Park) -> None:
    """Two at a time, in the order in which they became due: nobody starves."""
    made = []
    for _ in range(6):
        made.append(park.goal(park.beside(mark()), done()))
        park.clock.advance(1)
    server = park.server(concurrency=2)

    looks = [park.tick(server) for _ in range(4)]

    assert looks == [[2], [2], [2], [0]]
    claimed = [told["goal"] for told in park.told("claimed")]
    for pair in range(0, 6, 2):
        assert sorted(claimed[pair : pair + 2]) == sorted(uids(made[pair : pair + 2]))
    assert park.most_at_once == 2


def test_goals_that_come_back_at_once_do_not_starve_the_others(park: Park) -> None:
    """One that is due again right after its wakeup stands behind those that were due before."""
    busy = park.goal(*[mark(f"echo {n}") for n in range(9)], max_turns=1)
    others = [park.goal(mark(), done()) for _ in range(3)]
    park.clock.advance(1)
    server = park.server(concurrency=1)
    for _ in range(4):
        park.tick(server)
        park.clock.advance(1)

    assert [told["goal"] for told in park.told("claimed")] == [busy.uid, *uids(others)]


def test_a_goal_whose_model_is_not_configured_is_passed_over(park: Park) -> None:
    """It is told of once, tried again later and later, and holds up nobody; once it works it is woken."""
    bad, good = park.goal(mark(), done()), park.goal(mark(), done())
    park.broken[bad.id] = BadInput("model", "nobody", "a model")
    server = park.server(concurrency=1)

    park.tick(server)
    park.tick(server)

    assert park.endings(good) == ["CURRENT_TASK_DONE"]
    [told] = park.told("skipped")
    assert told == {
        "goal": bad.uid,
        "reason": "BadInput",
        "detail": "model: 'nobody' is not valid: a model",
    }
    started = [park.tick(server)[0] for _ in range(20) if park.clock.advance(4) is None]
    assert sum(started) == 4  # After 5, 10, 20 and 40 seconds.
    assert len(park.told("skipped")) == 1
    park.broken.clear()
    park.intervals(server, 2, seconds=60)
    assert park.endings(bad) == ["CURRENT_TASK_DONE"]


def test_another_cause_is_told_again(park: Park) -> None:
    """The user sees that something has changed."""
    goal = park.goal(mark(), done())
    server = park.server()
    for cause in ("one", "one", "two"):
        park.broken[goal.id] = BadInput("model", cause, "a model")
        park.clock.advance(60)
        park.tick(server)

    assert [told["detail"].split("'")[1] for told in park.told("skipped")] == ["one", "two"]


def test_an_error_of_our_own_stops_no_server(park: Park) -> None:
    """It is this goal's trouble."""
    goal, other = park.goal(), park.goal(mark(), done())
    park.broken[goal.id] = ZeroDivisionError("by zero")

    park.tick(park.server())

    assert park.endings(other) == ["CURRENT_TASK_DONE"]
    [told] = park.told("skipped")
    assert (told["reason"], told["detail"]) == ("goalmode itself failed", "ZeroDivisionError: by zero")


def test_a_goal_of_unknown_shape_stops_no_server(park: Park) -> None:
    """It is named, and others are woken."""
    goal, other = park.goal(), park.goal(mark(), done())
    rows(park.store, "UPDATE goals SET settings = ? WHERE id = ?", '{"v": 1, "policy": "odd"}', goal.id)

    park.tick(park.server())

    assert park.endings(other) == ["CURRENT_TASK_DONE"]
    [told] = park.told("skipped")
    assert told["reason"] == "StoreUnreadable"
    assert "settings.policy" in told["detail"]


@pytest.mark.sqlite
def test_a_wake_source_that_nobody_can_read_stops_no_server(park: Park) -> None:
    """It is told of once; goals are woken without it, and its own goal is named."""
    goal, other = park.goal(), park.goal(mark(), done())
    schedule(park.store, goal, on_file(park.store, goal, "go"))
    rows(park.store, "UPDATE wake_sources SET ceiling_at = 'soon'")
    server = park.server()

    park.intervals(server, 2)

    assert park.endings(other) == ["CURRENT_TASK_DONE"]
    [told] = park.told("store")
    assert told["detail"] == f"goal {goal.uid}: wake source S1: ceiling_at is 'soon', a time was expected"
    resume_goal(park.store, park.now(goal))
    park.intervals(server, 1)
    assert [told["reason"] for told in park.told("skipped")] == ["StoreUnreadable"]


@pytest.mark.sqlite
def test_what_nobody_can_read_is_told_once_the_store_is_free_again(
    park: Park, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look that fails after it was found does not take the word of it along."""
    goal = park.goal()
    schedule(park.store, goal, on_file(park.store, goal, "go"))
    rows(park.store, "UPDATE wake_sources SET ceiling_at = 'soon'")
    look = Lookout(park.store, [park.store.owner.host_label])

    def busy(*_: object) -> list[object]:
        raise StoreError("store x: is busy")

    with monkeypatch.context() as patch:
        patch.setattr(lookout, "fire_what_came", busy)
        with pytest.raises(StoreError):
            look.watch()

    assert [event.kind for event in look.watch()] == ["store"]
    assert look.watch() == []


def test_paused_and_foreign_goals_are_no_business_of_it(park: Park, store: Store) -> None:
    """Nothing is said of them either."""
    paused, foreign = park.goal(), park.goal()
    stop_goal(store, paused, Control.PAUSE)
    rows(store, "UPDATE goals SET host_label = 'elsewhere' WHERE id = ?", foreign.id)

    assert park.tick(park.server()) == [0]
    assert park.events == []


def test_a_label_may_be_served_for_another_host(park: Park, store: Store) -> None:
    """Only where its owner says that it reaches the workspaces."""
    goal = park.goal(mark(), done())
    rows(store, "UPDATE goals SET host_label = 'elsewhere'")

    park.tick(park.server(labels=["elsewhere"]))
    assert [told["reason"] for told in park.told("skipped")] == ["other_host"]
    store.owner = replace(store.owner, serves=frozenset({"elsewhere"}))
    park.clock.advance(60)
    park.tick(park.server(labels=["elsewhere"]))

    assert park.endings(goal) == ["CURRENT_TASK_DONE"]


def test_what_a_dead_owner_left_is_recovered_and_goes_on(park: Park, store: Store) -> None:
    """After its lease; told by the one who died."""
    goal = park.goal(mark(), done())
    claim(store, goal)
    server = park.server()
    assert park.tick(server) == [0]
    park.clock.advance(LEASE_MS / 1000 + 1)

    park.tick(server)

    assert park.endings(goal) == ["INTERRUPTED", "CURRENT_TASK_DONE"]
    assert park.told("claimed")[0]["why"] == f"{store.owner.name} ended in wakeup 1"


def test_what_a_dead_owner_left_of_a_paused_goal_is_closed(park: Park, store: Store) -> None:
    """Without waking it; told once."""
    goal = park.goal()
    claim(store, goal)
    stop_goal(store, goal, Control.PAUSE)
    park.clock.advance(LEASE_MS / 1000 + 1)
    server = park.server()

    park.intervals(server, 3)

    assert park.endings(goal) == ["INTERRUPTED"]
    assert park.status(goal) is GoalStatus.PAUSED
    assert park.kinds == ["recovered"]


@pytest.mark.long
def test_two_servers_at_the_same_moment(park: Park) -> None:
    """B52: one goal due now, then twenty, a hundred looks of both: each wakeup starts once, and both live."""
    lone = park.goal(mark(), done())
    servers = park.server(concurrency=20), park.server(concurrency=20)
    park.tick(*servers)
    assert park.endings(lone) == ["CURRENT_TASK_DONE"]
    twenty = [park.goal(mark(), done()) for _ in range(20)]

    for _ in range(100):
        park.tick(*servers)

    assert [park.endings(goal) for goal in twenty] == [["CURRENT_TASK_DONE"]] * 20
    assert park.wakeups() == 21
    assert len(park.told("claimed")) == 21
    assert {event.kind for event in park.events} == {"claimed", "ended"}


def test_a_wakeup_that_was_missed_is_done_once(park: Park) -> None:
    """A schedule of every minute, and nobody there for a day."""
    goal = park.goal(*[mark(f"echo {n} >> marks") for n in range(5)], max_turns=1)
    schedule(park.store, goal, every("1m", park.clock.now()))
    park.clock.advance(86_400)
    server = park.server()

    assert park.intervals(server, 1, seconds=1) == 1
    assert park.intervals(server, 1, seconds=1) == 0
    assert park.now(goal).next_wakeup_at > park.clock.now()


def test_a_schedule_ticks_once_an_interval(park: Park) -> None:
    """Three intervals, three wakeups."""
    goal = park.goal(*[mark(f"echo {n} >> marks") for n in range(9)], max_turns=1)
    schedule(park.store, goal, every("1m", park.clock.now()))

    assert park.intervals(park.server(), 3) == 3
    assert park.marks() == 3


def test_files_and_goals_are_watched(park: Park) -> None:
    """What came is told, and the goal is woken by the same look."""
    first, second, third = park.goal(mark(), done()), park.goal(mark(), done()), park.goal(mark(), done())
    schedule(park.store, first, on_file(park.store, first, "go"))
    schedule(park.store, second, on_goal(park.store, first.uid))
    schedule(park.store, third, on_goal(park.store, second.uid))
    server = park.server()
    assert park.intervals(server, 3) == 0

    (park.workspace / "go").touch()
    assert park.intervals(server, 3) == 3

    assert [told["reason"] for told in park.told("source")] == [
        "S1: file go is created",
        f"S1: goal {first.uid} is DONE",
        f"S1: goal {second.uid} is DONE",
    ]
    assert [told["goal"] for told in park.told("claimed")] == uids([first, second, third])


def test_many_sources_are_watched_in_turn(park: Park, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look asks about a bounded number; the following ones go on behind them."""
    monkeypatch.setattr(lookout, "LOOKED_AT", 2)
    made = [park.goal(mark(), done()) for _ in range(5)]
    for number, goal in enumerate(made):
        schedule(park.store, goal, on_file(park.store, goal, f"go{number}"))
    (park.workspace / "go4").touch()
    server = park.server()

    started = [park.tick(server)[0] for _ in range(3)]

    assert started == [0, 0, 1]
    (park.workspace / "go0").touch()
    assert park.intervals(server, 3) == 1


def test_a_goal_that_somebody_else_runs_is_waited_for_quietly(park: Park, store: Store) -> None:
    """By another process that gives signs of life: no line, no attempt."""
    goal = park.goal()
    wake = begin(store, goal)

    assert park.intervals(park.server(), 3, seconds=1) == 0
    assert park.events == []
    wake.let_go()


def test_a_store_that_cannot_be_read_is_the_callers_to_tell(
    park: Park, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look raises; a serving server goes on (see test_serving)."""

    def fails(*_: object, **__: object) -> list[object]:
        raise StoreError("store x: the disk is full")

    monkeypatch.setattr(due, "abandoned", fails)
    with pytest.raises(BaseException) as caught:
        park.tick(park.server())

    assert caught.group_contains(StoreError, match="the disk is full")


def test_a_resumed_goal_is_woken_without_further_action(park: Park) -> None:
    """Pausing stops it for all servers, resuming starts it again."""
    goal = park.goal(mark(), done())
    stop_goal(park.store, goal, Control.PAUSE)
    server = park.server()
    assert park.intervals(server, 10) == 0

    resume_goal(park.store, park.now(goal))

    assert park.intervals(server, 2) == 1


def test_bad_endings_space_wakeups_out_and_end_in_blocked(park: Park) -> None:
    """Idle prose: three wakeups, further and further apart, and then none."""
    goal = park.goal(*[say("All done.") for _ in range(9)])
    server = park.server()
    times = []
    for _ in range(60):
        before = park.wakeups()
        park.tick(server)
        times += [park.clock.now()] * (park.wakeups() - before)
        park.clock.advance(10)

    assert park.status(goal) is GoalStatus.BLOCKED
    gaps = [(later - earlier) for earlier, later in pairwise(times)]
    assert len(gaps) == 2
    assert timedelta(seconds=30) <= gaps[0] < gaps[1]
