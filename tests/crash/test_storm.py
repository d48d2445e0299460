"""Servers killed with -9 at random points: nothing committed is lost, nothing is done twice unmarked, every goal ends.

GOALMODE_CRASH_KILLS is how many kills, GOALMODE_CRASH_SEED what all that is random comes from.
"""

from __future__ import annotations

import os
import secrets
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from goalmode.inspection.contexts import stored_contexts
from goalmode.state import goals
from goalmode.state.store import Store
from tests import stores
from tests.crash import invariants
from tests.crash.conftest import Report
from tests.crash.marks import Marks
from tests.crash.storm import COMMITTED, SERVERS, Storm
from tests.stores import Stores

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("GOALMODE_CRASH_KILLS", "100"))
SEED = int(os.environ.get("GOALMODE_CRASH_SEED") or secrets.randbelow(2**32))

CALLS = """SELECT g.uid, w.seq, c.idem_key, c.brief, c.outcome FROM tool_calls c
JOIN wakeups w ON w.id = c.wakeup JOIN goals g ON g.id = w.goal WHERE c.tool = 'shell' ORDER BY c.id"""


def test_a_storm_of_kills(new_stores: Stores, tmp_path: Path, report: Report) -> None:
    """B41, B43, B47, B48: the store, the tools' own files and what came back to the provider all tell the same."""
    url = new_stores.new(tmp_path / "state" / "goals.sqlite")
    storm = Storm(url, tmp_path, SEED)
    began = time.monotonic()
    try:
        storm.rage(KILLS)
        _holds(storm)
    finally:
        report(f"seed {SEED}: {storm.kills} kills in {time.monotonic() - began:.0f} s over {SERVERS} servers")
    report(_figures(storm))


def _holds(storm: Storm) -> None:
    assert invariants.broken(storm.url) == []
    assert set(stores.rows(storm.url, "SELECT status FROM goals")) == {"DONE"}
    assert storm.stopped == [0] * SERVERS
    _nothing_committed_is_lost(storm)
    _nothing_is_done_twice_unmarked(storm)
    _interrupted_calls_are_told(storm)


def _nothing_committed_is_lost(storm: Storm) -> None:
    """What was there before a kill is there at the end as it was; so is what came back in a request."""
    for table, statement in COMMITTED.items():
        now = {id: rest for id, *rest in stores.rows(storm.url, statement)}
        lost = [id for id, rest in storm.kept[table].items() if now.get(id) != rest]
        assert lost == []
    outcomes = dict(stores.rows(storm.url, "SELECT call_id, outcome FROM tool_calls"))
    assert {id: outcomes.get(id) for id in storm.provider.came_back if outcomes.get(id) != "success"} == {}


def _nothing_is_done_twice_unmarked(storm: Storm) -> None:
    """Each key began once. What was begun again was interrupted before; what never began is called that."""
    outcomes = {key: outcome for _, _, key, _, outcome in stores.rows(storm.url, CALLS)}
    began: list[str] = []
    for number, workspace in storm.provider.workspaces.items():
        marks = Marks.of(workspace)
        began += marks.begun
        assert marks.overlaps() == []
        assert {word for words in storm.provider.plan(number) for word in words} == marks.done
        word_of = {line.key: line.word for line in marks.lines}
        for place, key in enumerate(marks.begun):
            again = any(word_of[later] == word_of[key] for later in marks.begun[place + 1 :])
            assert outcomes[key] == ("interrupted" if again else outcomes[key])
    assert [key for key, times in Counter(began).items() if times > 1] == []
    assert {outcomes[key] for key in began} <= {"success", "interrupted"}
    assert {key for key, outcome in outcomes.items() if outcome == "success"} <= set(began)


def _interrupted_calls_are_told(storm: Storm) -> None:
    """The context that the next wakeup began with says so of each, and of those that were never begun."""
    told = {"interrupted": "interrupted, not known whether it took effect", "skipped": "not run"}
    with Store(storm.url, readonly=True) as store:
        for uid, seq, _key, brief, outcome in stores.rows(storm.url, CALLS):
            if outcome not in told:
                continue
            _, [context] = stored_contexts(store, goals.find(store, uid), seq + 1)
            word = brief.split('" >>')[0].rsplit(" ", 1)[-1]
            lines = [
                line
                for line in context.text.splitlines()
                if f"- wakeup {seq}," in line and f' {word}"' in line
            ]
            assert [line for line in lines if line.endswith(told[outcome])], (uid, seq, word, outcome, lines)


def _figures(storm: Storm) -> str:
    def count(statement: str) -> Counter[str]:
        return Counter(map(str, stores.rows(storm.url, statement)))

    ended = invariants.endings(storm.url)
    calls: Counter[Any] = count("SELECT outcome FROM tool_calls WHERE tool = 'shell'")
    turns = count("SELECT state FROM turns")
    left = len(list(Path(f"{storm.url}-locks").glob("*"))) if not stores.SERVER else 0
    return (
        f"{len(storm.provider.workspaces)} goals, all done; {sum(ended.values())} wakeups, "
        f"{ended['INTERRUPTED']} of them interrupted; {turns['done']} turns, {len(storm.kept['turns'])} of them "
        f"seen before a kill: 0 lost; {turns['lost']} replies lost and charged; of the shell's calls "
        f"{calls['success']} succeeded, {calls['interrupted']} were interrupted and {calls['skipped']} never begun, "
        f"all told to the model; 0 done twice unmarked; {storm.resumed} times somebody had to resume a goal; "
        f"{left} lock files left"
    )
