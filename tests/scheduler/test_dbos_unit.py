"""DBOS as a carrier, without a server of PostgreSQL: names, refusals, and what is asked of the library."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest

from goalmode.cli.main import call
from goalmode.errors import BadInput, StoreError
from goalmode.scheduler import dbos
from goalmode.scheduler.dbos import Dbos, executor_id, queue_of, workflow_id
from goalmode.state import reading
from goalmode.state.deliveries import Delivery
from goalmode.state.owner import Owner
from goalmode.state.store import Store

SERVER = "postgresql+psycopg://me:secret-1234@127.0.0.1:9/goals"


class Client:
    """Notes what is asked of it; fails if it is told to."""

    def __init__(self) -> None:
        self.enqueued: list[Any] = []
        self.cancelled: list[str] = []
        self.deleted: list[str] = []
        self.trouble: Exception | None = None

    def enqueue_in_transaction(self, connection: Any, options: Any, *arguments: int) -> None:
        self._may_fail()
        self.enqueued.append((connection, options, arguments))

    def cancel_workflows(self, ids: list[str]) -> None:
        self._may_fail()
        self.cancelled += ids

    def delete_workflows(self, ids: list[str]) -> None:
        self.deleted += ids

    def _may_fail(self) -> None:
        if self.trouble is not None:
            raise self.trouble


class Library:
    """What of DBOS the repair asks for."""

    def __init__(self) -> None:
        self.done: list[tuple[str, Any]] = []
        self.trouble: Exception | None = None
        self.DBOS = self

    def migrate(self, url: str) -> None:
        if self.trouble is not None:
            raise self.trouble
        self.done.append(("migrate", url))

    def register_queue(self, name: str, **options: Any) -> None:
        self.done.append((name, options))


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    made = Library()
    monkeypatch.setattr(dbos, "_library", lambda: made)
    return made


@pytest.fixture
def client() -> Client:
    return Client()


@pytest.fixture
def carrier(store: Store, library: Library, client: Client) -> Dbos:
    made = Dbos(store, ["a", "b"], concurrency=3, poll_seconds=0.5)
    made._client = client
    return made


def test_names() -> None:
    """A workflow for each delivery, a queue for each label, an executor for each process."""
    here = Owner.current()

    assert workflow_id(17, 3) == "g17:d3"
    assert queue_of("build box") == "goalmode:build box"
    assert executor_id(here).startswith(f"{here.name}:")
    assert executor_id(here) != executor_id(replace(here))


def test_a_file_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The line says what is needed, and what a file can do without it."""
    with pytest.raises(BadInput) as refused:
        dbos.require("goals.sqlite")

    text = str(refused.value)
    assert text.startswith("engine: 'dbos' is not valid: it needs a store on PostgreSQL")
    assert "postgresql+psycopg://USER@HOST/DATABASE" in text
    assert "goals.sqlite is a file" in text


def test_the_command_refuses_a_file_and_makes_none(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """One line, exit code 2, nothing written."""
    path = tmp_path / "goals.sqlite"

    assert call(["serve", "--engine", "dbos", "--store", str(path)]) == 2

    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "it needs a store on PostgreSQL" in err
    assert not path.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--engine", "redis"], "'redis' is not one of 'store', 'dbos'"),
        (["--engine", "dbos", "--once"], "once: '--engine dbos' is not valid: for --engine store"),
        (["--engine", "dbos", "--label", " "], "label: '' is not valid"),
    ],
)
def test_the_command_refuses(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What no server can be started with."""
    assert call(["serve", "--store", SERVER, *arguments]) == 2

    _, err = capsys.readouterr()
    assert said in err
    assert "secret-1234" not in err


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The line says how it is installed; the store is not even looked for."""
    monkeypatch.setitem(sys.modules, "dbos", None)

    assert call(["serve", "--store", SERVER, "--engine", "dbos"]) == 2

    _, err = capsys.readouterr()
    assert "engine: 'dbos' is not valid: it needs the extra: pip install 'goalmode[dbos]'" in err


def test_a_library_that_is_broken_is_not_called_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Something that it needs is not there: that is what is said."""

    def broken(name: str) -> Any:
        raise ModuleNotFoundError("No module named 'yaml'", name="yaml")

    monkeypatch.setattr(dbos, "import_module", broken)

    with pytest.raises(ModuleNotFoundError, match="yaml"):
        dbos.require(SERVER)


def test_where_a_store_is() -> None:
    """By its URL alone: nothing is opened."""
    assert reading.on_server(SERVER)
    assert not reading.on_server("sqlite:////srv/goals.sqlite")


def test_a_delivery_is_enqueued(carrier: Dbos, client: Client) -> None:
    """In the transaction that it was given, on its label's queue, with numbers and nothing else."""
    connection = object()

    carrier.enqueue(connection, Delivery(17, 3, "a", replaces=False))

    options = {
        "workflow_name": "goalmode.deliver",
        "queue_name": "goalmode:a",
        "workflow_id": "g17:d3",
        "app_version": "1",
    }
    assert client.enqueued == [(connection, options, (17, 3))]


def test_what_is_of_no_use_goes(carrier: Dbos, client: Client) -> None:
    """A lost forerunner is cancelled; what came before a forerunner is deleted; nothing of it is worth an error."""
    carrier.forget(
        [
            Delivery(1, 1, "a", replaces=False),
            Delivery(2, 2, "a", replaces=True),
            Delivery(3, 9, "a", replaces=False),
        ]
    )

    assert client.cancelled == ["g2:d1"]
    assert client.deleted == ["g3:d7"]
    client.trouble = RuntimeError("no connection")
    carrier.forget([Delivery(2, 3, "a", replaces=True)])


def test_tables_that_are_gone_are_made_again(
    carrier: Dbos, client: Client, library: Library, store: Store
) -> None:
    """Before the next look, once; the queues too."""
    carrier.prepare()
    assert library.done == []
    client.trouble = RuntimeError("relation does not exist")
    with pytest.raises(StoreError):
        carrier.enqueue(object(), Delivery(1, 1, "a", replaces=False))

    carrier.prepare()
    carrier.prepare()

    queue = {"worker_concurrency": 3, "polling_interval_sec": 0.5, "on_conflict": "always_update"}
    assert library.done == [("migrate", store.url), ("goalmode:a", queue), ("goalmode:b", queue)]


def test_what_dbos_says_may_hold_the_password(carrier: Dbos, client: Client, library: Library) -> None:
    """So only the kind of its error is told, as the store's trouble; the repair is tried again."""
    client.trouble = library.trouble = RuntimeError(f"cannot reach {SERVER}")
    with pytest.raises(StoreError):
        carrier.enqueue(object(), Delivery(1, 1, "a", replaces=False))

    for _ in range(2):
        with pytest.raises(StoreError) as failed:
            carrier.prepare()
        assert str(failed.value).endswith("DBOS failed (RuntimeError)")
        assert "secret-1234" not in str(failed.value)
