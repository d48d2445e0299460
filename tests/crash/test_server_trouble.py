"""A PostgreSQL that crashes, stays away, is full or read-only for a while, in the middle of a run and of `serve`."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
import sqlalchemy as sa

from goalmode.cli.main import call as command_line
from scripts.postgres import Cluster, cluster
from tests import databases, stores
from tests.crash.marks import Marks
from tests.crash.served import SHORT_LEASE, Serving, done_properly, goal, serving
from tests.state.processes import PATIENCE, Other, another, until

pytestmark = [pytest.mark.slow, pytest.mark.postgres]

AWAY_SECONDS = 3.0


@pytest.fixture(scope="module")
def own() -> Iterator[Cluster]:
    """A server that may be stopped: nobody else uses it."""
    with cluster() as made:
        yield made


@pytest.fixture
def url(own: Cluster) -> Iterator[str]:
    """A database of it."""
    stores.rows(own.url, 'CREATE DATABASE "trouble"')
    yield sa.make_url(own.url).set(database="trouble").render_as_string(hide_password=False)
    databases.forget()
    stores.rows(own.url, 'DROP DATABASE "trouble" WITH (FORCE)')


def crashes(own: Cluster) -> None:
    """As after a loss of power, and up again at once."""
    own.stop("immediate")
    own.start()
    databases.forget()


def is_away(own: Cluster) -> None:
    own.stop("immediate")
    time.sleep(AWAY_SECONDS)
    own.start()
    databases.forget()


def ends_all_sessions(own: Cluster) -> None:
    """As a restarted pooler or a firewall does."""
    ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'trouble'"
    stores.rows(own.url, ended)
    databases.forget()


TROUBLES = [crashes, is_away, ends_all_sessions]


@pytest.mark.parametrize("trouble", TROUBLES)
def test_serve_goes_on_when_the_server_does(
    own: Cluster, url: str, tmp_path: Path, trouble: Callable[[Cluster], None]
) -> None:
    """B53: three times in the middle of a goal: it is waited out or told, and every wakeup is closed for its reason."""
    with serving(url, tmp_path, SHORT_LEASE) as served:
        for _ in range(3):
            trouble(own)
            served.works()

        *interrupted, last = served.finishes()
        says_nothing_secret(served.log, own)

    assert set(interrupted) <= {"INTERRUPTED"}
    assert last == "CURRENT_TASK_DONE"


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_run_is_gone_on_with_or_ends_in_one_line(
    own: Cluster, url: str, tmp_path: Path, trouble: Callable[[Cluster], None]
) -> None:
    """B53: where a commit was lost with the server the command fails and names the store; a later one goes on."""
    codes = []
    with goal(url, tmp_path) as (uid, workspace):
        marks = Marks.of(workspace)
        while (0 not in codes) and len(codes) < 10:
            log = tmp_path / f"log-{len(codes)}"
            with another(runs, url, str(log), uid) as run:
                code = run_to_its_end(run, workspace, (lambda: trouble(own)) if len(codes) < 2 else None)
            says_nothing_secret(log, own)
            assert code == 0 or "goalmode: " in log.read_text()
            codes.append(code)
        marks = Marks.of(workspace)

    assert codes[-1] == 0, codes
    assert set(codes[:-1]) <= {1}, codes
    done_properly(url, marks)
    assert stores.rows(url, "SELECT status FROM goals") == ["DONE"]


def runs(pipe: Connection, url: str, log: str, uid: str) -> None:
    """`goalmode run`, in this process."""
    out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for descriptor in (1, 2):
        os.dup2(out, descriptor)
    os._exit(command_line(["run", uid, "--store", url, "--json"]))


def run_to_its_end(run: Other, workspace: Path, trouble: Callable[[], None] | None) -> int | None:
    """Its exit code; the trouble comes when it has begun to work."""
    before = len(Marks.of(workspace).lines)
    if trouble is not None:
        until(lambda: len(Marks.of(workspace).lines) > before or not run.process.is_alive(), what="it works")
        trouble()
    run.process.join(PATIENCE)
    return run.process.exitcode


def says_nothing_secret(log: Path, own: Cluster) -> None:
    said = log.read_text()
    assert own.password not in said
    assert "Traceback" not in said
    assert all(json.loads(line) for line in said.splitlines() if line.startswith("{"))


def test_a_full_server_is_told_and_gone_on_from(own: Cluster, url: str, tmp_path: Path) -> None:
    """B55: by the error that it gives where it has no room; what could not be stored did not run."""
    with serving(url, tmp_path, SHORT_LEASE) as served:
        stores.rows(url, _NO_ROOM)
        served.gives_up("the server's disk is full")
        stores.rows(url, "DROP TRIGGER no_room ON turns")

        goes_on(served)


def test_a_standby_is_told_and_gone_on_from(own: Cluster, url: str, tmp_path: Path) -> None:
    """B57: a server that has become read-only, as after a fail-over, until it may write again."""
    with serving(url, tmp_path, SHORT_LEASE) as served:
        stores.rows(own.url, "ALTER DATABASE trouble SET default_transaction_read_only = on")
        ends_all_sessions(own)
        served.gives_up("is read-only")
        stores.rows(own.url, "ALTER DATABASE trouble RESET default_transaction_read_only")
        ends_all_sessions(own)

        goes_on(served)


_NO_ROOM = """
    CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$;
    CREATE TRIGGER no_room BEFORE INSERT ON turns EXECUTE FUNCTION no_room();
"""


def goes_on(served: Serving) -> None:
    *interrupted, last = served.finishes()
    assert set(interrupted) == {"INTERRUPTED"}
    assert last == "CURRENT_TASK_DONE"
