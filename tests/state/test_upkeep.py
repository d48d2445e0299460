"""The store as a whole: what must hold in it, a copy of it, and what may be taken away."""

from __future__ import annotations

import stat
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from goalmode.domain.exits import Exit, ExitReason, GoalStatus
from goalmode.domain.goal import Control
from goalmode.domain.messages import Usage
from goalmode.errors import StoreError
from goalmode.inspection import contexts, turns
from goalmode.state import bodies, goals, invariants, reading, snapshot, upkeep, wakeups
from goalmode.state.checks import CheckResult
from goalmode.state.closing import Aftermath, recover
from goalmode.state.store import Store
from goalmode.state.upkeep import Pruned
from goalmode.testing import ManualClock
from tests.state.builders import (
    DONE,
    claim,
    close,
    dump,
    finished,
    go_on,
    intent,
    new_goal,
    outcome,
    record,
    reply,
    rows,
    take_turn,
)


def lived(store: Store) -> None:
    """A store in which everything has happened: goals that run, died, wait, are done."""
    done, running, dead, waiting = (new_goal(store, f"Goal {n}.", deliverables=("a",)) for n in range(4))
    claimed = claim(store, done)
    take_turn(store, claimed, 1)
    close(store, claimed)
    claimed = claim(store, done)
    said = intent(store, claimed, reply("complete"))
    checks = [CheckResult("a", passed=True, sha256="ab" * 32, tail="fine")]
    outcome(store, claimed, said, record("c0"), checks=checks)
    close(store, claimed, DONE, finished(store), checks=checks)
    intent(store, claim(store, running), reply("shell", "shell"))
    take_turn(store, claim(store, dead), 1)
    with store.reading() as connection:
        open_ = wakeups.open_wakeup(connection, dead.id)
    assert open_ is not None
    recover(store, dead, open_, started=frozenset(), after=go_on(store), now=store.clock.now())
    asks = Exit(ExitReason.NEEDS_USER_INPUT, "Which colour?")
    close(store, claim(store, waiting), asks, Aftermath(GoalStatus.WAITING_USER, "", None, "", 0, 0))


def rules(store: Store) -> set[str]:
    return {found.rule for found in invariants.check(store).findings}


def test_a_store_that_has_lived_is_sound(store: Store) -> None:
    """Turns, deaths, questions and running wakeups break no rule, and all of them were looked at."""
    lived(store)

    found = invariants.check(store)

    assert found.findings == ()
    assert (found.goals, found.wakeups, found.turns) == (4, 5, 5)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ("DELETE FROM goals WHERE id = 1", "orphans"),
        ("DELETE FROM turns WHERE seq = 1", "orphans"),
        ("DELETE FROM bodies WHERE id = 2", "bodies"),
        ("INSERT INTO bodies (id, codec, raw_len, data) VALUES (4711, 'raw', 0, '')", "bodies"),
        ("UPDATE wakeups SET ended_at = NULL WHERE id = 1", "open_wakeups"),
        ("UPDATE wakeups SET seq = 9 WHERE id = 2", "numbers"),
        ("UPDATE turns SET seq = 7 WHERE id = 1", "numbers"),
        ("UPDATE goals SET revision = 2 WHERE id = 1", "numbers"),
        ("UPDATE wakeups SET fence = 99 WHERE id = 1", "fences"),
        ("UPDATE goals SET fence = 0 WHERE id = 1", "fences"),
        ("UPDATE tool_calls SET outcome = NULL WHERE id = 1", "outcomes"),
        ("UPDATE turns SET state = 'open' WHERE id = 1", "outcomes"),
        ("UPDATE tool_calls SET wakeup = 3 WHERE id = 1", "outcomes"),
        ("UPDATE goals SET spent_turns = 3 WHERE id = 1", "totals"),
        ("UPDATE goals SET spent_cost_micro = 3 WHERE id = 3", "totals"),
        ("UPDATE turns SET input = input + 1 WHERE id = 1", "totals"),
        ("UPDATE wakeups SET tokens = 1 WHERE id = 1", "totals"),
        ("UPDATE goals SET next_wakeup_at = NULL WHERE id = 3", "statuses"),
        ("UPDATE goals SET next_wakeup_at = created_at WHERE id = 1", "statuses"),
        ("UPDATE goals SET control = 'pause' WHERE id = 3", "statuses"),
        ("UPDATE questions SET status = 'withdrawn'", "statuses"),
        ("UPDATE goals SET status = 'ABORTED' WHERE id = 4", "statuses"),
        ("UPDATE goals SET status = 'DONE', next_wakeup_at = NULL WHERE id = 3", "statuses"),
        ("UPDATE goals SET wrapped_limits_rev = 2 WHERE id = 1", "statuses"),
    ],
)
def test_what_must_not_be_is_found(store: Store, change: str, rule: str) -> None:
    """Every rule sees what breaks it."""
    lived(store)
    rows(store, change)

    assert rule in rules(store)


