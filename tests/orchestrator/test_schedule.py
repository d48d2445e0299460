"""What users may schedule: each kind is checked before it is stored, and a refused one changes nothing."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Control, Goal
from goalmode.domain.wake import (
    CEILING,
    MAX_SOURCES,
    Every,
    FileChange,
    FileMark,
    GoalEnd,
    Planned,
    ProcessEnd,
)
from goalmode.errors import BadInput, NotAllowed, UnknownGoal
from goalmode.orchestrator.goals import stop_goal
from goalmode.orchestrator.schedule import (
    at_time,
    by_cron,
    every,
    on_file,
    on_goal,
    on_process,
    parse_ceiling,
    schedule,
    unschedule,
)
from goalmode.state import wake_sources
from goalmode.state.store import Store
from goalmode.testing import ManualClock
from tests.orchestrator.builders import DONE, begin, new_goal, now
from tests.state.builders import rows


def labels(store: Store, goal: Goal) -> list[str]:
    with store.reading() as connection:
        return [source.label for source in wake_sources.of_goal(connection, goal, only_open=True)]


def test_a_scheduled_goal_is_due_when_its_source_comes(store: Store, goal: Goal, clock: ManualClock) -> None:
    """Not now any more, and the reason says what it waits for."""
    source = schedule(store, goal, every("2h", clock.now()))

    waits = now(store, goal)
    assert source.due_at == waits.next_wakeup_at == clock.now() + timedelta(hours=2)
    assert waits.wake_reason == "waits for S1: every 2 h"


def test_the_first_of_several_counts(store: Store, goal: Goal, clock: ManualClock) -> None:
    """Whichever was asked for first; a ceiling counts like any other time."""
    schedule(store, goal, every("2h", clock.now()))
    schedule(store, goal, at_time((clock.now() + timedelta(hours=1)).isoformat(), clock.now()))
    schedule(store, goal, on_file(store, goal, "a", timedelta(minutes=30)))
    schedule(store, goal, every("3h", clock.now()))

    assert labels(store, goal) == ["S1", "S2", "S3", "S4"]
    assert now(store, goal).next_wakeup_at == clock.now() + timedelta(minutes=30)
    assert now(store, goal).wake_reason.startswith("waits for S3: file a is created, or 2030-01-01T00:30")


def test_removing_leaves_the_others(store: Store, goal: Goal, clock: ManualClock) -> None:
    """The goal is due by what is left, and at once when nothing is."""
    schedule(store, goal, every("1h", clock.now()))
    schedule(store, goal, every("2h", clock.now()))

    unschedule(store, goal, "S1")
    assert now(store, goal).next_wakeup_at == clock.now() + timedelta(hours=2)
    unschedule(store, goal, "2")
    assert (now(store, goal).next_wakeup_at, now(store, goal).wake_reason) == (clock.now(), "unscheduled")
    with pytest.raises(BadInput, match=r"the number of an open wake source of goal .*: it has none"):
        unschedule(store, goal, "S1")


def test_removing_one_that_did_not_decide_moves_nothing(store: Store, goal: Goal, clock: ManualClock) -> None:
    """The goal keeps the time it has by the other one."""
    schedule(store, goal, every("1h", clock.now()))
    schedule(store, goal, every("2h", clock.now()))

    unschedule(store, goal, "s2")

    assert now(store, goal).next_wakeup_at == clock.now() + timedelta(hours=1)


@pytest.mark.parametrize("text", ["0", "29s", "-5m", "-1", "", "x", "36500d", "1e30", "inf", "nan"])
def test_spans_too_short_too_long_or_none(text: str, clock: ManualClock) -> None:
    """From 30 s to ten years, for intervals and for ceilings."""
    for parse, field in (
        (lambda: every(text, clock.now()), "every"),
        (lambda: parse_ceiling(text), "ceiling"),
    ):
        with pytest.raises(BadInput, match=f"^{field}: .* a time span from 30 s to 10 years"):
            parse()


@pytest.mark.parametrize(
    ("text", "seconds"), [("30", 30), ("30s", 30), ("90m", 5400), ("3653d", 3653 * 86_400)]
)
def test_spans_at_the_edges(text: str, seconds: int, clock: ManualClock) -> None:
    """Both are allowed."""
    assert every(text, clock.now()) == Planned(Every(seconds), clock.now() + timedelta(seconds=seconds))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2029-12-31T23:59:59Z", "a time in the future"),
        ("2030-01-01T00:00:00Z", "a time in the future"),
        ("2130-01-01", "a time within 10 years"),
        ("9999-12-31T23:59-14:00", "a time within 10 years"),
        ("soon", "an ISO time"),
    ],
)
def test_times_behind_or_too_far_ahead(text: str, expected: str, clock: ManualClock) -> None:
    """Nobody waits for a hundred years."""
    with pytest.raises(BadInput, match=f"^at: .* is not valid: {expected}"):
        at_time(text, clock.now())


def test_a_time_keeps_its_offset(clock: ManualClock) -> None:
    """It is shown as it was given."""
    assert str(at_time("2030-06-01T09:00+05:30", clock.now()).spec) == "at 2030-06-01T09:00:00+05:30"


def test_a_cron_line_is_due_at_its_first_moment(store: Store, goal: Goal, clock: ManualClock) -> None:
    """In its own zone: the clock stands at midnight UTC."""
    schedule(store, goal, by_cron("0 9 * * *", "Asia/Tokyo", clock.now()))

    assert now(store, goal).next_wakeup_at == clock.now() + timedelta(days=1)


def test_a_file_is_known_as_it_is_now(store: Store, goal: Goal, workspace: Path, clock: ManualClock) -> None:
    """One that is not there yet may come; its ceiling is a week unless it is said."""
    (workspace / "a.txt").write_text("one")
    info = (workspace / "a.txt").stat()

    there, absent = on_file(store, goal, "./a.txt"), on_file(store, goal, "sub/b.txt", timedelta(hours=1))

    assert there == Planned(
        FileChange("a.txt", FileMark(3, info.st_mtime_ns, info.st_ino)), None, clock.now() + CEILING
    )
    assert absent == Planned(FileChange("sub/b.txt"), None, clock.now() + timedelta(hours=1))


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", ".", "sub", "a\x00b", "https://x/y"])
def test_what_is_no_file_of_the_workspace_is_refused(
    store: Store, goal: Goal, workspace: Path, path: str
) -> None:
    """In one line that names the field."""
    (workspace / "sub").mkdir()

    with pytest.raises(BadInput, match=r"^file: "):
        on_file(store, goal, path)


@pytest.mark.parametrize("pid", [0, -1, 999_999_999])
def test_a_process_that_does_not_exist_is_refused(store: Store, goal: Goal, pid: int) -> None:
    """Its end would have come already, or another's would."""
    with pytest.raises(BadInput, match=r"^pid: .* the number of a process that runs on this machine"):
        on_process(store, goal, pid)


