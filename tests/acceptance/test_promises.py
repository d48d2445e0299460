"""Promises about ending, under attack: what was done is stored as done, and a claim stands on what is really there."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from goalmode import Exit, ExitReason, GoalStatus, tool
from goalmode.credentials import Credentials
from goalmode.domain.redact import url_secrets
from goalmode.testing import steps
from tests import stores
from tests.acceptance.world import World, checkpoint, complete, mark, write

STOP = Exit(ExitReason.USER_ABORTED, "Ctrl-C", {"control": "pause"})
CLAIM = ("complete", {"status": "success", "summary": "Written."})


def test_a_call_that_finished_is_stored_whoever_stops_meanwhile(world: World) -> None:
    """A stop that arrives while a call ends does not turn its success into "skipped"."""
    ends: list[bool] = []
    looks = 0

    def stop() -> Exit | None:
        nonlocal looks
        looks += bool(ends)
        return STOP if ends else None

    @tool
    async def ending() -> str:
        """Come to an end that cannot be interrupted."""
        with anyio.CancelScope(shield=True):
            ends.append(True)
            while not looks:  # noqa: ASYNC110 - the watcher's look is what is waited for
                await anyio.sleep(0.01)
        return "it is done"

    world.tools = (ending,)
    goal = world.goal()
    world.provider.script(steps.tool("ending"))

    assert world.wake(goal, stop=stop).reason is ExitReason.USER_ABORTED
    assert world.outcomes() == ["success"]


def test_a_call_beside_a_claim_is_stored_before_the_claim_is_judged(world: World) -> None:
    """A stop during a long check leaves the sibling call as what it is: done."""
    goal = world.goal(checks=["touch checking; sleep 98765"])
    world.provider.script(steps.tools([("shell", {"command": "echo x >> marks"}), CLAIM]))
    checking = world.workspace / "checking"

    ending = world.wake(goal, stop=lambda: STOP if checking.exists() else None)

    assert ending.reason is ExitReason.USER_ABORTED
    assert world.outcomes("shell") == ["success"]
    assert world.marks() == 1


def test_results_stay_with_their_calls(world: World) -> None:
    """A claim that stands before its siblings in a reply does not get their results, nor they its."""
    goal = world.goal(deliverables=["marks"])
    world.provider.script(steps.tools([CLAIM, ("shell", {"command": "echo x >> marks; exit 3"})]))

    assert world.wake(goal).reason is ExitReason.CURRENT_TASK_DONE
    [turn] = world.turns(goal, full=True)
    assert [(c["tool"], c["exit_code"]) for c in turn["calls"]] == [("complete", None), ("shell", 3)]
    assert "accepted" in turn["calls"][0]["result"]


def test_a_wakeup_that_was_taken_over_closes_nothing(world: World) -> None:
    """An owner that slept beyond its lease and then reaches its quota writes nothing, and says so."""
    goal = world.goal(max_turns=1)
    world.provider.script(checkpoint(key_info="x"))

    def taken_over(event: Any) -> None:
        if event.kind == "turn":
            stores.rows(world.store.url, "UPDATE wakeups SET exit_reason = 'INTERRUPTED'")

    ending = world.wake(goal, on_event=taken_over)

    assert (ending.reason, ending.facts) == (ExitReason.INTERRUPTED, {"fenced": True})
    assert world.rows("SELECT exit_reason FROM wakeups") == [("INTERRUPTED",)]


@pytest.mark.parametrize("said", ["I am 100% sure.", "Call 11 showed it."])
def test_a_short_id_is_no_evidence(world: World, said: str) -> None:
    """A server that numbers its calls 1, 2, 3 does not make every sentence with a digit a citation."""
    goal = world.goal(max_turns=3)
    world.provider.script(
        steps.tool("shell", {"command": "echo x >> marks"}, id="1"), complete(evidence=[said]), mark()
    )

    assert world.wake(goal).reason is ExitReason.MAX_TURNS_EXCEEDED
    assert world.now(goal).status is GoalStatus.ACTIVE


def test_files_are_looked_at_after_the_checks(world: World) -> None:
    """A check that removes a deliverable does not end in a goal that is done without it."""
    goal = world.goal(deliverables=["a.txt"], checks=["rm -f a.txt"], max_turns=3)
    world.provider.script(write("a.txt", "a"), complete(), mark())

    assert world.wake(goal).reason is ExitReason.MAX_TURNS_EXCEEDED
    assert "a.txt" in world.provider.told(2)


def test_words_of_an_address_are_no_secrets() -> None:
    """A user name or `api-version` in a base URL takes neither PATH nor HOME from the tools; a key takes its own."""
    secrets = url_secrets("http://user:a-long-password@h/v1?api-version=preview&api_key=another-long-one")
    mine = {"PATH": "/opt/user/bin", "HOME": "/opt/user", "STAGE": "preview"}

    known = Credentials(secrets, kept=secrets)
    left = known.environment({**mine, "A": "a-long-password", "B": "x another-long-one"})

    assert left == mine