def test_two_open_wakeups_of_a_goal_are_found(store: Store) -> None:
    """Where the index that forbids them is gone."""
    lived(store)
    rows(store, "DROP INDEX uq_wakeups_open")
    rows(store, "UPDATE wakeups SET exit_reason = NULL, ended_at = NULL WHERE goal = 1")

    found = {f.detail for f in invariants.check(store).findings if f.rule == "open_wakeups"}

    assert found == {"2 wakeups are open at once"}


@pytest.mark.sqlite
def test_what_sqlite_finds_wrong_is_found(store: Store) -> None:
    """Its own check is part of ours."""
    goal = new_goal(store)
    rows(store, "PRAGMA wal_checkpoint(TRUNCATE)")
    [root] = rows(store, "SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_goals_1'")
    content = bytearray(store.path.read_bytes())
    at = content.index(goal.uid.encode(), (root - 1) * 1024, root * 1024)
    content[at : at + 12] = b"x" * 12
    store.path.write_bytes(content)

    assert "row 1 missing from index sqlite_autoindex_goals_1" in [
        f.detail for f in invariants.check(store).findings if f.rule == "integrity"
    ]


@pytest.mark.sqlite
def test_a_page_that_is_none_is_an_error(store: Store) -> None:
    """There is no looking further into such a file."""
    new_goal(store)
    [root] = rows(store, "SELECT rootpage FROM sqlite_master WHERE name = 'ix_goals_due'")
    store.close()  # The last one to close puts the log into the file; an open one could keep its page of it.
    rows(store, "PRAGMA wal_checkpoint(TRUNCATE)")
    with store.path.open("r+b") as file:
        file.seek((root - 1) * 1024)
        file.write(b"\xff" * 1024)

    with Store(store.url, readonly=True) as again, pytest.raises(StoreError, match="restore a backup"):
        invariants.check(again)


def test_checking_writes_nothing(store: Store) -> None:
    """Not even where there is something to find."""
    lived(store)
    rows(store, "UPDATE goals SET spent_turns = 3 WHERE id = 1")
    before = dump(store)

    assert rules(store) == {"totals"}
    assert dump(store) == before


@pytest.mark.sqlite
def test_a_backup_is_a_store_of_its_own(store: Store, tmp_path: Path) -> None:
    """What was committed is in it, the log included; it is for its user alone, and opens like any other."""
    lived(store)
    target = tmp_path / "copy.sqlite"

    size = upkeep.backup(store, target)

    assert size == target.stat().st_size
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert dump(target) == dump(store)
    with Store(str(target), clock=store.clock) as copy:
        assert invariants.check(copy).findings == ()
        take_turn(copy, claim(copy, goals.get(copy, 3)), 1)


@pytest.mark.sqlite
def test_a_backup_overwrites_nothing(store: Store, tmp_path: Path) -> None:
    """A file that is there, and a place that is none, are named; there is no half of a backup."""
    there, nowhere = tmp_path / "there", tmp_path / "none" / "copy"
    there.write_text("something else")

    with pytest.raises(StoreError, match="is there already"):
        upkeep.backup(store, there)
    with pytest.raises(StoreError, match="cannot be created"):
        upkeep.backup(store, nowhere)

    assert there.read_text() == "something else"


@pytest.mark.sqlite
def test_a_backup_is_made_while_others_write(store: Store, tmp_path: Path) -> None:
    """Whole turns only: the copy is the store at one moment."""
    claimed, over = claim(store, new_goal(store)), threading.Event()

    def work() -> None:
        seq = 0
        while not over.is_set():
            take_turn(store, claimed, seq := seq + 1)

    writer = threading.Thread(target=work)
    writer.start()
    try:
        for number in range(5):
            target = tmp_path / f"copy-{number}"
            upkeep.backup(store, target)
            with Store(str(target), readonly=True) as copy:
                assert invariants.check(copy).findings == ()
    finally:
        over.set()
        writer.join()


