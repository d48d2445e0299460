"""Wake sources at work: each comes once, at its time or when it is seen, and what follows for the goal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from goalmode.domain.exits import Exit, ExitReason, GoalStatus, SkipReason
from goalmode.domain.goal import Control, Goal, GoalSpec
from goalmode.domain.signals import ErrorKind
from goalmode.domain.wake import Planned, WakeSource
from goalmode.errors import StoreUnreadable
from goalmode.orchestrator.goals import create_goal, delete_goal, edit_goal, resume_goal, stop_goal
from goalmode.orchestrator.schedule import at_time, by_cron, every, on_file, on_goal, on_process, schedule
from goalmode.orchestrator.sources import fire_what_came, notice
from goalmode.state import wake_sources
from goalmode.state.store import Store
from goalmode.testing import ManualClock
from tests.orchestrator.builders import DONE, GO_ON, STOPPED_EARLY, attempt, begin, new_goal, now, skipped
from tests.state.builders import rows

HOUR = timedelta(hours=1)


@pytest.fixture
def hourly(store: Store, goal: Goal, clock: ManualClock) -> Goal:
    schedule(store, goal, every("1h", clock.now()))
    return goal


def source(store: Store, goal: Goal, number: int = 1) -> WakeSource:
    with store.reading() as connection:
        return wake_sources.of_goal(connection, goal)[number - 1]


def look(store: Store) -> list[str]:
    """What a server does with the sources that only looking tells of; returns the reasons."""
    with store.reading() as connection:
        found, _, _ = wake_sources.to_watch(connection, [store.owner.host_label], beyond=0, limit=100)
    return [firing.reason for firing in fire_what_came(store, found)]


def ends(store: Store, goal: Goal, exit: Exit = GO_ON) -> Goal:
    """One wakeup of a due goal, with this ending."""
    begin(store, goal).close(exit)
    return now(store, goal)


def test_a_tick_wakes_once_and_the_next_one_follows(store: Store, hourly: Goal, clock: ManualClock) -> None:
    """Not before its time; the goal is then held until the next tick, whatever its ending says."""
    clock.advance(3599)
    assert skipped(attempt(store, hourly)) is SkipReason.NOT_DUE
    clock.advance(1)

    after = ends(store, hourly)

    assert after.next_wakeup_at == clock.now() + HOUR
    assert after.wake_reason == "waits for S1: every 1 h"
    assert source(store, hourly).fired_at == clock.now()


def test_missed_ticks_are_made_up_for_once(store: Store, hourly: Goal, clock: ManualClock) -> None:
    """A server that was away for a day and a bit wakes the goal once, and the series keeps its step."""
    start = clock.now()
    clock.advance(26.5 * 3600)

    after = ends(store, hourly)

    assert after.next_wakeup_at == start + 27 * HOUR
    assert len(rows(store, "SELECT id FROM wakeups")) == 1


def test_a_tick_that_comes_while_the_goal_runs_is_made_up_for(
    store: Store, hourly: Goal, clock: ManualClock
) -> None:
    """Once, right afterwards."""
    clock.advance(3600)
    wake = begin(store, hourly)
    clock.advance(2.5 * 3600)
    wake.close(GO_ON)
    assert now(store, hourly).next_wakeup_at <= clock.now()

    after = ends(store, hourly)

    assert after.next_wakeup_at == clock.now() + HOUR / 2
    assert len(rows(store, "SELECT id FROM wakeups")) == 2


@pytest.mark.parametrize("ending", [GO_ON, STOPPED_EARLY, Exit(ExitReason.YIELDED, "", {"waited": False})])
def test_a_schedule_takes_the_place_of_now_and_of_back_offs(
    store: Store, hourly: Goal, clock: ManualClock, ending: Exit
) -> None:
    """The goal is due at its ticks only."""
    clock.advance(3600)

    assert ends(store, hourly, ending).next_wakeup_at == clock.now() + HOUR


@pytest.mark.parametrize(("seconds", "reason"), [(60, "asked time"), (7200, "waits for S1: every 1 h")])
def test_a_wait_of_the_model_counts_beside_a_schedule(
    store: Store, hourly: Goal, clock: ManualClock, seconds: int, reason: str
) -> None:
    """The earlier one wakes the goal: both were asked for."""
    clock.advance(3600)
    wake_at = clock.now() + timedelta(seconds=seconds)

    after = ends(store, hourly, Exit(ExitReason.YIELDED, "", {"waited": True}, wake_at=wake_at))

    assert after.next_wakeup_at == min(wake_at, clock.now() + HOUR)
    assert after.wake_reason == reason


def failed(wake_at: Any = None) -> Exit:
    kind = ErrorKind.QUOTA if wake_at else ErrorKind.SERVER
    return Exit(ExitReason.BACKEND_ERROR, "503", {"kind": kind.value}, wake_at=wake_at)


def test_a_wakeup_that_was_cut_off_is_retried_all_the_same(
    store: Store, hourly: Goal, clock: ManualClock
) -> None:
    """A provider that fails for a minute does not cost the tick."""
    clock.advance(3600)

    after = ends(store, hourly, failed())

    assert after.wake_reason == "back-off"
    assert after.next_wakeup_at <= clock.now() + timedelta(seconds=40)


def test_a_known_reset_is_waited_for_over_ticks(store: Store, hourly: Goal, clock: ManualClock) -> None:
    """Waking the goal before would only fail again; the ticks that passed are made up for by the retry."""
    clock.advance(3600)
    reset = clock.now() + 5 * HOUR + HOUR / 2
    after = ends(store, hourly, failed(reset))
    assert after.next_wakeup_at == reset
    clock.advance(5.5 * 3600)

    assert ends(store, hourly).next_wakeup_at == clock.now() + HOUR / 2


def test_a_requested_interruption_goes_on_at_once(store: Store, hourly: Goal, clock: ManualClock) -> None:
    """A server that is restarted finishes what it had begun."""
    clock.advance(3600)

    after = ends(store, hourly, Exit(ExitReason.INTERRUPTED, "SIGTERM", {"requested": True}))

    assert after.next_wakeup_at == clock.now()


@pytest.mark.parametrize("stopped", [Control.PAUSE, None])
def test_a_goal_that_is_not_active_is_not_woken(
    store: Store, hourly: Goal, clock: ManualClock, stopped: Control | None
) -> None:
    """Paused, done or otherwise: its ticks pass. When it is active again, one is made up for by the wakeup it gets."""
    if stopped is None:
        clock.advance(3600)
        ends(store, hourly, DONE)
    else:
        stop_goal(store, hourly, stopped)
    clock.advance(5 * 3600)
    assert skipped(attempt(store, hourly)) in (SkipReason.PAUSED, SkipReason.DONE)
    assert not notice(store, hourly.id)

    goal = now(store, hourly)
    resume_goal(store, goal) if stopped else edit_goal(store, goal, objective="More.")
    after = ends(store, hourly)

    assert after.next_wakeup_at == clock.now() + HOUR


def test_a_time_comes_once(store: Store, goal: Goal, clock: ManualClock) -> None:
    """Then the goal goes on by the rules of its endings."""
    schedule(store, goal, at_time((clock.now() + HOUR).isoformat(), clock.now()))
    clock.advance(3600)

    after = ends(store, goal)

    assert (after.next_wakeup_at, after.wake_reason) == (clock.now(), "MAX_TURNS_EXCEEDED")
    assert source(store, goal).status == "fired"


def test_a_cron_line_goes_on_in_its_zone(store: Store, goal: Goal, clock: ManualClock) -> None:
    """The tick after a change of clocks is at the same time of day."""
    schedule(store, goal, by_cron("0 9 * * 0", "Europe/Berlin", clock.now()))
    clock.advance(0, wall=(source(store, goal).due_at - clock.now()).total_seconds() + 11 * 7 * 86_400)
    assert clock.now().isoformat() == "2030-03-24T08:00:00+00:00"

    after = ends(store, goal)

    assert after.next_wakeup_at.isoformat() == "2030-03-31T07:00:00+00:00"


def test_the_reason_of_a_wakeup_is_what_came(store: Store, hourly: Goal, clock: ManualClock) -> None:
    """It is stored before the context is rendered."""
    clock.advance(3600)

    assert begin(store, hourly).goal.wake_reason == "S1: every 1 h, due 2030-01-01T01:00:00+00:00"


def waits_for_file(store: Store, goal: Goal) -> None:
    schedule(store, goal, on_file(store, goal, "data.csv"))


@pytest.mark.parametrize("change", ["appended", "replaced", "touched"])
def test_a_file_that_changes_wakes_the_goal(store: Store, goal: Goal, workspace: Path, change: str) -> None:
    """By its size, its time, or because another took its place."""
    path = workspace / "data.csv"
    path.write_text("a")
    info = path.stat()
    waits_for_file(store, goal)
    assert look(store) == []

    match change:
        case "appended":
            path.write_text("ab")
            os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))
        case "replaced":
            other = workspace / "other"
            other.write_text("b")
            os.utime(other, ns=(info.st_atime_ns, info.st_mtime_ns))
            other.replace(path)
        case "touched":
            os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns + 1))

    assert look(store) == ["S1: file data.csv is changed"]
    assert look(store) == []
    assert now(store, goal).wake_reason == "S1: file data.csv is changed"
    assert begin(store, goal)


def test_a_file_that_is_created_wakes_the_goal(store: Store, goal: Goal, workspace: Path) -> None:
    """In a directory that was not there either."""
    schedule(store, goal, on_file(store, goal, "out/data.csv"))
    assert look(store) == []
    (workspace / "out").mkdir()
    assert look(store) == []

    (workspace / "out" / "data.csv").touch()

    assert look(store) == ["S1: file out/data.csv is created"]


def test_a_file_that_is_deleted_is_no_change(store: Store, goal: Goal, workspace: Path) -> None:
    """It may come again, and then it is one."""
    path = workspace / "data.csv"
    path.write_text("a")
    waits_for_file(store, goal)
    path.unlink()
    assert look(store) == []

    path.write_text("other")

    assert len(look(store)) == 1


def test_a_link_out_of_the_workspace_is_no_file(store: Store, goal: Goal, workspace: Path) -> None:
    """What is outside is not looked at."""
    waits_for_file(store, goal)
    (workspace / "data.csv").symlink_to("/etc/passwd")

    assert look(store) == []


def test_a_process_that_ended_wakes_the_goal(store: Store, goal: Goal) -> None:
    """Not as long as it runs."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    schedule(store, goal, on_process(store, goal, process.pid))
    assert look(store) == []

    process.communicate()

    assert look(store) == [f"S1: process {process.pid} ended"]


