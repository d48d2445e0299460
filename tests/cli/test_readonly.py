"""Every command that reads: it changes no byte of the store's file and no row, asks no model, and migrates nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from goalmode.cli.main import PLACES
from goalmode.state.store import Store
from goalmode.testing import Stub
from goalmode.testing.steps import tool
from tests.cli.test_looking import begun

Serve = Callable[..., Stub]

READING = (
    ("list",),
    ("questions",),
    ("questions", "ID"),
    ("note", "ID"),
    ("schedule", "ID"),
    ("memory", "list"),
    ("show", "ID"),
    ("turns", "ID"),
    ("turns", "ID", "--full", "--limit", "1", "--offset", "1"),
    ("turns", "ID", "--last", "1"),
    ("turns", "ID", "--follow"),
    ("timeline", "ID"),
    ("timeline", "ID", "--limit", "1"),
    ("context", "ID"),
    ("context", "ID", "--sections"),
    ("context", "ID", "--wakeup", "1"),
    ("context", "ID", "--diff", "1"),
    ("context", "ID", "--next"),
    ("context", "ID", "--next", "--diff", "1"),
    ("why", "ID"),
    ("why", "ID", "--wakeup", "1"),
    ("report", "ID"),
    ("report", "ID", "--html"),
    ("export", "ID"),
    ("doctor",),
    ("db", "check"),
)

OTHERS = {
    *(
        "new",
        "wake",
        "run",
        "serve",
        "answer",
        "check",
        "accept",
        "pause",
        "resume",
        "edit",
        "delete",
        "abort",
    ),
    *("import", "generic-agent"),  # They write.
    *("demo", "eval"),  # In stores of their own.
    "audit",  # Without any store.
    "web",  # tests/web
}
"""Commands that are not looked at here."""


@pytest.fixture
def stub(serve: Serve) -> Stub:
    pending = tool("update_working_checkpoint", {"pending": ["look again"], "failed_approaches": {"a": "b"}})
    write = tool("shell", {"command": "echo 中文 ✓ > 报告.md"}, text="All done, 收口。")
    return serve([write, pending, tool("shell", {"command": "date"}), *[pending] * 4])


@pytest.fixture
def worked(cli: Any, stub: Stub) -> str:
    """A goal of two wakeups, paused."""
    uid = cli.new("--deliverable", "报告.md", "--max-turns", "2", url=stub.base_url)
    assert [cli("wake", uid).code for _ in range(2)] == [10, 10]
    assert cli("pause", uid).code == 0
    return str(uid)


@pytest.fixture(params=["settled", "wal", "running"])
def situation(request: pytest.FixtureRequest, cli: Any, worked: str) -> Iterator[str]:
    """Nobody else has the store open; a writer has, its last commits still beside the file; a wakeup runs."""
    if request.param == "settled":
        yield request.param
    elif request.param == "wal":
        with Store(str(cli.store)) as store:
            assert cli("note", worked, "said while it is open").code == 0
            assert store.path is not None
            assert Path(f"{store.path}-wal").stat().st_size
            yield request.param
    else:
        assert cli("resume", worked, "--no-run").code == 0
        with begun(cli, worked):
            yield request.param


@pytest.mark.sqlite
def test_reading_changes_nothing(cli: Any, worked: str, stub: Stub, situation: str) -> None:
    """B16: neither the file nor a row is different after all of them, as text and as JSON, and nobody is asked."""
    commands = [c for c in READING if situation != "running" or "--follow" not in c]
    before, asked = cli.state(), len(stub.requests)
    for command in commands:
        for options in ((), ("--json",)):
            done = cli(*(worked if part == "ID" else part for part in command), *options)
            assert (done.code, bool(done.out) or command[0] == "schedule") == (0, True), (command, done.err)

    assert cli.state() == before
    assert len(stub.requests) == asked


def test_every_command_is_looked_at_or_has_a_reason() -> None:
    """A new command that reads has its line above."""
    assert set(PLACES) - {line[0] for line in READING} - OTHERS == set()


@pytest.mark.sqlite
def test_reading_never_migrates(cli: Any, worked: str) -> None:
    """A store of an older schema is refused by each of them in one line, and stays as it was."""
    cli.sql("UPDATE alembic_version SET version_num='0001'")
    before = cli.state()
    for command in READING:
        if "ID" in command:
            assert "0001" in cli(*(worked if part == "ID" else part for part in command)).line(), command

    assert cli.state() == before
