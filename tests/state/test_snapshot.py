"""One consistent read, the same work after any number of turns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from goalmode.domain.calls import CallOutcome
from goalmode.domain.exits import ExitReason
from goalmode.domain.goal import ContextPolicy, GoalSettings
from goalmode.domain.messages import Assistant, ToolResult, User
from goalmode.domain.work import Checkpoint, ItemStatus, StatePatch, WorkState, apply
from goalmode.state import bodies, goals, journal, notes, snapshot
from goalmode.state import tables as t
from goalmode.state.checks import CheckResult
from goalmode.state.snapshot import MAX_ACTIONS, context_messages, context_to_rows
from goalmode.state.store import Store
from goalmode.testing import ManualClock
from tests.state.builders import claim, close, intent, new_goal, outcome, record, reply, rows, take_turn


@contextmanager
def measured(store: Store) -> Iterator[dict[str, int]]:
    """Statements, and steps of SQLite's machine in hundreds, of what is read meanwhile."""
    counts = {"statements": 0, "steps": 0}

    def statement(*_: Any) -> None:
        counts["statements"] += 1

    def step() -> int:
        counts["steps"] += 1
        return 0

    def connect(raw: Any, _record: object) -> None:
        raw.set_progress_handler(step, 100)

    usual = store._read
    store._read = store.database.reading(busy_seconds=5)
    if store.path is not None:
        event.listen(store._read, "connect", connect)
    event.listen(store._read, "before_cursor_execute", statement)
    try:
        yield counts
    finally:
        store._read.dispose()
        store._read = usual


_WAKEUP = {
    **dict.fromkeys(("lease_ms", "tokens", "recoveries", "rejections", "progress", "inbox_seen", "turns"), 0),
    **dict.fromkeys(("reserved_input", "reserved_output"), 0),
    **dict.fromkeys(("exit_detail", "owner", "host_label", "pid_start", "boot_id"), ""),
    "exit_reason": "MAX_TURNS_EXCEEDED",
    "exit_facts": {},
    "pid": 1,
    "revision": 1,
}
_TURN = {
    **dict.fromkeys(("stop_detail", "provider", "model", "movement"), ""),
    **dict.fromkeys(("input", "cached", "cache_write", "output"), 1),
    "purpose": "work",
    "state": "done",
    "stop_reason": "TOOL_USE",
    "estimated": False,
}
_CALL = {
    **dict.fromkeys(("position", "ms", "result_bytes", "redactions"), 0),
    "tool": "shell",
    "effect": "write",
    "args_sha": "a",
    "idem_key": "",
    "outcome": "success",
}


def fill(store: Store, goal_id: int, turns: int, *, per_wakeup: int) -> None:
    """History as many wakeups leave it, written in bulk."""
    now, first = store.clock.now(), 1_000_000 * goal_id
    with store.writing() as connection:
        for start in range(0, turns, per_wakeup):
            number = start // per_wakeup + 1
            own = {"goal": goal_id, "seq": number, "fence": number, "started_at": now, "ended_at": now}
            wakeup = connection.execute(
                sa.insert(t.wakeups).values(**_WAKEUP, **own).returning(t.wakeups.c.id)
            ).scalar_one()
            seqs = range(start + 1, min(start + per_wakeup, turns) + 1)
            times = {"wakeup": wakeup, "started_at": now, "ended_at": now}
            connection.execute(
                sa.insert(t.turns), [{**_TURN, **times, "id": first + n, "seq": n - start} for n in seqs]
            )
            calls = [
                {
                    "wakeup": wakeup,
                    "turn": first + n,
                    "call_id": f"c{n}",
                    "brief": f"step {n}",
                    "result_sha": str(n),
                }
                for n in seqs
            ]
            connection.execute(sa.insert(t.tool_calls), [_CALL | call for call in calls])
        connection.exec_driver_sql("ANALYZE")


def forget(store: Store, goal_id: int) -> None:
    with store.writing() as connection:
        connection.execute(sa.delete(t.wakeups).where(t.wakeups.c.goal == goal_id))


READS: dict[str, Callable[[Store, int], object]] = {
    "snapshot": lambda store, goal: snapshot.snapshot(store, goal, now=store.clock.now()),
    "goal": goals.get,
}


