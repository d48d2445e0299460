"""Money on the command line: limits in dollars, prices out of goalmode.toml, and where it went."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goalmode.domain.exits import ExitReason
from goalmode.testing import Stub
from goalmode.testing.steps import text, tool, usage

Serve = Callable[..., Stub]

PRICES = '[prices."m"]\ninput = 0.25\ncached = 0.025\noutput = 2\n'
USED = {"prompt": 10_000, "completion": 501, "cached": 8_000}
EACH = 500 + 200 + 1_002
"""Micro-dollars of one such call."""


@pytest.fixture
def priced(cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A goalmode.toml in which the model `m` has a price."""
    path = tmp_path / "goalmode.toml"
    path.write_text(PRICES)
    monkeypatch.setenv("GOALMODE_CONFIG", str(path))
    return path


def new(cli: Any, *options: str) -> Any:
    return cli("new", "x", "--workspace", str(cli.workspace), "--model", "openai:m", "-q", *options)


def look(**changes: Any) -> Any:
    return tool("shell", {"command": "echo x >> log"}, usage=usage(**USED), **changes)


@pytest.mark.parametrize(
    ("given", "stored", "shown"),
    [
        ("2.50", 2_500_000, "$2.50"),
        ("$0.000001", 1, "$0.000001"),
        ("3", 3_000_000, "$3.00"),
        ("0", 0, "$0.00"),
    ],
)
def test_a_limit_is_given_in_dollars(cli: Any, priced: Path, given: str, stored: int, shown: str) -> None:
    """Stored exactly, in micro-dollars, and shown in dollars."""
    uid = new(cli, "--cost-budget", given).out.strip()

    assert cli("show", uid, "--json").json["limits"]["cost_micro"] == stored
    [line] = [line for line in cli("show", uid).out.splitlines() if line.startswith("limits")]
    assert line.split() == ["limits", shown]


def test_a_limit_is_raised_by_resume(cli: Any, priced: Path) -> None:
    """`N` sets it, `+N` adds to it, with or without a dollar sign."""
    uid = new(cli, "--cost-budget", "2.50").out.strip()
    found = []
    for given in ("+0.000001", "+$1", "0.5"):
        assert cli("resume", uid, "--cost-budget", given, "--no-run").code == 0
        found.append(cli("show", uid, "--json").json["limits"]["cost_micro"])

    assert found == [2_500_001, 3_500_001, 500_000]


def test_an_unpriced_model_is_refused_when_the_goal_is_made(cli: Any) -> None:
    """One line names the model and the table to write; no store is made."""
    done = new(cli, "--cost-budget", "2.50")

    assert (done.code, done.out) == (2, "")
    assert "cost-budget: '$2.50' is not valid: m has no price" in done.line()
    assert '[prices."m"] with input and output, in dollars for a million tokens' in done.line()
    assert not cli.store.exists()
    assert new(cli).code == 0


@pytest.mark.parametrize("command", [("run",), ("wake",), ("resume",), ("resume", "--no-run")], ids=" ".join)
def test_a_price_that_is_gone_stops_nothing_but_the_call(
    cli: Any, priced: Path, serve: Serve, command: tuple[str, ...]
) -> None:
    """The configuration may have changed: it is said, nobody is asked, and no row is different."""
    stub = serve([])
    uid = new(cli, "--cost-budget", "1", "--base-url", stub.base_url).out.strip()
    priced.write_text("")
    before = cli.rows()
    name, *options = command
    done = cli(name, uid, *options)

    assert done.code == 2
    assert '[prices."m"]' in done.line()
    assert cli.rows() == before
    assert stub.requests == []


@pytest.mark.parametrize("options", [(), ("--no-run",)], ids=["run", "no-run"])
def test_a_limit_for_an_unpriced_model_is_refused_by_resume(cli: Any, options: tuple[str, ...]) -> None:
    """Or another model that has no price, for a goal whose cost is limited."""
    uid = new(cli).out.strip()
    before = cli.rows()
    done = cli("resume", uid, "--cost-budget", "5", *options)

    assert done.code == 2
    assert "m has no price" in done.line()
    assert cli.rows() == before


def test_another_model_needs_a_price_too(cli: Any, priced: Path) -> None:
    """A goal cannot be moved to a model whose cost cannot be counted."""
    uid = new(cli, "--cost-budget", "5").out.strip()
    before = cli.rows()
    done = cli("resume", uid, "--model", "openai:other", "--no-run")

    assert done.code == 2
    assert '[prices."other"]' in done.line()
    assert cli.rows() == before


def test_a_spent_limit_is_told_in_dollars_with_the_option_that_raises_it(
    cli: Any, priced: Path, serve: Serve
) -> None:
    """The goal ends before it costs more, and goes on with more money (B25)."""
    each = usage(prompt=4_500, completion=250)
    stub = serve([tool("shell", {"command": "echo x >> log"}, usage=each)] * 6)
    uid = cli.new("--cost-budget", "0.006", url=stub.base_url)
    spent = cli("run", uid)
    goal = cli("show", uid, "--json").json

    assert spent.code == 40
    assert "cost limit $0.006, used $0.00" in spent.line()
    assert f"goalmode resume {uid} --cost-budget +N" in spent.line()
    assert goal["wakeups"][0]["exit_reason"] == ExitReason.GOAL_BUDGET_EXHAUSTED
    assert goal["spent"]["cost_micro"] == 1_625 * len(stub.requests) <= 6_000
    assert cli("why", uid, "--json").json["remedy"] == f"goalmode resume {uid} --cost-budget +N"

    raised = cli("resume", uid, "--cost-budget", "+0.004")
    assert raised.code == 40
    assert "cost limit $0.01" in raised.line()
    assert cli("show", uid, "--json").json["spent"]["cost_micro"] > goal["spent"]["cost_micro"]


def test_where_the_money_went(cli: Any, priced: Path, serve: Serve) -> None:
    """Totals, turns and purposes agree to the micro-dollar and the token (B27)."""
    stub = serve([look(), look(), text("saved", usage=usage(**USED))])
    uid = cli.new("--max-turns", "2", url=stub.base_url)
    cli("wake", uid)
    goal, turns, [row] = (cli(*c, "--json").json for c in (("show", uid), ("turns", uid), ("list",)))

    tokens = USED["prompt"] - USED["cached"] + USED["completion"]
    assert goal["spend_by_purpose"] == {
        "work": {"calls": 2, "tokens": 2 * tokens, "cost_micro": 2 * EACH},
        "handoff": {"calls": 1, "tokens": tokens, "cost_micro": EACH},
    }
    assert [turn["cost_micro"] for turn in turns] == [EACH] * 3
    assert turns[0]["price"] == {
        "input": 250_000,
        "cached": 25_000,
        "output": 2_000_000,
        "cache_write": 250_000,
    }
    assert goal["spent"]["cost_micro"] == row["cost_micro"] == 3 * EACH

    page = cli("show", uid).out
    assert "s of work, $0.005106\n" in page
    assert "work: 2 calls, 5,002 tokens, $0.003404\n" in page
    assert "handoff: 1 call, 2,501 tokens, $0.001702\n" in page
    assert cli("turns", uid).out.count("2,501 tokens  $0.001702\n") == 3


def test_without_a_price_no_money_is_shown(cli: Any, serve: Serve) -> None:
    """Nothing is guessed, and nothing is shown as free."""
    stub = serve([look()])
    uid = cli.new("--max-turns", "1", url=stub.base_url)
    cli("wake", uid)

    assert "$" not in cli("show", uid).out + cli("turns", uid).out
    assert cli("turns", uid, "--json").json[0]["price"] is None