def test_another_process_with_its_pid_does_not_count(store: Store, goal: Goal) -> None:
    """A recycled number is a later process: the one that was meant has ended. So it has with another boot."""
    schedule(store, goal, on_process(store, goal, os.getpid()))
    assert look(store) == []
    other = {"v": 1, "pid": os.getpid(), "start": "1", "boot_id": store.owner.boot_id}
    rows(store, "UPDATE wake_sources SET spec = ?", json.dumps(other))

    assert look(store) == [f"S1: process {os.getpid()} ended"]


def test_a_process_of_another_container_is_waited_for_until_the_ceiling(
    store: Store, goal: Goal, clock: ManualClock
) -> None:
    """Its number means nothing here: that nobody has it is no sign that it ended."""
    schedule(store, goal, on_process(store, goal, os.getpid(), HOUR))
    elsewhere = {"v": 1, "pid": 4_194_999, "start": "1@1", "boot_id": store.owner.boot_id}
    rows(store, "UPDATE wake_sources SET spec = ?", json.dumps(elsewhere))
    assert look(store) == []

    clock.advance(3600)

    assert begin(store, goal).goal.wake_reason.startswith("S1: ceiling ")


@pytest.mark.parametrize("over", ["done", "aborted", "deleted"])
def test_another_goal_that_is_over_wakes_the_goal(
    store: Store, goal: Goal, workspace: Path, over: str
) -> None:
    """The reason says how it is over; paused or blocked it is not."""
    other = new_goal(store, workspace)
    schedule(store, goal, on_goal(store, other.uid))
    stop_goal(store, other, Control.PAUSE)
    assert look(store) == []
    resume_goal(store, now(store, other))

    match over:
        case "done":
            begin(store, other).close(DONE)
        case "aborted":
            stop_goal(store, other, Control.ABORT)
        case "deleted":
            delete_goal(store, other)

    word = over if over == "deleted" else over.upper()
    assert look(store) == [f"S1: goal {other.uid} is {word}"]


