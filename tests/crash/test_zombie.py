"""An owner that is stopped past its lease, and goes on when another one has finished: nothing that it writes counts."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import anyio
import pytest

from goalmode.domain.clock import SystemClock
from goalmode.domain.exits import ExitReason, GoalStatus, SkipReason
from goalmode.domain.messages import Reply, Request
from goalmode.errors import StoreBusy
from goalmode.orchestrator.skip import Skip
from goalmode.state import goals, locks, wakeups
from goalmode.state.engine import BUSY_SECONDS
from goalmode.testing import ScriptedModel, call
from goalmode.wiring import begin_wakeup, run_wakeup, workshop
from tests import stores
from tests.acceptance.processes import odd_seconds, running
from tests.crash import invariants
from tests.crash.lives import MANY, PROFILE, Lives, marker
from tests.crash.marks import SHELL, Marks
from tests.crash.mortal import Death, SleepingStore
from tests.crash.stories import STORIES, Look, works
from tests.state.processes import PATIENCE, Other, another, until
from tests.stores import Stores

pytestmark = pytest.mark.slow

LEASE_MS = 1_000

STORY = STORIES["work"]
LATE = [Death("begin", n) for n in (1, 2, 5, 7, len(STORY.commits) - 1)]

SILENT = "silent"
"""In place of a first command: no answer at all."""


def sleepwalks(pipe: Connection, url: str, goal_id: int, point: Death | None, first: str) -> None:
    """One wakeup, stopped at `point`, or when it is told to; tells how it ended."""

    def stops() -> None:
        pipe.recv()
        store.stop()

    with SleepingStore(url, point, lease_length=LEASE_MS) as store:
        threading.Thread(target=stops, daemon=True).start()
        goal = goals.get(store, goal_id)
        shop = workshop(goal, PROFILE, tools=(marker(store),))
        wake = begin_wakeup(store, goal, profile=PROFILE, shop=shop)
        assert not isinstance(wake, Skip)

        async def answer(request: Request) -> Reply:
            if first == SILENT:
                pipe.send("asked")
                await anyio.sleep_forever()
            asked = len(model.requests) - 1
            if first and not asked:
                return call("shell", command=first)
            return works(Look(request, frozenset(Marks.of(Path(goal.workspace)).done), asked))

        model = ScriptedModel([answer] * MANY)
        ending = anyio.run(run_wakeup, wake, model)
        pipe.send((ending.reason, ending.facts.get("fenced", False)))


@pytest.fixture
def lives(new_stores: Stores, tmp_path: Path) -> Lives:
    """The goal that both want, in real time."""
    url = new_stores.new(tmp_path / "state" / "goals.sqlite")
    return Lives(url, tmp_path / "workspace", STORY, SystemClock())


@contextmanager
def owner(lives: Lives, point: Death | None = None, first: str = "") -> Iterator[Other]:
    """A process with the goal's first wakeup. It is stopped when it is handed over."""
    with another(sleepwalks, lives.url, lives.id, point, first) as other:
        if first == SILENT:
            assert other.hear() == "asked"
        elif first:
            until(lambda: lives.marks.begun, what="its command runs")
        if point is None:
            other.tell()
        until(lambda: _state(other.pid) == "T", what="it is stopped")
        yield other


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def after_the_lease(lives: Lives) -> Any:
    """What another process gets as soon as the goal is no longer held."""
    began = time.monotonic()
    ending = lives.wake()
    while isinstance(ending, Skip) and ending.reason is SkipReason.LEASED:
        assert time.monotonic() < began + PATIENCE, ending
        time.sleep(0.05)
        ending = lives.wake()
    return ending


def finished_by_another(lives: Lives, zombie: Other) -> None:
    """The goal is done, in two wakeups; then the zombie goes on, and is refused whatever it does."""
    assert after_the_lease(lives).reason is ExitReason.CURRENT_TASK_DONE
    before, marks = rows_of(lives), lives.marks

    os.kill(zombie.pid, signal.SIGCONT)

    assert zombie.hear() == (ExitReason.INTERRUPTED, True)
    assert rows_of(lives) == before
    assert lives.marks == marks
    assert lives.rows("SELECT kind, wakeup FROM events WHERE kind = 'fenced'") == [("fenced", 1)]
    assert lives.rows("SELECT exit_reason FROM wakeups ORDER BY seq") == ["INTERRUPTED", "CURRENT_TASK_DONE"]
    assert invariants.broken(lives.url) == []
    assert marks.overlaps() == []
    assert len(marks.begun) == len(set(marks.begun))


