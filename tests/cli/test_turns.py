"""The page of `turns`: how each reply ended, in two languages, and what had to be repaired before it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from goalmode.cli.output import json_text
from goalmode.inspection import turns
from goalmode.state import goals
from goalmode.state.store import Store
from goalmode.testing import Stub
from goalmode.testing.steps import status, text, tool
from tests.inspection.lives import live

Serve = Callable[..., Stub]

REFUSED = "Unexpected role 'user' after role 'tool'\x1b[31m"


def test_the_providers_own_words_stand_beside_ours(cli: Any, serve: Serve) -> None:
    """Normalised, raw, and the word of the server behind a gateway."""
    native = {"native_finish_reason": "MALFORMED_FUNCTION_CALL"}
    stub = serve([text("x", extra=native), tool("shell", {"command": "true"})])
    uid = cli.new("--max-turns", "2", "--max-recoveries", "1", url=stub.base_url)
    cli("wake", uid)

    first, second = (line for line in cli("turns", uid).out.splitlines() if line.startswith("1."))

    assert "MALFORMED_TOOL_CALL (stop, MALFORMED_FUNCTION_CALL)" in first
    assert "TOOL_USE (tool_calls)" in second
    assert cli("turns", uid, "--json").json[0]["stop_native"] == "MALFORMED_FUNCTION_CALL"


def test_a_repair_is_told(cli: Any, serve: Serve) -> None:
    """What was done to which message and why; a provider's words cannot move the cursor."""
    stub = serve([status(400, {"error": {"message": REFUSED}}), text("x"), text("x")])
    uid = cli.new("--max-turns", "1", "--max-recoveries", "0", url=stub.base_url)
    cli("wake", uid)

    lines = cli("turns", uid).out.splitlines()

    assert lines[1].startswith("    repaired: resent message 1: refused: ")
    assert lines[1].endswith("Unexpected role 'user' after role 'tool'\\x1b[31m")
    assert cli("turns", uid, "--json").json[0]["repairs"][0]["kind"] == "resent"


def test_repeats_are_flagged(cli: Any, serve: Serve) -> None:
    """How often a call was made in a row with the same result; a call that differs begins the count anew."""
    same, other = tool("shell", {"command": "echo 1"}), tool("shell", {"command": "echo 2"})
    stub = serve([same, same, text("x"), other, same, text("x"), same, text("x"), text("x")])
    uid = cli.new("--max-turns", "9", "--max-recoveries", "0", "--early-turns", "0", url=stub.base_url)
    cli("wake", uid)

    shown = [c["in_a_row"] for turn in cli("turns", uid, "--json").json for c in turn["calls"]]

    assert shown == [1, 2, 1, 1, 2]
    assert cli("turns", uid).out.count("(2 times in a row)") == 2


@pytest.mark.parametrize("page", [1, 2, 200])
def test_all_turns_are_one_json_list(
    cli: Any, serve: Serve, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    """Written as they are read, a page at a time: to the letter what the whole list would be."""
    monkeypatch.setattr(turns, "PAGE", page)
    steps = [tool("shell", {"command": f"echo '\u2028 ✓ {n}'"}, text="报告\n") for n in range(3)]
    uid = cli.new("--max-turns", "3", url=serve(steps).base_url)
    assert cli("turns", uid, "--json").out == "[]\n"
    cli("wake", uid)
    out = cli("turns", uid, "--json", "--full").out
    found = json.loads(out)

    assert [one["seq"] for one in found][:3] == [1, 2, 3]
    assert out == json_text(found) + "\n"
    assert [one["seq"] for one in cli("turns", uid, "--limit", "1", "--offset", "1", "--json").json] == [2]
    assert cli("turns", uid, "--offset", "9", "--json").out == "[]\n"
    assert "There are no further turns." in cli("turns", uid, "--offset", "9").out


def test_one_turn_is_one_turn(cli: Any, serve: Serve) -> None:
    """Wherever a number of things is told: while it runs, and afterwards."""
    uid = cli.new(
        "--max-turns", "1", "--turn-budget", "5", url=serve([tool("shell", {"command": "date"})]).base_url
    )
    told = [cli("wake", uid).out, *(cli(command, uid).out for command in ("show", "why", "report"))]

    assert "up to 1 turn\n" in told[0]
    assert "ended after 1 turn: " in told[0]
    assert re.search(r"spent +1 turn, 1 wakeup, ", told[1])
    assert "after 1 turn, 0 recovery prompts of 2, 0 rejected claims" in told[2]
    assert "1 turn in 1 wakeup" in told[3]
    assert not [text for text in told if re.search(r"\b1 (turns|wakeups|tokens|calls|signs|claims)\b", text)]


@pytest.mark.sqlite
def test_older_wakeups_are_where_show_says(cli: Any) -> None:
    """`show` has the newest; the command that it names has those before."""
    uid = cli.new()
    with Store(str(cli.store)) as store:
        live(store, goals.find(store, uid), wakeups=53, turns=1)
    *_, last = cli("show", uid).out.splitlines()

    assert last == f"3 older wakeups: goalmode timeline {uid} --offset 50"
    assert [w["seq"] for w in cli(*last.split()[4:], "--json").json["wakeups"]] == [1, 2, 3]