@pytest.mark.parametrize("kind", ["file", "process", "goal"])
def test_a_ceiling_wakes_the_goal_anyway_and_says_so(
    store: Store, goal: Goal, workspace: Path, clock: ManualClock, kind: str
) -> None:
    """Not a second earlier, and without anybody having to look: the goal is simply due."""
    made: dict[str, Callable[[], Planned]] = {
        "file": lambda: on_file(store, goal, "never", HOUR),
        "process": lambda: on_process(store, goal, os.getpid(), HOUR),
        "goal": lambda: on_goal(store, new_goal(store, workspace).uid, HOUR),
    }
    waited = schedule(store, goal, made[kind]())
    clock.advance(3599)
    assert skipped(attempt(store, goal)) is SkipReason.NOT_DUE
    clock.advance(1)

    wake = begin(store, goal)

    said = f"S1: ceiling 2030-01-01T01:00:00+00:00 reached, but not: {waited.spec}"
    assert wake.goal.wake_reason == said
    assert source(store, goal).status == "fired"


def test_a_new_goal_may_wait_from_the_start(store: Store, goal: Goal, workspace: Path) -> None:
    """There is no moment at which somebody could wake it before the other one is over."""
    spec = GoalSpec("Go on.", str(workspace))
    chained = create_goal(store, spec, waits_for=[on_goal(store, goal.uid)])
    assert skipped(attempt(store, chained)) is SkipReason.NOT_DUE

    begin(store, goal).close(DONE)

    assert begin(store, chained).goal.wake_reason == f"S1: goal {goal.uid} is DONE"


