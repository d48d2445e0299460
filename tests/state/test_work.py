"""The work state in the store: what changed is written, and nothing else; marks of progress are stored with it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from goalmode.domain.work import MAX_REPORTS, StatePatch, WorkState, apply, with_report
from goalmode.errors import Fenced
from goalmode.state import snapshot
from goalmode.state.store import Store
from tests.state.builders import claim, close, intent, new_goal, outcome, reply, rows

CHECKPOINTS = "SELECT wakeup FROM checkpoints ORDER BY id"


class Saver:
    """One wakeup that saves one patch a turn."""

    def __init__(self, store: Store) -> None:
        self.store, self.goal = store, new_goal(store)
        self.claimed, self.seq = claim(store, self.goal), 0
        self.work = WorkState()

    def save(self, work: WorkState) -> None:
        self.seq += 1
        turn = intent(self.store, self.claimed, reply(), seq=self.seq)
        outcome(self.store, self.claimed, turn, work=work, before=self.work)
        self.work = work

    def patch(self, **fields: object) -> None:
        self.save(apply(self.work, StatePatch(**fields), wakeup=self.claimed.seq))  # type: ignore[arg-type]

    def stored(self) -> WorkState:
        return snapshot.snapshot(self.store, self.goal.id, now=self.store.clock.now()).work


def test_files_that_were_written_are_noted_in_the_newest_checkpoint(store: Store) -> None:
    """A hundred files make one row: the store does not grow by the list with each of them."""
    saver = Saver(store)
    saver.patch(key_info="k", found=("report.md",))
    for number in range(100):
        saver.patch(written=((f"{number}.md", "aa"),))

    assert rows(store, CHECKPOINTS) == [1]
    assert saver.stored() == saver.work
    assert len(saver.stored().written) == 100


def test_files_are_noted_before_anything_was_saved(store: Store) -> None:
    """No checkpoint is claimed that the agent did not save; what it saves later is one."""
    saver = Saver(store)
    saver.patch(written=(("a.md", "aa"),))
    assert saver.stored().checkpoint.wakeup == 0

    saver.patch(summary="half way")
    assert rows(store, CHECKPOINTS) == [0, 1]
    assert saver.stored() == saver.work
    assert saver.stored().written == ("a.md",)


def test_the_oldest_reports_go_and_other_items_stay(store: Store) -> None:
    """What is dropped from the state is dropped from the store, and its number is not used again."""
    saver = Saver(store)
    saver.patch(done=("chapter 1",))
    work = saver.work
    for number in range(MAX_REPORTS + 2):
        work = with_report(work, "verify", str(number), wakeup=1)
        saver.save(work)

    assert saver.stored() == work
    assert rows(
        store, "SELECT min(number), max(number), count(*) FROM work_items WHERE provenance = 'host'"
    ) == [(4, MAX_REPORTS + 3, MAX_REPORTS)]


def test_an_old_owner_changes_no_item(store: Store) -> None:
    """Reports that would be dropped, and notes that would be made, stay as they are once the fence has grown."""
    saver = Saver(store)
    saver.patch(done=("chapter 1",), written=(("a.md", "aa"),))
    turn = intent(store, saver.claimed, reply(), seq=2)
    close(store, saver.claimed)
    claim(store, saver.goal)
    before = saver.stored()

    gone = replace(saver.work, items=(), written=("b.md",))
    with pytest.raises(Fenced):
        outcome(store, saver.claimed, turn, work=gone, before=saver.work, progress={"results": 1})

    assert saver.stored() == before


def test_marks_of_progress_are_stored_by_what_they_are_of(store: Store) -> None:
    """Those of the wakeup so far, with their sum; a driver that counts none leaves what is there."""
    saver = Saver(store)
    stored = "SELECT progress, progress_by FROM wakeups"
    assert rows(store, "SELECT progress, progress_by IS NULL FROM wakeups") in ([(0, 1)], [(0, True)])

    turn = intent(store, saver.claimed, reply())
    outcome(store, saver.claimed, turn, progress={"results": 2, "files": 1})
    assert rows(store, stored)[0][0] == 3
    turn = intent(store, saver.claimed, reply(), seq=2)
    outcome(store, saver.claimed, turn)
    assert rows(store, stored)[0][0] == 3

    close(store, saver.claimed, progress={"results": 2, "files": 1, "deliverables": 1})
    assert rows(store, stored)[0][0] == 4
