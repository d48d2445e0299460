"""A server that wakes what is delivered to it: what it issues, what it takes, and what it lets go again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import anyio
import pytest

from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Control
from goalmode.errors import BadInput, StoreError
from goalmode.orchestrator.goals import resume_goal, stop_goal
from goalmode.orchestrator.run import Ending
from goalmode.scheduler.deliveries import Deliveries
from goalmode.state import deliveries
from goalmode.state.deliveries import UNCLAIMED_SECONDS, Delivery
from goalmode.state.owner import LEASE_MS
from goalmode.testing import call
from tests.scheduler.conftest import Park, done, mark
from tests.state.builders import claim

WAIT_SECONDS = 60


class Carried:
    """One server and what carries deliveries to it, which brings them only when it is told to."""

    def __init__(self, park: Park) -> None:
        self.park = park
        self.queue: list[Delivery] = []
        self.forgotten: list[Delivery] = []
        self.prepared = 0
        self.stopped = False
        self.broken: Exception | None = None
        self.arrivals = 0
        self._threads = ThreadPoolExecutor(8)
        self.lookout = Deliveries(
            park.store, [park.store.owner.host_label], self._wake, self, stopping=lambda: self.stopped
        )
        self.lookout.hurry = self._hurry
        self.server = park.server(lookout=self.lookout)
        self.server._wake_goal = self.lookout.wake

    async def _wake(self, goal: int, sink: Any, stop: Any, number: int) -> Ending:
        return await self.park.wake(goal, sink, stop, number)

    def _hurry(self) -> None:
        self.arrivals += 1

    def prepare(self) -> None:
        self.prepared += 1

    def enqueue(self, connection: Any, delivery: Delivery) -> None:
        if self.broken is not None:
            raise self.broken
        self.queue.append(delivery)

    def forget(self, issued: Sequence[Delivery]) -> None:
        self.forgotten += issued

    def look(self) -> None:
        """One look and the wakeups that it starts, to their ends."""
        self.park.tick(self.server)

    def looks(self, count: int) -> None:
        """A goal whose wakeup has just ended has its turn at the second one."""
        for _ in range(count):
            self.look()

    def issue(self) -> list[tuple[int, int]]:
        """One look at a store at which nothing has arrived; what it issued."""
        before = len(self.queue)
        self.look()
        return [(one.goal, one.number) for one in self.queue[before:]]

    def bring(self, goal: int, number: int) -> Future[str]:
        """The delivery arrives; the carrier's thread is told what came of it."""
        before = self.arrivals
        handed = self._threads.submit(self.lookout.hand, goal, number)
        while self.arrivals == before and not handed.done():
            pass
        return handed

    def deliver(self) -> list[str]:
        """Bring all that was issued, and look."""
        brought = [self.bring(one.goal, one.number) for one in self.queue]
        self.queue.clear()
        self.look()
        return [one.result(WAIT_SECONDS) for one in brought]

    def end(self) -> None:
        self.stopped = True
        self._threads.shutdown()


@pytest.fixture
def carried(park: Park) -> Iterator[Carried]:
    made = Carried(park)
    yield made
    made.end()


def test_a_goal_is_issued_then_woken_when_it_arrives(carried: Carried) -> None:
    """The look that issues it wakes nothing; the delivery, once it is there, does, with the events of any server."""
    goal = carried.park.goal(mark(), done())

    assert carried.issue() == [(goal.id, 1)]
    assert carried.park.wakeups() == 0
    assert carried.deliver() == ["over"]

    assert carried.park.status(goal) is GoalStatus.DONE
    assert carried.park.kinds == ["claimed", "ended"]
    claimed, _ = carried.park.events
    assert claimed.data == {
        "goal": goal.uid,
        "wakeup": 1,
        "why": "created",
        "due_at": "2030-01-01T00:00:00+00:00",
    }


