"""Several servers, DBOS between them, and whatever happens to some of them: no goal and no turn is lost or doubled."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest

from tests.acceptance.processes import Child, eventually
from tests.dbos.conftest import UNCLAIMED_SECONDS, Fleet

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

STOPPED_SECONDS = 9.0


def stopped(*workers: Child) -> None:
    """They end by SIGTERM as any server does."""
    for worker in workers:
        worker.signal(signal.SIGTERM)
    for worker in workers:
        assert worker.ended() == 0, worker.err
        assert (worker.err, worker.json_lines[-1]["kind"]) == ("", "stopped")


def orderly(fleet: Fleet) -> None:
    """No turn and no call ran twice, and no two wakeups of a goal at once: by the journal, and by the tools' files."""
    for number, goal in enumerate(fleet.goals):
        marks = fleet.marks(number)
        assert Counter(marks).most_common(1)[0][1] == 1, f"{goal.uid}: a call ran twice"
        wakeups = fleet.rows(
            "SELECT seq, fence, started_at, ended_at FROM wakeups WHERE goal = ? ORDER BY seq", goal.id
        )
        assert [row[0] for row in wakeups] == list(range(1, len(wakeups) + 1))
        assert [row[1] for row in wakeups] == sorted({row[1] for row in wakeups})
        assert all(earlier[3] <= later[2] for earlier, later in pairwise(wakeups))
        calls = fleet.rows(
            "SELECT w.seq, t.seq, c.call_id FROM tool_calls c JOIN turns t ON t.id = c.turn"
            " JOIN wakeups w ON w.id = t.wakeup WHERE w.goal = ? AND c.tool = 'shell' AND c.outcome = 'success'",
            goal.id,
        )
        succeeded = {f"{goal.uid}:{wakeup}:{turn}:{call}" for wakeup, turn, call in calls}
        assert len(succeeded) == len(calls)
        assert succeeded <= set(marks)


def test_a_kill_and_a_stop_in_the_middle(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    """15 goals of 24 turns in wakeups of 6, three servers, one kill -9 and one SIGSTOP of 9 s beyond its lease."""
    for _ in range(15):
        fleet.goal()
    struck: dict[int, int] = {}

    def strikes(number: signal.Signals) -> Callable[[int], None]:
        def strike(pid: int) -> None:
            struck[number] = pid
            os.kill(pid, number)

        return strike

    fleet.befalls = {60: strikes(signal.SIGKILL), 120: strikes(signal.SIGSTOP)}
    began = time.monotonic()
    workers = {worker.pid: worker for worker in [fleet.worker() for _ in range(3)]}

    eventually(lambda: signal.SIGKILL in struck, "one is killed")
    workers.pop(struck[signal.SIGKILL]).killed()
    eventually(lambda: signal.SIGSTOP in struck, "another is stopped")
    time.sleep(STOPPED_SECONDS)
    frozen = workers[struck[signal.SIGSTOP]]
    lost = "SELECT 1 FROM wakeups WHERE pid = ? AND exit_reason = 'INTERRUPTED'"
    eventually(lambda: fleet.rows(lost, frozen.pid) != [], "somebody has taken over")
    frozen.signal(signal.SIGCONT)
    eventually(fleet.all_done, "all goals are done", 300)
    seconds = time.monotonic() - began
    stopped(*workers.values())

    orderly(fleet)
    endings, turns = fleet.endings(), fleet.turns_done()
    assert set(endings) == {"CURRENT_TASK_DONE", "MAX_TURNS_EXCEEDED", "INTERRUPTED"}
    assert endings["CURRENT_TASK_DONE"] == 15
    assert endings["INTERRUPTED"] >= 2
    marks = sum(len(fleet.marks(number)) for number in range(15))
    assert 15 * 23 <= marks <= 15 * 23 + endings["INTERRUPTED"]
    taken_over = [event for event in frozen.json_lines if event["kind"] == "taken_over"]
    assert taken_over, frozen.out
    deliveries = int(fleet.rows("SELECT sum(delivery) FROM goals")[0])
    wakeups = sum(endings.values())
    with capsys.disabled():
        sys.stdout.write(
            f"\n15 goals, {wakeups} wakeups ({endings['INTERRUPTED']} interrupted), {turns} turns, {marks} calls,"
            f" {deliveries} deliveries in {seconds:.0f} s\n"
        )


def test_a_worker_that_dies_with_a_delivery_in_hand(fleet: Fleet) -> None:
    """Between dequeue and claim: nothing but the time that passes tells of it, and another worker picks it up."""
    fleet.turns = 3
    goal = fleet.goal()
    fleet.worker(dies=True).killed()
    assert fleet.rows("SELECT count(*) FROM wakeups") == [0]
    assert fleet.rows("SELECT workflow_uuid, status FROM dbos.workflow_status") == [
        (f"g{goal.id}:d1", "PENDING")
    ]

    worker = fleet.worker()
    eventually(fleet.all_done, f"it is done after {UNCLAIMED_SECONDS} s")
    stopped(worker)

    [delivery] = fleet.rows("SELECT delivery FROM goals")
    assert delivery >= 2
    assert fleet.endings() == {"CURRENT_TASK_DONE": 1}
    states = dict(fleet.rows("SELECT workflow_uuid, status FROM dbos.workflow_status"))
    assert states.pop(f"g{goal.id}:d{delivery}") == "SUCCESS"
    assert set(states.values()) <= {"CANCELLED", "SUCCESS"}
    facts = "SELECT DISTINCT serialization, application_version, queue_name LIKE 'goalmode:%' FROM dbos.workflow_status"
    assert fleet.rows(f"{facts} WHERE status = 'SUCCESS'") == [("portable_json", "1", 1)]
    assert len(set(fleet.rows("SELECT executor_id FROM dbos.workflow_status"))) == len(states) + 1


def test_losing_every_table_of_dbos_loses_nothing(fleet: Fleet) -> None:
    """Once between two servers, with deliveries on their way, and once under one that serves."""
    for _ in range(5):
        fleet.goal()
    fleet.turns = 9
    first = fleet.worker()
    fleet.befalls = {8: lambda pid: os.kill(pid, signal.SIGTERM)}
    assert first.ended() == 0
    before = fleet.turns_done()
    fleet.rows("DROP SCHEMA dbos CASCADE")
    assert fleet.statuses() == {"ACTIVE": 5}
    assert "INTERRUPTED" in fleet.endings()

    second = fleet.worker()
    eventually(lambda: fleet.turns_done() >= before + 8, "more work")
    fleet.rows("DROP SCHEMA dbos CASCADE")
    eventually(fleet.all_done, "all goals are done", 300)
    stopped(second)

    orderly(fleet)
    assert fleet.endings()["CURRENT_TASK_DONE"] == 5


def test_servers_wake_the_labels_that_they_serve(fleet: Fleet) -> None:
    """A workspace is on one machine: what no server's label fits is not even issued."""
    fleet.turns = 3
    labels = ("here", "there", "here", "elsewhere", "nowhere")
    made = [fleet.goal(label) for label in labels]
    one, two = fleet.worker("--label", "here"), fleet.worker("--label", "there", "--label", "elsewhere")

    eventually(lambda: fleet.statuses() == {"DONE": 4, "ACTIVE": 1}, "all but one are done")
    stopped(one, two)

    owners = dict(fleet.rows("SELECT goal, pid FROM wakeups"))
    assert owners == {made[0].id: one.pid, made[1].id: two.pid, made[2].id: one.pid, made[3].id: two.pid}
    assert fleet.rows("SELECT delivery FROM goals WHERE id = ?", made[4].id) == [0]
