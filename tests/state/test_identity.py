"""What a server's database is, for the locks of its goals' tools: found out once, and never by a fault that passes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy.exc import DBAPIError, OperationalError

from goalmode.errors import StoreError
from goalmode.state import postgres
from goalmode.state.postgres import PostgresDatabase


class Refusal(Exception):
    """An error of the driver's."""

    def __init__(self, sqlstate: str | None) -> None:
        super().__init__("refused")
        self.sqlstate = sqlstate


class Server:
    """Stands in for SQLAlchemy's engine: what it says when it is asked what it is, one answer after the other."""

    dialect = object()

    def __init__(self, *answers: tuple[Any, ...] | DBAPIError) -> None:
        self.answers = list(answers)

    @contextmanager
    def connect(self) -> Iterator[Server]:
        yield self

    def exec_driver_sql(self, _statement: str) -> Server:
        return self

    def one(self) -> tuple[Any, ...]:
        answer = self.answers.pop(0)
        if isinstance(answer, DBAPIError):
            raise answer
        return answer


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes the database of a server that answers so."""

    def make(*answers: tuple[Any, ...] | DBAPIError) -> PostgresDatabase:
        monkeypatch.setattr(postgres, "_known", {})
        server = Server(*answers)
        monkeypatch.setattr(postgres.sa, "create_engine", lambda *_, **__: server)
        return PostgresDatabase.at("postgresql+psycopg://u@h:5/d")

    return make


def fault(sqlstate: str | None) -> OperationalError:
    return OperationalError("SELECT", {}, Refusal(sqlstate))


@pytest.mark.parametrize("sqlstate", ["42501", "42883"])
def test_a_server_that_does_not_tell_is_known_by_its_url(answers: Any, sqlstate: str) -> None:
    """Without the privilege, or without the function."""
    database = answers(fault(sqlstate))

    assert database._found_out(1).identity == ("h", 5, "d")


@pytest.mark.parametrize("sqlstate", ["57P01", "08006", "57014", "53300", "42601", None])
def test_a_fault_that_passes_is_told_and_nothing_of_it_kept(answers: Any, sqlstate: str | None) -> None:
    """The next one who asks is told the same as every other process: else two owners would lock in two places."""
    told = (7, 16384, "public")
    expected = answers(told).locks()
    database = answers(fault(sqlstate), told)

    with pytest.raises(StoreError):
        database.locks()

    assert postgres._known == {}
    assert database.locks() == expected
    assert database._found_out(1).identity == told
