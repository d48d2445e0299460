"""A goal whose history has rows of unknown shape: it alone is marked, by the field, and every command says which."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from goalmode.testing import Stub
from goalmode.testing.steps import tool

pytestmark = pytest.mark.sqlite  # A server's columns take nothing of another type.

Serve = Callable[..., Stub]

_CONTRACT = ("--check", "true", "--deliverable", "a.txt", "--protect", "b.txt")

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
        ("wakeups SET started_at = 5", "started_at is 5, a time", True),
        ("wakeups SET ended_at = x'ff'", "ended_at is b'\\xff', a time", True),
        ("wakeups SET exit_facts = x'ff'", "exit_facts is b'\\xff', JSON", True),
        ("wakeups SET exit_facts = 5", "exit_facts is 5, an object", True),
        ("wakeups SET sandbox = 'x'", "sandbox is 'x', which", True),
        ("wakeups SET sandbox = x'ff'", "sandbox is b'\\xff', a text", True),
        ("wakeups SET exit_detail = CAST(x'ff' AS TEXT)", "UTF-8 column 'exit_detail'", True),
        ("contexts SET tokens = 'few'", "tokens is 'few'", True),
        ("contexts SET sections = '\"torn\"'", "sections is 'torn'", False),
        ("turns SET started_at = 'soon'", "started_at is 'soon', a time", False),
        ("turns SET input = 'x'", "input is 'x', a whole number", False),
        ("turns SET ended_at = 5", "ended_at is 5, a time", False),
        ("turns SET movement = x'ff'", "movement is b'\\xff', a text", False),
        ("turns SET repairs = '5'", "turn 1.1: repairs is 5", False),
        ("turns SET price = '[]'", "turn 1.1: price is []", False),
        ("tool_calls SET ms = 'x'", "ms is 'x'", False),
        ("tool_calls SET brief = x'ff'", "brief is b'\\xff'", False),
        ("goal_revisions SET contract = '\"torn\"'", "contract is 'torn'", False),
        ("goal_revisions SET contract = x'ff'", "contract is b'\\xff', JSON", False),
        ("bodies SET codec = 'raw', data = x'ff'", "cannot be unpacked", False),
        ("bodies SET codec = 'raw', data = 5", "cannot be unpacked", False),
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


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("goals SET created_at = 5", "created_at is 5, a time"),
        ("goals SET next_wakeup_at = x'ff'", "next_wakeup_at is b'\\xff', a time"),
        ("goals SET next_wakeup_at = 'soon'", "next_wakeup_at is 'soon', a time"),
        ("goals SET limits = 5", "limits is 5, an object"),
        ("goals SET settings = x'ff'", "settings is b'\\xff', JSON"),
        ("goals SET status = 5", "status is '5'"),
        ("goals SET status = x'ff'", "status is b'\\xff', a text"),
        ("goals SET revision = 'x'", "revision is 'x', a whole number"),
        ("goals SET fence = x'ff'", "fence is b'\\xff', a whole number"),
        ("goals SET spent_turns = 1.5", "spent_turns is 1.5, a whole number"),
        ("goals SET objective = x'ff'", "objective is b'\\xff', a text"),
        ("goals SET objective = CAST(x'ff' AS TEXT)", "UTF-8 column 'objective'"),
        ("requirements SET checked_at = 5", "requirements 1: checked_at is 5, a time"),
        ("requirements SET text = x'ff'", "text is b'\\xff', a text"),
        ("requirements SET file = x'ff'", "file is b'\\xff', JSON"),
        ("deliverables SET checked_at = x'ff'", "checked_at is b'\\xff', a time"),
        ("protected_files SET accepted_at = 'soon'", "accepted_at is 'soon', a time"),
    ],
)
def test_the_goal_itself(cli: Any, change: str, named: str) -> None:
    """B144: a number, a blob or a text where another kind belongs marks the goal alone; what reads it says which."""
    table = change.split()[0]
    (cli.workspace / "b.txt").touch()
    broken = cli.new(*_CONTRACT)
    other = cli.new(objective="Another.")
    cli.sql(f"UPDATE {change} WHERE {'id' if table == 'goals' else 'goal'} = 1")
    rows = {row["id"]: row for row in cli("list", "--json").json}

    assert (rows[other]["status"], rows[broken]["status"]) == ("ACTIVE", "UNREADABLE")
    assert named in rows[broken]["problem"]
    told = [cli(command, broken) for command in READING]
    assert all(done.code and named in done.line() for done in told)
    assert cli("show", other).code == 0


@pytest.mark.parametrize("value", ["5", "x'ff'"])
def test_a_goal_without_a_name_hides_no_other(cli: Any, value: str) -> None:
    """Its public id is what the store holds there."""
    cli.new()
    other = cli.new(objective="Another.")
    cli.sql(f"UPDATE goals SET uid = {value} WHERE id = 1")

    assert {row["id"]: row["status"] for row in cli("list", "--json").json}[other] == "ACTIVE"


def _full(command: str) -> tuple[str, ...]:
    return ("--full",) if command == "turns" else ()
