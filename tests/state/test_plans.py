"""What is asked again and again is found by an index in a store of 100,000 goals, 1,000 of them due."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event

from goalmode.domain.exits import GoalStatus
from goalmode.state import (
    due,
    goals,
    memory,
    outside,
    questions,
    reading,
    reading_turns,
    snapshot,
    timeline,
    wake_sources,
)
from goalmode.state import tables as t
from goalmode.state.store import Store
from goalmode.testing import ManualClock
from tests import stores
from tests.state.builders import claim, close, intent, new_goal, outcome, record, reply

GOALS, DUE = 100_000, 1_000
NOW = datetime(2030, 1, 1, tzinfo=UTC)
LABELS = {"here"}

SIZES = {
    "goals": {"": GOALS, "ix_goals_due": (DUE, 2, 1), "sqlite_autoindex_goals_1": (GOALS, 1)},
    "wakeups": {
        "": 3 * GOALS,
        "sqlite_autoindex_wakeups_1": (3 * GOALS, 3, 1),
        "sqlite_autoindex_wakeups_2": (3 * GOALS, 3, 1),
        "uq_wakeups_open": (10, 1),
    },
    "turns": {"": 30 * GOALS, "sqlite_autoindex_turns_1": (30 * GOALS, 10, 1)},
    "tool_calls": {
        "": 60 * GOALS,
        "sqlite_autoindex_tool_calls_1": (60 * GOALS, 2, 1),
        "ix_tool_calls_wakeup_id": (60 * GOALS, 20, 1),
    },
    "questions": {"": GOALS, "ix_questions_due": (10, 1), "sqlite_autoindex_questions_1": (GOALS, 1, 1)},
    "wake_sources": {"": GOALS, "ix_wake_sources_watched": (10, 1), "ix_wake_sources_open": (DUE, 1, 1)},
    "inbox": {"": GOALS, "ix_inbox_goal_id": (GOALS, 1, 1)},
    "events": {
        "": 9 * GOALS,
        "ix_events_goal_id": (9 * GOALS, 9, 1),
        "ix_events_servers": (3 * GOALS, 3, 1),
        "ix_events_shown": (3 * GOALS, 3, 1),
    },
    "memories": {"": GOALS, "ix_memories_workspace": (GOALS, 100, 1)},
}
"""What SQLite is told of its tables: rows, and how many of them share a key's first columns."""


PARTIAL = (
    "uq_wakeups_open",
    "ix_goals_due",
    "ix_questions_due",
    "ix_wake_sources_open",
    "ix_wake_sources_watched",
)
"""A walk through these is none: they hold what is open."""


@pytest.fixture(scope="module", params=["as it is", "with statistics"])
def store(
    _stores: stores.Stores, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Store]:
    """SQLite's file is told to be large; it is used without statistics too, as no goal ever makes any."""
    known = request.param == "with statistics"
    if stores.SERVER and not known:
        pytest.skip("a server has statistics")
    root = tmp_path_factory.mktemp("large")
    for made in stores.made(root):
        url = made.new(root / "goals.sqlite")
        with Store(url, clock=ManualClock(NOW)) as store:
            goal = new_goal(store)
            claimed = claim(store, goal)
            outcome(store, claimed, intent(store, claimed, reply("shell")), record("c0"))
            close(store, claimed)
        if stores.SERVER:
            _fill(url)
        elif known:
            _pretend(url)
        with Store(url, clock=ManualClock(NOW), readonly=True) as store:
            yield store