@pytest.mark.parametrize("per_wakeup", [180, 5_000], ids=["many wakeups", "one wakeup"])
@pytest.mark.parametrize("name", READS)
def test_loading_a_goal_costs_the_same_after_any_number_of_turns(
    store: Store, name: str, per_wakeup: int
) -> None:
    """The statements and the rows touched after 60 turns, and after 2,000 turns beside another goal's 2,000."""
    goal, other = new_goal(store), new_goal(store)
    fill(store, goal.id, 60, per_wakeup=per_wakeup)
    with measured(store) as early:
        READS[name](store, goal.id)
    fill(store, other.id, 2_000, per_wakeup=per_wakeup)
    forget(store, goal.id)
    fill(store, goal.id, 2_000, per_wakeup=per_wakeup)

    with measured(store) as late:
        READS[name](store, goal.id)

    assert late["statements"] <= early["statements"] + 1
    assert late["steps"] <= early["steps"] * 1.5 + 3


def test_what_progress_is_compared_with_is_bounded_too(store: Store) -> None:
    """The newest results are found without a walk over all of them."""
    goal, other = new_goal(store), new_goal(store)
    fill(store, other.id, 2_000, per_wakeup=180)
    fill(store, goal.id, 300, per_wakeup=180)
    with measured(store) as early:
        assert len(snapshot.recent_results(store, goal.id, 100)) == 100
    forget(store, goal.id)
    fill(store, goal.id, 2_000, per_wakeup=180)

    with measured(store) as late:
        found = snapshot.recent_results(store, goal.id, 100)

    assert [int(sha) for _, _, sha in found] == list(range(2_000, 1_900, -1))
    assert late["steps"] <= early["steps"] * 1.5 + 3


def test_the_newest_actions_are_shown_across_wakeups(store: Store) -> None:
    """The last calls, oldest first, each with its wakeup, turn, subject and outcome."""
    goal = new_goal(store)
    for number in range(3):
        claimed = claim(store, goal)
        for seq in range(1, 17):
            said = reply("shell", prefix=f"w{number}t{seq}-")
            turn = intent(store, claimed, said, seq=seq)
            outcome(store, claimed, turn, record(f"w{number}t{seq}-0", brief=f"step {number}.{seq}"))
        close(store, claimed)

    actions = snapshot.snapshot(store, goal.id, now=store.clock.now()).actions

    assert len(actions) == MAX_ACTIONS
    assert (actions[0].brief, actions[-1].brief) == ("step 0.9", "step 2.16")
    assert (actions[-1].wakeup, actions[-1].turn, actions[-1].outcome) == (3, 16, CallOutcome.SUCCESS)


def test_an_empty_wakeup_in_between_hides_no_action(store: Store) -> None:
    """What was done before a wakeup without calls is still recent."""
    goal = new_goal(store)
    claimed = claim(store, goal)
    take_turn(store, claimed, 1)
    close(store, claimed)
    for _ in range(5):
        close(store, claim(store, goal))

    assert [a.wakeup for a in snapshot.snapshot(store, goal.id, now=store.clock.now()).actions] == [1]


def test_a_snapshot_holds_what_the_agent_saved_and_how_it_ended(store: Store, clock: ManualClock) -> None:
    """B151: items, the newest checkpoint, found paths and the last ending come back as they were saved."""
    goal = new_goal(store)
    claimed = claim(store, goal)
    saved = StatePatch(
        key_info="k", summary="s", next_steps=("n",), done=("a",), pending=("b",), found=("f",)
    )
    work = apply(WorkState(), saved, wakeup=1)
    outcome(store, claimed, intent(store, claimed, reply("save")), record("c0", tool="save"), work=work)
    later = apply(work, StatePatch(verified={"W2": (True, "exit 0")}, summary="s2"), wakeup=1)
    turn = intent(store, claimed, reply("verify", prefix="d"), seq=2)
    outcome(store, claimed, turn, record("d0", tool="verify"), work=later, before=work)
    close(store, claimed)

    seen = snapshot.snapshot(store, goal.id, now=clock.now())

    assert seen.work == later
    assert seen.work.checkpoint == Checkpoint("k", "s2", ("n",), 1)
    assert [i.status for i in seen.work.items] == [ItemStatus.CLAIMED, ItemStatus.VERIFIED]
    assert seen.last is not None
    assert (seen.wakeup, seen.last.reason, seen.last.turns) == (2, ExitReason.MAX_TURNS_EXCEEDED, 2)


