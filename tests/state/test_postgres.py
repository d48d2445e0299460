"""A store on a PostgreSQL server: what goes wrong with servers, and the clock and the locks that machines share."""

from __future__ import annotations

import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from goalmode.domain.work import StatePatch, WorkState, apply
from goalmode.errors import BadInput, NotAllowed, StoreBusy, StoreError
from goalmode.state import goals, journal, postgres, reading_turns, snapshot, wakeups
from goalmode.state import tables as t
from goalmode.state.engine import database_at
from goalmode.state.locks import LockGate
from goalmode.state.owner import LEASE_MS, Owner
from goalmode.state.store import Store
from scripts.postgres import Cluster, cluster
from tests import stores
from tests.state.builders import (
    claim,
    close,
    intent,
    new_goal,
    outcome,
    record,
    reply,
    rows,
    take_turn,
    try_claim,
)
from tests.stores import Stores

pytestmark = pytest.mark.postgres


@pytest.fixture
def url(new_stores: Stores, tmp_path: Path) -> str:
    return new_stores.new(tmp_path / "unused")


@pytest.fixture
def real(url: str) -> Iterator[Store]:
    """A store in real time: its leases are counted on the server's clock."""
    with Store(url, busy_seconds=5) as opened:
        yield opened


@pytest.fixture(scope="module")
def own() -> Iterator[Cluster]:
    """A server that may be stopped: nobody else uses it."""
    with cluster() as made:
        yield made


def with_(url: str, **changes: Any) -> str:
    return sa.make_url(url).set(**changes).render_as_string(hide_password=False)


def refusal(url: str, *, readonly: bool = False) -> str:
    """The one line with which the store is refused: without the password, and without details of rows."""
    with pytest.raises(StoreError) as caught:
        Store(url, readonly=readonly, busy_seconds=2)
    line = str(caught.value)
    assert "\n" not in line
    assert "canary" not in line
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    return line


# What is wrong with the URL.


@pytest.mark.parametrize("readonly", [False, True])
def test_a_wrong_password_is_not_repeated(url: str, readonly: bool) -> None:
    """C: the line says which store and that it is the password; the password is nowhere in it."""
    line = refusal(with_(url, password="canary-word"), readonly=readonly)

    assert "password authentication failed" in line
    assert f"store postgresql+psycopg://postgres@127.0.0.1:{sa.make_url(url).port}/" in line


def test_a_password_among_the_options_is_not_repeated(url: str) -> None:
    """libpq takes it there too; what else is there is shown, since it belongs to the store's name."""
    hidden = sa.make_url(url).set(password=None)
    hidden = hidden.update_query_dict({"password": "canary-word", "sslmode": "prefer"})

    line = refusal(str(hidden.render_as_string(hide_password=False)))

    assert "?sslmode=prefer: " in line


def test_an_unknown_database_is_named(url: str) -> None:
    """C: it is not made: who may do that is the server's business."""
    assert 'database "nowhere" does not exist' in refusal(with_(url, database="nowhere"))


def test_an_unreachable_host_is_told_at_once(url: str) -> None:
    """C: a server that was never there is not waited for."""
    started = time.monotonic()

    assert "refused" in refusal(with_(url, port=9))
    assert time.monotonic() - started < 5