def _fill(url: str) -> None:
    """As many rows as the tests speak of, beside those of one goal that has lived."""
    own = {c.name for c in t.goals.columns} - {"id", "uid", "status", "next_wakeup_at", "host_label"}
    listed = ", ".join(f'"{name}"' for name in sorted(own))
    stores.rows(
        url,
        f"INSERT INTO goals (id, uid, status, next_wakeup_at, host_label, {listed})"
        " SELECT n, substr(md5(n::text), 1, 12), 'ACTIVE',"
        f" timestamptz '2030-01-01' + (n - {DUE}) * interval '1 s', 'here', {listed}"
        f" FROM goals, generate_series(2, {GOALS}) n WHERE id = 1",
    )
    for table, own_of, count in (
        (t.wakeups, "goal", GOALS),
        (t.turns, "wakeup", GOALS // 4),
        (t.tool_calls, "turn", GOALS // 4),
    ):
        names = [c.name for c in table.columns if c.name not in ("id", own_of)]
        listed = ", ".join(f'"{name}"' for name in names)
        stores.rows(
            url,
            f"INSERT INTO {table.name} (id, {own_of}, {listed}) SELECT n, n, {listed}"
            f" FROM {table.name}, generate_series(2, {count}) n WHERE id = 1",
        )
    stores.rows(url, "UPDATE tool_calls SET wakeup = id")
    some = f"created_at FROM goals WHERE id <= {GOALS // 4}"
    stores.rows(url, f"INSERT INTO inbox (goal, kind, text, at) SELECT id, 'note', '', {some}")
    stores.rows(url, f"INSERT INTO events (goal, kind, data, at) SELECT id, 'x', '{{}}', {some}")
    stores.rows(
        url,
        'INSERT INTO questions (goal, number, wakeup, kind, status, text, why, options, "default", session_id,'
        " answer, answered_by, asked_at)"
        f" SELECT id, 1, 1, 'input', 'answered', '', '', '[]', '', '', '', 'user', {some}",
    )
    stores.rows(
        url,
        "INSERT INTO wake_sources (goal, number, kind, spec, status, created_at)"
        f" SELECT id, 1, 'goal', '{{}}', 'fired', {some}",
    )
    stores.rows(
        url,
        "INSERT INTO memories (id, kind, text, workspace, goal, wakeup, turn, created_at)"
        " SELECT id, 'experience', 'tide ' || id || (SELECT string_agg(' w' || (id * n) % 9999, '')"
        f" FROM generate_series(1, 40) n), '/w' || id % 3, uid, 1, 1, {some} AND id % 5 = 0",
    )
    stores.rows(
        url,
        "INSERT INTO memories_fts (rowid, words) SELECT id, to_tsvector('simple', text) FROM memories",
    )
    stores.rows(url, "VACUUM ANALYZE")


def _pretend(url: str) -> None:
    stores.rows(url, "ANALYZE")
    stores.rows(url, "DELETE FROM sqlite_stat1")
    for table, indexes in SIZES.items():
        for index, sizes in indexes.items():
            told = " ".join(map(str, sizes)) if isinstance(sizes, tuple) else str(sizes)
            stores.rows(url, "INSERT INTO sqlite_stat1 VALUES (?, ?, ?)", table, index or None, told)


@contextmanager
def asked(store: Store) -> Iterator[list[tuple[str, Any]]]:
    """The statements that are made meanwhile."""
    seen: list[tuple[str, Any]] = []

    def note(_c: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if statement.lstrip().upper().startswith(("SELECT", "WITH")):
            seen.append((statement, parameters))

    event.listen(store._read, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(store._read, "before_cursor_execute", note)


def plan(store: Store, statement: str, parameters: Any) -> list[str]:
    """How the database would find the rows, a line a step."""
    with store.reading() as connection:
        raw = connection.connection.dbapi_connection
        if store.path is not None:
            assert raw is not None
            return [row[-1] for row in raw.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall()]
        import psycopg

        cursor = psycopg.ClientCursor(raw)
        return [row[0] for row in cursor.execute(f"EXPLAIN {statement}", parameters).fetchall()]


def walks(store: Store, lines: list[str]) -> list[str]:
    """Steps that look at every row of a table that grows; a partial index holds no more than what is open."""
    if store.path is None:
        return [line for line in lines if "Seq Scan on" in line and _table(line) in SIZES]
    scans = [line for line in lines if line.startswith("SCAN") and _table(line) in SIZES]
    return [line for line in scans if not any(f"INDEX {name}" in line for name in PARTIAL)]


def _table(line: str) -> str:
    words = line.split()
    return words[words.index("on") + 1] if "on" in words else words[1]


def whole_snapshot(store: Store) -> None:
    snapshot.snapshot(store, 1, now=NOW)
    snapshot.recent_results(store, 1, 100)


def lists(store: Store) -> None:
    with store.reading() as connection:
        reading.last_wakeup(connection, 1)
        reading_turns.turns(connection, 1, limit=50)
        reading.checks(connection, 1)
        reading.inbox(connection, 1)


def waits(store: Store) -> None:
    with store.reading() as connection:
        wake_sources.to_watch(connection, LABELS, beyond=0, limit=100)
        memory.relevant(connection, "/w", "Write the report.")


def recall(store: Store) -> None:
    with store.reading() as connection:
        memory.recall(connection, "/w1", "17005?")


def began_with(store: Store) -> None:
    with store.reading() as connection:
        outside.servers_of(connection, 1)


def happenings(store: Store) -> None:
    with store.reading() as connection:
        timeline.happenings(connection, 1)


def open_questions(store: Store) -> None:
    with store.reading() as connection:
        questions.every_open(connection)


QUESTIONS: dict[str, Callable[[Store], object]] = {
    "due": lambda store: due.goals_due(store, LABELS, NOW, limit=20),
    "due, much later": lambda store: due.goals_due(store, LABELS, NOW + timedelta(minutes=1), limit=20),
    "abandoned": lambda store: due.abandoned(store, LABELS),
    "defaults": lambda store: due.defaults_due(store, LABELS, NOW),
    "find": lambda store: goals.find(store, goals.get(store, 1).uid[:7]),
    "snapshot": whole_snapshot,
    "lists": lists,
    "waits": waits,
    "recall": recall,
    "servers": began_with,
    "happenings": happenings,
    "open questions": open_questions,
}


@pytest.mark.parametrize("name", QUESTIONS)
def test_no_table_that_grows_is_walked_through(store: Store, name: str) -> None:
    """By the database's own plan for each statement, not by the time it takes."""
    with asked(store) as statements:
        QUESTIONS[name](store)

    assert statements
    plans = {statement: plan(store, statement, values) for statement, values in statements}
    assert {s: lines for s, lines in plans.items() if walks(store, lines)} == {}


def test_the_due_are_read_in_order(store: Store) -> None:
    """From the index that holds those alone: none is sorted, and none that is not due is touched."""
    with asked(store) as statements:
        due.goals_due(store, LABELS, NOW, limit=20)

    lines = "\n".join(plan(store, *statements[0]))
    assert "ix_goals_due" in lines
    assert "Sort" not in lines
    assert "TEMP B-TREE" not in lines


def test_memories_are_found_by_their_words(store: Store) -> None:
    """By the index of full texts: GIN on a server, FTS5 in a file."""
    with asked(store) as statements:
        recall(store)

    lines = "\n".join(plan(store, *statements[0]))
    assert ("VIRTUAL TABLE INDEX" if store.path is not None else "ix_memories_fts_words") in lines


def test_open_questions_are_read_from_the_index_that_holds_those_alone(store: Store) -> None:
    """Those of all goals, for `goalmode questions`: what was answered years ago is not looked at."""
    with asked(store) as statements:
        open_questions(store)

    assert "ix_questions_due" in "\n".join(plan(store, *statements[0]))


def test_the_servers_of_a_wakeup_are_read_from_the_index_that_holds_those_alone(store: Store) -> None:
    """However many other events its goal has; most goals have no servers, and so not one row there."""
    with asked(store) as statements:
        began_with(store)

    assert "ix_events_servers" in "\n".join(plan(store, *statements[0]))


def test_happenings_are_read_from_the_index_of_what_is_shown(store: Store) -> None:
    """From its end, and no further than a page: events of single calls are many more."""
    with asked(store) as statements:
        happenings(store)

    [of_events] = [statement for statement in statements if "FROM events" in statement[0]]
    lines = "\n".join(plan(store, *of_events))
    assert "ix_events_shown" in lines
    assert "TEMP B-TREE" not in lines


def test_a_page_of_the_list_is_not_sorted(store: Store) -> None:
    """The newest goals are read backwards by their numbers."""
    with asked(store) as statements:
        goals.every(store, limit=50)

    lines = "\n".join(plan(store, *statements[0]))
    assert "Sort" not in lines
    assert "TEMP B-TREE" not in lines
    assert (
        store.path is not None
        or "Index Scan Backward using pk_goals" in lines
        or "Index Only Scan Backward" in lines
    )


def test_a_walk_is_seen(store: Store) -> None:
    """The test above would notice one."""
    everything = plan(store, f"SELECT id FROM goals WHERE status_detail = '{GoalStatus.ACTIVE}'", ())

    assert walks(store, everything)