def rows_of(lives: Lives) -> list[str]:
    """Everything that is committed but the events."""
    return [
        line
        for line in stores.dump(lives.url)
        if "events" not in line.partition("VALUES")[0].partition(":")[0]
    ]


@pytest.mark.parametrize("point", LATE, ids=lambda point: f"{point.at} {STORY.commits[point.at]}")
def test_a_late_write_is_refused(lives: Lives, point: Death) -> None:
    """B50: stopped right before each of its commits, past its lease: no row changes but for one event."""
    with owner(lives, point) as zombie:
        finished_by_another(lives, zombie)


def test_the_tools_of_an_owner_that_is_stopped_are_ended(lives: Lives) -> None:
    """B50: whoever takes over ends the command first; the call counts as interrupted, and is told as that."""
    word = odd_seconds()
    with owner(lives, first=SHELL.format(word="slow", work=f"sleep {word} & sleep {word}")) as zombie:
        assert running(word)
        finished_by_another(lives, zombie)

    assert running(word) == []
    assert lives.rows("SELECT outcome FROM tool_calls WHERE tool = 'shell'") == ["interrupted"]
    assert "slow" not in lives.marks.done
    assert "→ interrupted, not known whether it took effect" in lives.asked[0].messages[1].text


def test_an_owner_whose_model_is_silent_sees_that_it_is_late(lives: Lives) -> None:
    """B50: no write of its own would tell it; its sign of life does."""
    with owner(lives, first=SILENT) as zombie:
        finished_by_another(lives, zombie)


def test_an_owner_that_nobody_has_replaced_goes_on(lives: Lives) -> None:
    """A lease that is over takes nothing away as long as nobody else takes the goal."""
    with owner(lives, LATE[3]) as slow:
        until(lambda: _is_over(lives), what="the lease is over")
        os.kill(slow.pid, signal.SIGCONT)

        assert slow.hear() == (ExitReason.CURRENT_TASK_DONE, False)

    assert lives.rows("SELECT exit_reason FROM wakeups") == ["CURRENT_TASK_DONE"]
    assert invariants.broken(lives.url) == []


def _is_over(lives: Lives) -> bool:
    with lives.opened() as store:
        with store.reading() as connection:
            running = wakeups.open_wakeup(connection, lives.id)
        return running is not None and store.is_void(running.lease)


def test_an_effect_of_the_host_itself_is_not_run_beside_another(
    lives: Lives, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B50: stopped in a tool that is no process of its own, it cannot be ended: the goal waits until it goes on."""
    monkeypatch.setattr(locks, "TAKEOVER_SECONDS", 0.3)
    with owner(lives, Death("within", 1)) as slow:
        assert after_the_lease(lives).reason is SkipReason.TOOL_STILL_RUNNING
        os.kill(slow.pid, signal.SIGCONT)

        assert slow.hear() == (ExitReason.CURRENT_TASK_DONE, False)

    assert lives.rows("SELECT exit_reason FROM wakeups") == ["CURRENT_TASK_DONE"]
    assert lives.marks.overlaps() == []
    assert invariants.broken(lives.url) == []


def test_an_owner_that_is_stopped_within_a_commit_holds_up_the_goal_only_until_it_dies(lives: Lives) -> None:
    """B53: with the store's lock in its hand; others wait as long as they were told to, and say what for."""
    intent = Death("before", LATE[0].at)
    with owner(lives, intent) as zombie:
        lives.busy_seconds = 0.3
        with pytest.raises(StoreBusy, match=r"is locked|is busy"):
            after_the_lease(lives)
        zombie.kill()
        lives.busy_seconds = BUSY_SECONDS

        assert after_the_lease(lives).reason is ExitReason.CURRENT_TASK_DONE

    assert lives.rows("SELECT exit_reason FROM wakeups ORDER BY seq") == ["INTERRUPTED", "CURRENT_TASK_DONE"]
    assert lives.status is GoalStatus.DONE
    assert invariants.broken(lives.url) == []