def test_what_comes_while_the_goal_runs_waits_for_its_end(
    store: Store, goal: Goal, workspace: Path, clock: ManualClock
) -> None:
    """A source is not used up by a wakeup that began before."""
    waits_for_file(store, goal)
    wake = begin(store, goal, only_if_due=False)
    (workspace / "data.csv").write_text("a")
    assert look(store) == []
    wake.close(GO_ON)
    assert now(store, goal).next_wakeup_at > clock.now()

    assert look(store) == ["S1: file data.csv is created"]


def test_what_a_user_does_makes_a_scheduled_goal_due_at_once(
    store: Store, hourly: Goal, clock: ManualClock
) -> None:
    """A resume is now; the schedule goes on after it."""
    resume_goal(store, now(store, hourly))

    assert ends(store, hourly).next_wakeup_at == clock.now() + HOUR


def test_two_who_see_it_fire_it_once(store: Store, hourly: Goal, clock: ManualClock) -> None:
    """The second one finds it fired: the tick counts once."""
    clock.advance(3600)
    with store.reading() as connection:
        seen = wake_sources.open_of(connection, hourly.id)

    assert len(fire_what_came(store, seen)) == 1
    assert fire_what_came(store, seen) == []
    assert rows(store, "SELECT kind FROM events ORDER BY id") == ["scheduled", "wake_source"]


def test_one_who_dies_after_firing_loses_nothing(store: Store, hourly: Goal, clock: ManualClock) -> None:
    """The goal is due, by a reason that is stored, for whoever comes next."""
    clock.advance(3600)
    assert notice(store, hourly.id)

    clock.advance(1)
    wake = begin(store, hourly)

    assert wake.goal.wake_reason.startswith("S1: every 1 h, due")
    wake.close(GO_ON)
    assert len(rows(store, "SELECT id FROM wakeups")) == 1


def test_a_source_of_unknown_shape_harms_only_its_goal(
    store: Store, hourly: Goal, workspace: Path, clock: ManualClock
) -> None:
    """It is named when its goal is woken; others are watched and woken."""
    other = new_goal(store, workspace)
    waits_for_file(store, hourly)
    waits_for_file(store, other)
    rows(store, "UPDATE wake_sources SET spec = ? WHERE goal = ?", '{"v": 1}', hourly.id)
    (workspace / "data.csv").write_text("a")
    clock.advance(3600)

    assert look(store) == ["S1: file data.csv is created"]
    assert begin(store, other)
    with pytest.raises(StoreUnreadable, match=f"goal {hourly.uid}: wake source S1 is of another shape"):
        attempt(store, hourly)
    assert now(store, hourly).status is GoalStatus.ACTIVE