def test_a_database_of_something_else_is_left_alone(new_stores: Stores, tmp_path: Path) -> None:
    """Nothing is added to it."""
    other = new_stores.nothing(tmp_path / "unused")
    stores.rows(other, "CREATE TABLE songs (id INTEGER)")

    assert "is not a goalmode store (a database of something else)" in refusal(other)
    assert stores.rows(other, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'") == ["songs"]


def test_a_newer_store_is_refused(url: str) -> None:
    """B142: with both versions, for reading and for writing."""
    stores.rows(url, "UPDATE alembic_version SET version_num = '9999'")

    for readonly in (False, True):
        assert "has schema 9999, this goalmode knows up to" in refusal(url, readonly=readonly)


def test_reading_makes_nothing(new_stores: Stores, tmp_path: Path) -> None:
    """An empty database is prepared by writing only."""
    empty = new_stores.nothing(tmp_path / "unused")

    assert "has no schema yet" in refusal(empty, readonly=True)
    assert stores.rows(empty, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'") == []
    assert not database_at(empty).is_there()
    Store(empty).close()
    assert database_at(empty).is_there()


def test_both_names_of_the_scheme_mean_the_same(url: str) -> None:
    """`postgresql://` is what other programs call it."""
    plain = url.replace("postgresql+psycopg", "postgresql")

    assert database_at(plain).name == database_at(url).name


def test_without_the_driver_the_extra_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is installed without PostgreSQL by default."""

    def missing(*_: object, **__: object) -> None:
        raise ModuleNotFoundError("No module named 'psycopg'", name="psycopg")

    monkeypatch.setattr(postgres.sa, "create_engine", missing)

    assert "pip install 'goalmode[postgres]'" in refusal(with_(url, database="not seen yet"))


def test_details_of_rows_are_not_told(real: Store) -> None:
    """What the server says beside its message holds the values of whole rows."""
    new_goal(real, "canary objective")

    with pytest.raises(StoreError) as caught, real.writing() as connection:
        connection.exec_driver_sql("UPDATE goals SET status = 'NAPPING'")

    assert "ck_goals_status" in str(caught.value)
    assert "canary" not in str(caught.value)


def test_a_backup_is_the_servers_business(real: Store, tmp_path: Path) -> None:
    """The command that makes one is said."""
    with pytest.raises(NotAllowed, match="pg_dump"):
        real.database.copy_to(tmp_path / "copy")


@pytest.mark.parametrize(
    "text",
    ["\x00", "a\x00b\ud800", "\\u0000 \\x00 %s %(a)s ?", "'; DROP TABLE goals; --", "𝔘nicode 中文 \u202e"],
)
def test_any_text_can_be_stored_and_comes_back(real: Store, text: str) -> None:
    """In columns, in JSON and in bodies: what the server's types refuse is made visible first."""
    goal = new_goal(real, text)
    claimed = claim(real, goal)
    turn = intent(real, claimed, reply("shell", text=text))
    outcome(
        real,
        claimed,
        turn,
        record("c0", body=text),
        work=apply(WorkState(), StatePatch(key_info=text), wakeup=1),
    )
    journal.event(real, goal.id, "said", {text: [text]}, now=real.clock.now())
    seen = snapshot.snapshot(real, goal.id, now=real.clock.now())
    wanted = real.clean(text)

    assert (seen.goal.objective, seen.work.checkpoint.key_info) == (wanted, wanted)
    with real.reading() as connection:
        assert connection.execute(sa.select(t.events.c.data).where(t.events.c.kind == "said")).scalar() == {
            wanted: [wanted]
        }
        [shown] = reading_turns.turns(connection, goal.id)
        assert wanted in reading_turns.texts(connection, [shown]).values()


# Leases.


def test_leases_are_counted_on_the_servers_clock(real: Store) -> None:
    """Not on the clock of any machine, and not on the time at which the transaction began."""
    claim(real, new_goal(real))
    [(lease, now)] = rows(
        real, "SELECT lease_ms, CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint) FROM wakeups"
    )

    assert 0 <= now - (lease - LEASE_MS) < 5_000
    with real.writing() as connection:
        first = connection.execute(sa.select(real.lease_now())).scalar_one()
        connection.exec_driver_sql("SELECT pg_sleep(0.02)")
        later = connection.execute(sa.select(real.lease_now())).scalar_one()
    assert later >= first + 20


def test_a_living_owner_of_another_machine_keeps_its_goal(url: str, real: Store) -> None:
    """Another boot id means another machine here, and does not end a lease."""
    elsewhere = replace(Owner.current(), name="elsewhere", boot_id="another", pid=2**22 + 1)
    with Store(url, owner=elsewhere) as there:
        goal = new_goal(there)
        claim(there, goal)
    with real.reading() as connection:
        running = wakeups.open_wakeup(connection, goal.id)
    assert running is not None

    assert not real.is_void(running.lease)
    rows(real, "UPDATE wakeups SET lease_ms = lease_ms - ?", LEASE_MS + 1)
    with real.reading() as connection:
        running = wakeups.open_wakeup(connection, goal.id)
    assert running is not None
    assert real.is_void(running.lease)


def test_the_tools_locks_are_those_of_the_database(url: str, real: Store) -> None:
    """However its host is spelt; in a directory of the user's, for that user alone."""
    spelt = with_(url, host="localhost")
    with Store(spelt) as same, Store(stores.SERVER) as other:
        assert same.lock_file(1, 2) == real.lock_file(1, 2)
        assert other.lock_file(1, 2) != real.lock_file(1, 2)
    claim(real, new_goal(real))

    with LockGate(real.lock_file(1, 1), 1, lambda: wakeups.current_fence(real, 1)).enter("c0"):
        assert stat.S_IMODE(real.lock_file(1, 1).parent.stat().st_mode) == 0o700
        assert stat.S_IMODE(real.lock_file(1, 1).stat().st_mode) == 0o600


# Waiting, and being ended.


@contextmanager
def holding(url: str, goal: int) -> Iterator[Any]:
    """A process that has been stopped in the middle of a transaction with a goal."""
    import psycopg

    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        connection.execute("SELECT id FROM goals WHERE id = %s FOR UPDATE", [goal])
        yield connection
        connection.close()


def test_a_goal_that_stays_locked_is_a_busy_store(url: str) -> None:
    """After the bounded wait one line says so, and nothing was written; other goals go on."""
    with Store(url, busy_seconds=0.3) as store:
        goal, free = new_goal(store), new_goal(store)
        with holding(url, goal.id):
            started = time.monotonic()
            with pytest.raises(StoreBusy, match="is busy"):
                claim(store, goal)

            assert 0.2 < time.monotonic() - started < 10
            assert goals.get(store, goal.id).fence == 0
            assert try_claim(store, free) is not None


def test_a_process_stopped_in_a_transaction_is_ended_by_the_server(url: str, real: Store) -> None:
    """It keeps a goal's row for so long and no longer; what it had not committed is gone."""
    goal = new_goal(real)
    with holding(url, goal.id) as stopped:
        stopped.execute("UPDATE goals SET fence = 99")
        stopped.execute("SET idle_in_transaction_session_timeout = '1s'")

        assert try_claim(real, goal) is not None
    with real.writing() as connection:
        [seconds] = connection.exec_driver_sql("SHOW idle_in_transaction_session_timeout").one()
    assert seconds == f"{postgres.IDLE_SECONDS}s"


def test_a_connection_that_is_ended_between_two_turns_is_not_noticed(real: Store) -> None:
    """The server was told to end it, or a firewall did: the next statement has a new one."""
    claimed = claim(real, new_goal(real))
    take_turn(real, claimed, 1)
    end_sessions(real.url)

    take_turn(real, claimed, 2)

    assert rows(real, "SELECT count(*) FROM turns") == [2]


def test_a_connection_that_is_ended_in_a_commit_writes_nothing(real: Store) -> None:
    """One line names the store; the turn is not there in part, and the next one goes through."""
    claimed = claim(real, new_goal(real))

    def write() -> None:
        with real.writing() as connection:
            wakeups.guard(real, connection, claimed, tokens=99)
            end_sessions(real.url)
            connection.exec_driver_sql("SELECT 1")

    with pytest.raises(StoreError, match="the connection was lost"):
        write()

    assert rows(real, "SELECT tokens FROM wakeups") == [0]
    take_turn(real, claimed, 1)


def end_sessions(url: str) -> None:
    stores.rows(
        url,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND application_name = 'goalmode'",
    )


def test_a_server_that_starts_again_is_waited_for(own: Cluster) -> None:
    """A turn that is stored meanwhile waits, and nothing is lost or half-written."""
    with Store(own.url, busy_seconds=120) as store:
        claimed = claim(store, new_goal(store))
        turn = intent(store, claimed, reply("shell"))
        own.stop("immediate")
        done = threading.Thread(target=outcome, args=(store, claimed, turn, record("c0")))
        done.start()
        done.join(0.5)
        assert done.is_alive()
        own.start()
        done.join(120)

        assert not done.is_alive()
        with store.reading() as connection:
            outcomes = connection.exec_driver_sql("SELECT outcome FROM tool_calls").scalars().all()
        assert outcomes == ["success"]
        close(store, claimed)


def test_a_connection_that_is_lost_while_it_is_found_out_is_an_error(
    own: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is not taken for another one: its locks are where they were before, and are when it is back."""
    expected = database_at(own.url).locks()
    monkeypatch.setattr(postgres, "_known", {})
    with monkeypatch.context() as lost:
        lost.setattr(postgres, "_IDENTITY", "SELECT pg_terminate_backend(pg_backend_pid())")
        with pytest.raises(StoreError):
            database_at(own.url).locks()

    assert database_at(own.url).locks() == expected


def test_a_user_who_may_not_ask_what_the_server_is_has_the_url(
    own: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the database is known by its address."""
    monkeypatch.setattr(postgres, "_known", {})
    stores.rows(own.url, "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
    stores.rows(own.url, "CREATE ROLE curious LOGIN PASSWORD 'canary'")
    try:
        curious = database_at(with_(own.url, username="curious", password="canary"))
        assert isinstance(curious, postgres.PostgresDatabase)
        assert curious._found_out(5).identity == ("127.0.0.1", own.port, "postgres")
    finally:
        stores.rows(own.url, "GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC")
        stores.rows(own.url, "DROP ROLE curious")


def test_a_server_that_stays_away_is_an_error(own: Cluster) -> None:
    """After the bounded wait; when it is back, the same store goes on, and what was committed is there."""
    with Store(own.url, busy_seconds=3) as store:
        claimed = claim(store, new_goal(store))
        take_turn(store, claimed, 1)
        own.stop()
        try:
            started = time.monotonic()
            with pytest.raises(StoreError, match="refused"):
                take_turn(store, claimed, 2)
            assert time.monotonic() - started < 20
            with pytest.raises(StoreError):
                wakeups.renew(store, [claimed])
        finally:
            own.start()

        take_turn(store, claimed, 2)
        with store.reading() as connection:
            mine = sa.text("SELECT count(*) FROM turns WHERE wakeup = :wakeup")
            assert connection.execute(mine, {"wakeup": claimed.wakeup}).scalar_one() == 2


def test_a_standby_is_read_only(real: Store, url: str) -> None:
    """As is a database that is set so: reading goes on, writing is refused in one line."""
    goal = new_goal(real)
    name = sa.make_url(url).database
    stores.rows(stores.SERVER, f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')

    with Store(url) as store:
        assert goals.get(store, goal.id).id == goal.id
        with pytest.raises(StoreError, match="is read-only"):
            new_goal(store)


def test_a_url_that_is_none_repeats_nothing() -> None:
    """It may hold a password anywhere."""
    for wrong in ("postgresql://u:canary@h", "postgresql://u:canary@h:port/db", "postgresql:///"):
        with pytest.raises(BadInput) as caught:
            database_at(wrong)
        assert "canary" not in str(caught.value)
