"""A goal whose history has rows of unknown shape: it alone is marked, by the field, and every command says which."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from goalmode.testing import Stub
from goalmode.testing.steps import tool

pytestmark = pytest.mark.sqlite  # A server's columns take nothing of another type.

Serve = Callable[..., Stub]

READING = ("show", "turns", "timeline", "why", "context", "report", "export")


@pytest.fixture
def goals(cli: Any, serve: Serve) -> tuple[str, str]:
    """One that has worked, and another one; their ids."""
    stub = serve([tool("shell", {"command": "echo hello"}, text="Looking.")])
    worked = cli.new("--max-turns", "1", url=stub.base_url)
    cli("wake", worked)
    return worked, cli.new(objective="Another.")


@pytest.mark.parametrize(
    ("change", "named", "listed"),
    [
        ("wakeups SET exit_facts = 'torn'", "exit_facts is 'torn'", True),
        ("wakeups SET progress_by = '[1]'", "progress_by is [1]", True),
        ("wakeups SET turns = 'many'", "turns is 'many'", True),
        ("wakeups SET lease_ms = 'x'", "lease_ms is 'x'", True),
        ("wakeups SET started_at = 'soon'", "started_at is 'soon', a time", True),
        ("contexts SET tokens = 'few'", "tokens is 'few'", True),
        ("contexts SET sections = '\"torn\"'", "sections is 'torn'", False),
        ("turns SET started_at = 'soon'", "started_at is 'soon', a time", False),
        ("turns SET input = 'x'", "input is 'x', a whole number", False),
        ("turns SET repairs = '5'", "turn 1.1: repairs is 5", False),
        ("turns SET price = '[]'", "turn 1.1: price is []", False),
        ("tool_calls SET ms = 'x'", "ms is 'x'", False),
        ("tool_calls SET brief = x'ff'", "brief is b'\\xff'", False),
        ("goal_revisions SET contract = '\"torn\"'", "contract is 'torn'", False),
        ("bodies SET codec = 'raw', data = x'ff'", "cannot be unpacked", False),
        ("bodies SET codec = 'raw', data = x'5b5d'", "reply is [], an object", False),
    ],
)
def test_the_field_is_named(cli: Any, goals: tuple[str, str], change: str, named: str, listed: bool) -> None:
    """B144: `list` has all goals; a command that meets the row says field and value in one line; none fails."""
    worked, other = goals
    cli.sql(f"UPDATE {change}{' WHERE goal = 1' if 'goal_revisions' in change else ''}")
    rows = {row["id"]: row for row in cli("list", "--json").json}

    assert (rows[other]["status"], set(rows)) == ("ACTIVE", {worked, other})
    assert (rows[worked]["status"] == "UNREADABLE") is listed
    assert not listed or named in rows[worked]["problem"]
    told = [done for command in READING if (done := cli(command, worked, *_full(command))).code]
    assert told
    assert all(named in done.line() for done in told)
    assert cli("show", other).code == 0


def _full(command: str) -> tuple[str, ...]:
    return ("--full",) if command == "turns" else ()