def test_wakeup_after_wakeup_each_has_a_delivery_of_its_own(carried: Carried) -> None:
    """A goal that goes on is issued as soon as it is due again."""
    saved = call("update_working_checkpoint", key_info="more to come")
    goal = carried.park.goal(mark(), saved, mark(), saved, mark(), done(), max_turns=2)

    numbers = []
    while carried.park.status(goal) is GoalStatus.ACTIVE:
        numbers += carried.issue()
        carried.deliver()
        carried.park.clock.advance(1)

    assert numbers == [(goal.id, 1), (goal.id, 2), (goal.id, 3)]
    assert carried.park.endings(goal)[-1] == "CURRENT_TASK_DONE"


def test_a_delivery_that_comes_twice_or_late_is_of_no_use(carried: Carried) -> None:
    """Nothing is claimed for it, and nothing told."""
    goal = carried.park.goal(mark(), mark(), mark(), done(), max_turns=1)
    carried.issue()
    carried.deliver()
    carried.park.events.clear()

    again = carried.bring(goal.id, 1)
    carried.looks(2)

    assert again.result(WAIT_SECONDS) == "of no use"
    assert carried.park.kinds == []
    assert carried.park.wakeups() == 1


def test_no_more_at_once_than_there_is_room_for(carried: Carried) -> None:
    """The others wait here for their turn, and are woken in the order in which they came."""
    carried.server._concurrency = 2
    made = [carried.park.goal(carried.park.beside(mark()), done()) for _ in range(5)]
    carried.issue()
    brought = [carried.bring(one.goal, one.number) for one in carried.queue]

    woken = []
    for _ in range(3):
        carried.look()
        woken.append([goal.id for goal in made if carried.park.status(goal) is GoalStatus.DONE])

    assert [len(ids) for ids in woken] == [2, 4, 5]
    assert woken[1] == [goal.id for goal in made[:4]]
    assert [one.result(WAIT_SECONDS) for one in brought] == ["over"] * 5
    assert carried.park.most_at_once == 2


def test_a_goal_that_was_stopped_meanwhile_goes_on_as_soon_as_it_may(carried: Carried) -> None:
    """Its delivery finds it paused, and is given back: the goal need not wait for it to count as lost."""
    goal = carried.park.goal(mark(), done())
    carried.issue()
    stop_goal(carried.park.store, goal, Control.PAUSE)
    assert carried.deliver() == ["over"]
    assert carried.issue() == []

    resume_goal(carried.park.store, carried.park.now(goal))

    assert carried.issue() == [(goal.id, 2)]
    assert carried.deliver() == ["over"]
    assert carried.park.status(goal) is GoalStatus.DONE
    assert carried.park.told("skipped") == []


def test_a_goal_that_cannot_be_woken_here_is_left_to_others_for_a_while(carried: Carried) -> None:
    """Its model is not configured: told once; the delivery counts as lost after a minute, and is brought again."""
    goal = carried.park.goal(mark(), done())
    carried.park.broken[goal.id] = BadInput("model", "x", "one that is configured")
    carried.issue()
    carried.deliver()

    carried.park.clock.advance(UNCLAIMED_SECONDS - 1)
    assert carried.issue() == []
    carried.park.clock.advance(1)
    assert carried.issue() == [(goal.id, 2)]
    del carried.park.broken[goal.id]
    carried.deliver()

    assert [event["reason"] for event in carried.park.told("skipped")] == ["BadInput"]
    assert carried.park.status(goal) is GoalStatus.DONE


def test_what_a_server_passes_over_is_not_woken_by_it_at_once(carried: Carried) -> None:
    """It is brought while the server is patient with it: the carrier's place is free again at once."""
    goal = carried.park.goal(mark(), done())
    carried.park.broken[goal.id] = BadInput("model", "x", "one that is configured")
    carried.issue()
    carried.deliver()

    handed = carried.bring(goal.id, 1)
    carried.looks(2)

    assert handed.result(WAIT_SECONDS) == "of no use"