def test_the_inbox_shows_notes_and_answers_only(store: Store, clock: ManualClock) -> None:
    """Edits are in the contract, stops in the status, answers with their questions; what was superseded is left out."""
    goal = new_goal(store)
    with store.writing() as connection:
        for kind in ("note", "answer", "edit", "stop"):
            notes.post(store, connection, goal.id, kind, f"a {kind}", clock.now())
        notes.post(store, connection, goal.id, "note", "taken back", clock.now())
        notes.post(store, connection, goal.id, "answer", "to a question", clock.now(), question=1)
        connection.execute(t.inbox.update().where(t.inbox.c.text == "taken back").values(superseded_by=1))

    seen = snapshot.snapshot(store, goal.id, now=clock.now())

    assert [(e.kind, e.text) for e in seen.inbox] == [("note", "a note"), ("answer", "a answer")]
    assert seen.goal.inbox_head == 6


def test_replay_gives_every_call_a_result(store: Store, clock: ManualClock) -> None:
    """B41: a call that a crash left without one is answered as interrupted, so that the request stays valid."""
    goal = new_goal(store, settings=GoalSettings(policy=ContextPolicy.REPLAY))
    claimed = claim(store, goal)
    take_turn(store, claimed, 1)
    intent(store, claimed, reply("shell", text="now the rest", prefix="x"), seq=2)
    close(store, claimed)

    earlier = snapshot.snapshot(store, goal.id, now=clock.now()).earlier

    assert [type(m) for m in earlier] == [User, Assistant, ToolResult, Assistant, ToolResult]
    assert earlier[-1] == ToolResult("x0", "shell", "interrupted: no result was recorded")
    assert context_messages(json.dumps(context_to_rows(earlier))) == earlier


def test_replay_tells_a_result_that_is_kept_with_its_call(store: Store, clock: ManualClock) -> None:
    """Where the turn keeps none of its own: it was shown as it is stored, or a crash came before the turn's outcome."""
    goal = new_goal(store, settings=GoalSettings(policy=ContextPolicy.REPLAY))
    claimed = claim(store, goal)
    outcome(
        store,
        claimed,
        intent(store, claimed, reply("shell", "shell")),
        record("c0", shown="whole"),
        record("c1", position=1, shown="cut", body="cut off"),
        messages=[ToolResult("c0", "shell", "whole"), ToolResult("c1", "shell", "cut"), User("Go on.")],
        whole=["c0"],
    )
    cut_off = intent(store, claimed, reply("shell", "shell", prefix="x"), seq=2)
    journal.result(store, claimed, cut_off, record("x1", position=1, shown="came before the crash"))
    close(store, claimed)

    earlier = snapshot.snapshot(store, goal.id, now=clock.now()).earlier

    assert [m.text for m in earlier if not isinstance(m, Assistant)][1:] == [
        "whole",
        "cut",
        "Go on.",
        "interrupted: no result was recorded",
        "came before the crash",
    ]
    [kept] = rows(store, "SELECT results FROM turns WHERE results IS NOT NULL")
    with store.reading() as connection:
        assert "whole" not in bodies.get_one(connection, kept)


def test_a_rebuilt_goal_reads_no_earlier_messages(store: Store) -> None:
    """Earlier prose is not even loaded."""
    goal = new_goal(store)
    claimed = claim(store, goal)
    take_turn(store, claimed, 1)
    close(store, claimed)

    assert snapshot.snapshot(store, goal.id, now=store.clock.now()).earlier == ()


def test_checks_that_hold_are_among_what_was_seen(store: Store) -> None:
    """9.6: a check that held before and a deliverable that is unchanged are no progress when they hold again."""
    goal = new_goal(store, deliverables=("a.md", "b.md"))
    claimed = claim(store, goal)
    turn = intent(store, claimed, reply("complete"))
    checks = [CheckResult("a.md", True, sha256="11"), CheckResult("b.md", False)]
    outcome(store, claimed, turn, record("c0", tool="complete"), checks=checks)

    assert ("check", "a.md", "11") in snapshot.recent_results(store, goal.id, 10)
    assert "b.md" not in {subject for _, subject, _ in snapshot.recent_results(store, goal.id, 10)}