def test_a_process_is_known_by_its_start(store: Store, goal: Goal) -> None:
    """And by the boot it belongs to."""
    spec = on_process(store, goal, os.getpid()).spec

    assert isinstance(spec, ProcessEnd)
    assert (spec.pid, spec.start) == (os.getpid(), store.owner.pid_start)
    assert spec.boot_id == store.owner.boot_id


def test_files_and_processes_are_looked_at_where_the_workspace_is(store: Store, goal: Goal) -> None:
    """Elsewhere the same path, or number, means something else."""
    elsewhere = replace(goal, host_label="another-machine")

    for ask in (lambda: on_file(store, elsewhere, "a"), lambda: on_process(store, elsewhere, os.getpid())):
        with pytest.raises(BadInput, match="one on another-machine, where the goal's workspace is"):
            ask()


def test_a_goal_waits_for_another(store: Store, goal: Goal, workspace: Path, clock: ManualClock) -> None:
    """By the beginning of its id, like everywhere."""
    other = new_goal(store, workspace)

    planned = on_goal(store, other.uid[:8])

    assert planned == Planned(GoalEnd(other.id, other.uid), None, clock.now() + CEILING)
    with pytest.raises(UnknownGoal):
        on_goal(store, "zzzz")


def test_an_aborted_goal_is_not_waited_for(store: Store, goal: Goal, workspace: Path) -> None:
    """Nothing comes of it."""
    other = new_goal(store, workspace)
    stop_goal(store, other, Control.ABORT)

    with pytest.raises(BadInput, match=r"^after: .* this one is aborted"):
        on_goal(store, other.uid)