def test_a_dead_owners_goal_arrives_and_goes_on(carried: Carried) -> None:
    """Its wakeup is closed as INTERRUPTED first, by whoever the delivery came to."""
    goal = carried.park.goal(mark(), done())
    claim(carried.park.store, goal)
    assert carried.issue() == []
    carried.park.clock.advance(LEASE_MS / 1000 + 1)

    assert carried.issue() == [(goal.id, 1)]
    carried.deliver()

    assert carried.park.endings(goal) == ["INTERRUPTED", "CURRENT_TASK_DONE"]


def test_what_a_dead_owner_left_of_a_paused_goal_is_closed(carried: Carried) -> None:
    """Without waking it; that is told, and nothing is left on the way."""
    goal = carried.park.goal()
    claim(carried.park.store, goal)
    stop_goal(carried.park.store, goal, Control.PAUSE)
    carried.park.clock.advance(LEASE_MS / 1000 + 1)
    assert carried.issue() == [(goal.id, 1)]

    carried.deliver()

    assert carried.park.endings(goal) == ["INTERRUPTED"]
    assert carried.park.kinds == ["recovered"]
    assert carried.issue() == []


def test_a_delivery_for_a_goal_that_still_runs_here_waits(carried: Carried) -> None:
    """This process was stopped for so long that its own goal came back to it: only once the old wakeup is over."""
    goal = carried.park.goal(mark(), done())
    carried.issue()
    found: list[Future[str]] = []

    async def late(goal_id: int, sink: Any, stop: Any, number: int) -> Ending:
        if not found:
            found.append(carried.bring(goal_id, number))
            assert await anyio.to_thread.run_sync(lambda: carried.lookout.due([goal_id], 4)) == []
            assert not found[0].done()
        return await carried.park.wake(goal_id, sink, stop, number)

    carried.lookout._wake_goal = late
    assert carried.deliver() == ["over"]
    carried.looks(2)

    assert found[0].result(WAIT_SECONDS) == "of no use"
    assert carried.park.endings(goal) == ["CURRENT_TASK_DONE"]


def test_what_has_arrived_when_the_server_stops_is_given_back(carried: Carried) -> None:
    """Another server issues it at once."""
    goal = carried.park.goal(mark(), done())
    carried.issue()
    handed = carried.bring(goal.id, 1)

    carried.stopped = True

    assert handed.result(WAIT_SECONDS) == "given back"
    other = deliveries.issue(carried.park.store, [carried.park.store.owner.host_label], lambda *_: None)
    assert [(one.goal, one.number) for one in other] == [(goal.id, 2)]


def test_nothing_waits_for_a_server_that_has_failed(carried: Carried) -> None:
    """Whatever ended it: the carrier's threads come back."""
    carried.park.goal(mark(), done())
    carried.issue()
    handed = carried.bring(carried.queue[0].goal, 1)

    carried.lookout.close()

    assert handed.result(WAIT_SECONDS) == "given back"


def test_a_carrier_that_fails_is_told_of_and_tried_again(carried: Carried) -> None:
    """Nothing is half issued; what has arrived is not lost; the carrier may repair itself before the next look."""
    goal = carried.park.goal(mark(), done())
    carried.broken = StoreError("store x: relation dbos.workflow_status is gone")
    with suppress(ExceptionGroup), pytest.raises(StoreError):
        carried.look()
    carried.broken = None

    assert carried.prepared == 1
    assert carried.issue() == [(goal.id, 1)]
    assert carried.prepared == 2


def test_the_carrier_is_told_what_is_of_no_use_any_more(carried: Carried) -> None:
    """After the commit, of each goal that was issued."""
    goal = carried.park.goal(mark(), done())
    carried.issue()
    carried.park.clock.advance(UNCLAIMED_SECONDS)
    carried.issue()

    label = carried.park.store.owner.host_label
    assert carried.forgotten == [
        Delivery(goal.id, 1, label, replaces=False),
        Delivery(goal.id, 2, label, replaces=True),
    ]


def test_an_arrival_is_a_reason_to_look_at_once(park: Park) -> None:
    """The server need not wait for its next poll."""
    server = park.server()

    async def serve() -> None:
        with anyio.fail_after(WAIT_SECONDS):
            server.hurry()
            await server._pause(3600, lambda: None)

    anyio.run(serve)