def test_pruning_takes_texts_of_finished_goals_only(store: Store, clock: ManualClock) -> None:
    """State, counts and other goals stay as they are; how much was taken is said, and the store is sound."""
    lived(store)
    clock.advance(10)
    tables = ("goals", "wakeups", "turns", "tool_calls", "contexts", "checks", "work_items", "checkpoints")
    before = {table: rows(store, f"SELECT * FROM {table} ORDER BY 1") for table in tables}
    with store.reading() as connection:
        named = set(connection.execute(bodies.of_goal(1)).scalars())
    [total] = rows(store, "SELECT count(*) FROM bodies")
    [size] = rows(store, f"SELECT sum(length(data)) FROM bodies WHERE id IN ({', '.join(map(str, named))})")

    done = upkeep.prune(store, before=clock.now(), now=clock.now())

    assert done == Pruned(1, len(named), size)
    assert rows(store, "SELECT count(*) FROM bodies") == [total - len(named)]
    assert {table: rows(store, f"SELECT * FROM {table} ORDER BY 1") for table in tables} == before
    assert invariants.check(store).findings == ()
    assert upkeep.prune(store, before=clock.now(), now=clock.now()) == Pruned()


@pytest.mark.parametrize(("seconds", "goals_pruned"), [(0, 0), (1, 1)])
def test_pruning_goes_by_the_end_of_a_goal(
    store: Store, clock: ManualClock, seconds: int, goals_pruned: int
) -> None:
    """A goal that was finished at the very moment is not older than it."""
    lived(store)

    done = upkeep.prune(store, before=clock.now() + timedelta(seconds=seconds), now=clock.now())

    assert done.goals == goals_pruned


@pytest.mark.parametrize("control", [Control.PAUSE, Control.ABORT])
def test_a_goal_that_may_go_on_keeps_its_texts(store: Store, clock: ManualClock, control: Control) -> None:
    """Aborted is the end, paused is not."""
    goal = new_goal(store)
    claimed = claim(store, goal)
    take_turn(store, claimed, 1)
    close(store, claimed)
    goals.stop(store, goal, control, now=clock.now())
    clock.advance(10)

    assert upkeep.prune(store, before=clock.now(), now=clock.now()).goals == int(control is Control.ABORT)


def test_a_goal_that_is_reopened_meanwhile_is_left_whole(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look and the commit a user edits it: nothing of it is pruned."""
    lived(store)
    clock.advance(10)
    writing = store.writing

    def edited(*, durable: bool = True) -> object:
        rows(store, "UPDATE goals SET status = 'ACTIVE' WHERE id = 1")
        return writing(durable=durable)

    monkeypatch.setattr(store, "writing", edited)

    assert upkeep.prune(store, before=clock.now(), now=clock.now()) == Pruned()


def test_what_was_pruned_reads_as_pruned(store: Store, clock: ManualClock) -> None:
    """Turns, contexts and checks say so; a reopened goal renders its next context as ever."""
    lived(store)
    clock.advance(10)
    upkeep.prune(store, before=clock.now(), now=clock.now())
    goal = goals.get(store, 1)

    shown = turns.turns(store, goal, full=True)
    _, [context] = contexts.stored_contexts(store, goal, 1)
    with store.reading() as connection:
        [check] = reading.checks(connection, 1)
    seen = snapshot.snapshot(store, 1, now=clock.now())

    assert {
        (turn["text"], call["arguments"], call["result"]) for turn in shown for call in turn["calls"]
    } == {("(pruned)",) * 3}
    assert [call["outcome"] for turn in shown for call in turn["calls"]] == ["success", "success"]
    assert (context.text, check.tail) == ("(pruned)", "(pruned)")
    assert [action.brief for action in seen.actions] == ["", ""]


def test_vacuum_gives_space_back(store: Store, clock: ManualClock) -> None:
    """After much was pruned the store is smaller, and as sound as before."""
    goal = new_goal(store)
    claimed = claim(store, goal)
    for seq in range(1, 30):
        said = reply("shell", prefix=f"t{seq}-", usage=Usage(1, output=1))
        body = "".join(chr(33 + (seq * n * n) % 90) for n in range(9_000))
        outcome(store, claimed, intent(store, claimed, said, seq=seq), record(f"t{seq}-0", body=body))
    close(store, claimed, DONE, finished(store))
    clock.advance(1)
    upkeep.prune(store, before=clock.now(), now=clock.now())

    before, after = upkeep.vacuum(store)

    assert after < before or store.path is None  # A server keeps the space for what comes next.
    assert invariants.check(store).findings == ()