def test_a_chain_that_loops_is_refused(store: Store, workspace: Path) -> None:
    """Directly, over others, and of one goal alone; the message shows the chain, and nothing is stored."""
    a, b, c = (new_goal(store, workspace) for _ in range(3))
    schedule(store, b, on_goal(store, a.uid))
    schedule(store, c, on_goal(store, b.uid))

    with pytest.raises(BadInput, match=f"{c.uid} waits for {b.uid} waits for {a.uid}"):
        schedule(store, a, on_goal(store, c.uid))
    with pytest.raises(BadInput, match="this is itself"):
        schedule(store, a, on_goal(store, a.uid))
    assert labels(store, a) == []
    assert now(store, a).wake_reason == "created"


def test_a_chain_may_meet_again(store: Store, workspace: Path) -> None:
    """Two goals may wait for the same one, and a third for both."""
    a, b, c, d = (new_goal(store, workspace) for _ in range(4))
    for goal, before in ((b, a), (c, a), (d, b), (d, c)):
        schedule(store, goal, on_goal(store, before.uid))

    assert labels(store, d) == ["S1", "S2"]


def test_a_goal_has_only_so_many_sources(store: Store, goal: Goal, clock: ManualClock) -> None:
    """The next one is refused; removing one makes room."""
    for _ in range(MAX_SOURCES):
        schedule(store, goal, every("1h", clock.now()))

    with pytest.raises(NotAllowed, match="waits for 20 things already"):
        schedule(store, goal, every("1h", clock.now()))
    unschedule(store, goal, "S7")
    assert schedule(store, goal, every("1h", clock.now())).number == MAX_SOURCES + 1


def test_a_goal_that_is_over_is_not_scheduled(
    store: Store, goal: Goal, workspace: Path, clock: ManualClock
) -> None:
    """DONE says how it is reopened, ABORTED is for good."""
    begin(store, goal).close(DONE)
    with pytest.raises(NotAllowed, match="is DONE, nothing wakes it; `goalmode edit"):
        schedule(store, now(store, goal), every("1h", clock.now()))

    other = new_goal(store, workspace)
    stop_goal(store, other, Control.ABORT)
    with pytest.raises(NotAllowed, match=r"is ABORTED, nothing wakes it$"):
        schedule(store, now(store, other), every("1h", clock.now()))


def test_a_paused_goal_is_scheduled_and_stays_paused(store: Store, goal: Goal, clock: ManualClock) -> None:
    """Its source waits for the resume."""
    stop_goal(store, goal, Control.PAUSE)

    schedule(store, now(store, goal), every("1h", clock.now()))

    paused = now(store, goal)
    assert (paused.status, paused.next_wakeup_at) == (GoalStatus.PAUSED, None)


def test_what_was_scheduled_is_an_event(store: Store, goal: Goal, clock: ManualClock) -> None:
    """Who looks later sees when it was asked for and when it was taken back."""
    schedule(store, goal, every("1h", clock.now()))
    unschedule(store, goal, "S1")

    assert rows(store, "SELECT kind FROM events ORDER BY id") == ["scheduled", "unscheduled"]
