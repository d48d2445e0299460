"""`db`: the store itself, as a user looks after it."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import make_url

from goalmode.errors import StoreError
from goalmode.state import locks
from goalmode.state.reading import HEAD
from goalmode.testing import Stub
from goalmode.testing.steps import tool

WRITE = tool("shell", {"command": "echo x > a.txt"})
DONE = tool("complete", {"status": "success", "summary": "a.txt is written."})


@pytest.fixture
def done(cli: Any, serve: Callable[..., Stub]) -> str:
    """A goal that is done."""
    uid: str = cli.new("--deliverable", "a.txt", url=serve([WRITE, DONE]).base_url)
    assert cli("run", uid).code == 0
    return uid


def test_upgrade_makes_a_store_and_says_its_schema(cli: Any) -> None:
    """Twice is once."""
    first, again = cli("db", "upgrade"), cli("db", "upgrade", "--json")

    assert (first.code, first.out) == (0, f"{cli.name}: schema {HEAD}\n")
    assert again.json == {"store": cli.name, "schema": HEAD, "notices": []}


def test_a_sound_store_is_called_sound(cli: Any, done: str) -> None:
    """With how much was looked at, for people and for programs."""
    told, said = cli("db", "check"), cli("db", "check", "--json")

    assert (told.code, told.out) == (0, f"{cli.name}: sound; 1 goal, 1 wakeup, 2 turns\n")
    assert said.json == {"store": cli.name, "goals": 1, "wakeups": 1, "turns": 2, "findings": []}
    assert cli("db", "check", "-q").out == ""


def test_what_is_wrong_is_listed_and_exits_with_1(cli: Any, done: str) -> None:
    """Each finding names its goal and the rule; --quiet keeps them."""
    cli.sql("UPDATE goals SET spent_turns = 9")

    told, said = cli("db", "check", "--quiet"), cli("db", "check", "--json")

    line = "spent_turns is 9, its turns make 2"
    assert (told.code, told.out) == (1, f"{done}: totals: {line}\n")
    assert said.code == 1
    assert said.json["findings"] == [{"goal": done, "rule": "totals", "detail": line}]
    assert cli("db", "check").out.endswith("1 finding; 1 goal, 1 wakeup, 2 turns\n")


@pytest.mark.sqlite
def test_a_backup_is_a_store(cli: Any, done: str, tmp_path: Path) -> None:
    """It is for its user alone, and every command reads it."""
    target = tmp_path / "copy.sqlite"

    made = cli("db", "backup", str(target), "--json")

    assert (made.code, made.json) == (
        0,
        {"store": cli.name, "backup": str(target), "bytes": target.stat().st_size},
    )
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    shown = [cli("show", done, "--json", *where).json for where in ((), ("--store", str(target)))]
    assert shown[0] == shown[1]


@pytest.mark.sqlite
def test_a_backup_overwrites_nothing(cli: Any, done: str, tmp_path: Path) -> None:
    """An existing file is refused by name, and is as it was."""
    target = tmp_path / "there"
    target.write_text("mine")

    refused = cli("db", "backup", str(target))

    assert (refused.code, target.read_text()) == (1, "mine")
    assert f"{target}: is there already" in refused.line()


@pytest.mark.postgres
def test_a_servers_database_is_backed_up_by_its_own_tools(cli: Any, done: str, tmp_path: Path) -> None:
    """The command that does it is said, without a password."""
    refused = cli("db", "backup", str(tmp_path / "copy"))

    assert refused.code == 1
    assert "pg_dump" in refused.line()
    assert not (tmp_path / "copy").exists()


def test_vacuum_says_what_it_gave_back(cli: Any, done: str) -> None:
    """Bytes before and after; the store is as sound as it was."""
    told, said = cli("db", "vacuum"), cli("db", "vacuum", "--json")

    assert told.code == said.code == 0
    assert " bytes, " in told.out
    assert set(said.json) == {"store", "bytes_before", "bytes"}
    assert cli("db", "check").code == 0


def test_pruning_says_how_much_and_leaves_the_rest(cli: Any, done: str) -> None:
    """What was said is gone and reads so; what was done is still there."""
    before = cli("show", done, "--json").json
    kept = cli("db", "prune", "--older-than", "1d")

    pruned = cli("db", "prune", "--older-than", "0", "--json")

    assert kept.out == "0 goals: 0 texts pruned, 0 bytes\n"
    assert pruned.json["goals"] == 1
    assert pruned.json["bytes"] > 0
    assert cli("show", done, "--json").json == before
    assert "(pruned)" in cli("turns", done, "--full").out
    assert cli("context", done).out == "(pruned)"
    assert cli("why", done).code == 0
    assert cli("db", "check").code == 0
    assert "db vacuum" not in cli("db", "prune", "--older-than", "0").out


def test_a_goal_in_the_middle_is_not_pruned(cli: Any) -> None:
    """However old it is."""
    uid = cli.new()

    assert cli("db", "prune", "--older-than", "0", "--json").json["goals"] == 0
    assert cli("show", uid).code == 0


@pytest.mark.parametrize("span", ["", "soon", "-1d", "1y", "nan", "1e99"])
def test_a_span_that_is_none_is_refused(cli: Any, done: str, span: str) -> None:
    """B25: field and value are named, and nothing is pruned."""
    before = cli.rows()

    refused = cli("db", "prune", "--older-than", span)

    assert refused.code == 2
    assert "older-than" in refused.line()
    assert cli.rows() == before


@pytest.mark.sqlite
@pytest.mark.parametrize(
    "command",
    [("check",), ("vacuum",), ("prune", "--older-than", "1d"), ("backup", "copy")],
    ids=lambda c: c[0],
)
def test_a_store_that_is_not_there_is_not_made(cli: Any, command: tuple[str, ...]) -> None:
    """Only `upgrade` makes one."""
    refused = cli("db", *command)

    assert (refused.code, refused.out) == (1, "")
    assert f"{cli.name}: is not there yet" in refused.line()
    assert not cli.store.exists()


def test_without_a_command_it_says_what_there_is(cli: Any) -> None:
    """Like every group."""
    assert "prune" in cli("db").out


@pytest.mark.parametrize(
    "url", ["mysql://u:secret@h/db", "oracle://h/db", "postgresql+asyncpg://u:secret@h/db"]
)
def test_another_database_is_refused_with_what_is_supported(cli: Any, url: str) -> None:
    """C: one line says which stores there are; a password in the URL is not repeated."""
    refused = cli("list", "--store", url)

    assert refused.code == 2
    assert "sqlite:///PATH" in refused.line()
    assert "postgresql+psycopg://" in refused.line()
    assert "secret" not in refused.line()


@pytest.mark.postgres
def test_a_password_is_shown_by_no_command(cli: Any, done: str) -> None:
    """C: neither in hints to type nor in what is listed; a wrong one is not repeated either."""
    secret = make_url(cli.url).password
    shown = [
        cli(*command, *where)
        for where in ((), ("--store", cli.url), ("--store", cli.url.replace(str(secret), "canary-word")))
        for command in (("list",), ("show", done), ("why", done), ("doctor",), ("db", "check"), ("run", done))
    ]

    assert not [one for one in shown if secret in one.out + one.err or "canary" in one.out + one.err]
    assert "password authentication failed" in shown[-1].line()


@pytest.mark.sqlite
def test_a_file_system_that_cannot_lock_is_refused(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """C: as some of a network's do; the line says what to do, and no store is used there."""

    def cannot(fd: int, how: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(locks.fcntl, "flock", cannot)

    refused = cli("new", "x", "--workspace", str(cli.workspace), "--model", "openai:m")

    assert refused.code == 1
    assert "cannot lock files (No locks available); put the store on a local disk" in refused.line()
    with pytest.raises(StoreError, match="cannot lock"):
        locks.check_locking(cli.workspace)
