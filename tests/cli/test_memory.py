"""`goalmode memory`: what is remembered can be seen, hidden, brought back and shared; nothing of it is ever lost."""

from __future__ import annotations

from typing import Any

import pytest

from goalmode.domain.memory import MemoryKind
from goalmode.state import goals, memory
from goalmode.state.store import Store
from tests.state.builders import claim


@pytest.fixture
def kept(cli: Any) -> str:
    """Three memories of one goal, the second in the place of the first; the goal's id."""
    goal_id: str = cli.new()
    with Store(cli.url) as store:
        goal = goals.find(store, goal_id)
        claimed = claim(store, goal)
        for kind, text, replaces in (
            (MemoryKind.ENVIRONMENT, "port 8080", ""),
            (MemoryKind.ENVIRONMENT, "port 9090", "M1"),
            (MemoryKind.PREFERENCE, "metric units\x1b[2J, 公制", ""),
        ):
            memory.remember(
                store,
                claimed,
                kind,
                text,
                goal=goal.uid,
                workspace=goal.workspace,
                turn=16,
                replaces=replaces,
                shown=9,
                now=store.clock.now(),
            )
    return goal_id


def listed(cli: Any, *options: str) -> list[str]:
    return [row["id"] for row in cli("memory", "list", "--json", *options).json]


def test_nothing_is_remembered_yet(cli: Any) -> None:
    """Without a store, and with one that holds no memory: a line, an empty list, and no store is made."""
    for _ in range(2):
        assert cli("memory", "list").out == "Nothing is remembered.\n"
        assert cli("memory", "list", "--json").json == []
        assert cli("memory", "list", "-q").out == ""
        cli.new()
    assert cli("memory").code == 0


@pytest.mark.sqlite
def test_no_command_makes_a_store(cli: Any) -> None:
    """A label without a store is an error that says so."""
    for command in ("show", "forget", "undo", "promote"):
        done = cli("memory", command, "M1")
        assert done.code == 2
        assert "there is none at" in done.line()
    assert not cli.store.exists()


def test_the_list_shows_what_stands(cli: Any, kept: str) -> None:
    """Newest first, safe for a terminal; what was replaced only with --all."""
    done = cli("memory", "list")

    head, third, second = done.out.splitlines()
    assert head.split() == ["ID", "KIND", "WORKSPACE", "GOAL", "STATE", "TEXT"]
    assert third.startswith("M3  preference")
    assert third.endswith("metric units\\x1b[2J, 公制")
    assert [second.split()[0], kept in second] == ["M2", True]
    assert listed(cli) == ["M3", "M2"]
    assert listed(cli, "--all") == ["M3", "M2", "M1"]


def test_the_list_of_a_workspace(cli: Any, kept: str) -> None:
    """What its goals see: its own memories, and the promoted ones."""
    assert listed(cli, "--workspace", str(cli.workspace)) == ["M3", "M2"]
    assert listed(cli, "--workspace", "workspace") == ["M3", "M2"]
    assert listed(cli, "--workspace", "/elsewhere") == []

    assert cli("memory", "promote", "M2").out == "M2: stands, every workspace\n"
    assert listed(cli, "--workspace", "/elsewhere") == ["M2"]


def test_one_memory_is_shown_with_its_source(cli: Any, kept: str) -> None:
    """Whole, in words and in JSON, and nothing is written."""
    before = cli.state()

    shown, row = cli("memory", "show", "m1"), cli("memory", "show", "1", "--json").json

    assert f"goal {kept}, wakeup 1, turn 16, " in shown.out
    assert "replaced by M2" in shown.out
    assert (row["id"], row["kind"], row["text"]) == ("M1", "environment", "port 8080")
    assert (row["goal"], row["wakeup"], row["turn"]) == (kept, 1, 16)
    assert (row["workspace"], row["promoted"]) == (str(cli.workspace), False)
    assert (row["stands"], row["superseded_by"], row["forgotten_at"]) == (False, "M2", None)
    assert cli.state() == before


def test_forgetting_and_undoing(cli: Any, kept: str) -> None:
    """Each change says what became of it, and each can be taken back."""
    where = str(cli.workspace)

    assert cli("memory", "forget", "M2").out == f"M2: forgotten, {where}\n"
    assert listed(cli) == ["M3"]
    assert cli("memory", "undo", "M2").out == f"M2: stands, {where}\n"
    assert cli("memory", "undo", "M2").out == f"M2: withdrawn for M1, {where}\nM1: stands, {where}\n"
    assert listed(cli) == ["M3", "M1"]
    changed = cli("memory", "undo", "M2", "--json").json
    assert [(row["id"], row["stands"]) for row in changed] == [("M2", True), ("M1", False)]
    assert cli("memory", "promote", "M2", "-q").out == ""
    assert cli("memory", "undo", "M2").out == f"M2: stands, {where}\n"


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("show", "M9"), 2, "memory: 'M9' is not valid: the label of one, such as M7"),
        (("forget", "the first"), 2, "memory: 'the first' is not valid"),
        (("undo", "M1"), 1, "memory M1: M2 has taken its place; `goalmode memory undo M2`"),
        (("promote", "M1"), 1, "memory M1: does not stand: M2 has taken its place"),
        (("forget",), 2, "Missing argument 'M7'"),
        (("remember", "M1"), 2, "No such command 'remember'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_what_cannot_be_done_is_one_line(
    cli: Any, kept: str, arguments: tuple[str, ...], code: int, told: str
) -> None:
    """It names the label and what would be right; nothing is changed."""
    before = cli.rows()

    done = cli("memory", *arguments)

    assert done.code == code
    assert told in done.line()
    assert cli.rows() == before


def test_a_goal_can_do_without_memory(cli: Any) -> None:
    """`--no-user-tools` and `--autonomous` are settings of the goal; without them it has a memory."""
    shown = [
        cli("show", cli.new(*options), "--json").json for options in ((), ("--no-user-tools", "--autonomous"))
    ]

    told = [(goal["settings"]["user_tools"], goal["settings"]["autonomous"]) for goal in shown]
    assert told == [(True, False), (False, True)]
    assert [goal["settlement"] for goal in shown] == ["none", "none"]
