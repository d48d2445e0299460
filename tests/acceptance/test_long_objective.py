"""Rows B105 and B107: an objective is kept whole or refused with its length, never cut in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from goalmode import ExitReason
from goalmode.domain.goal import MAX_OBJECTIVE
from goalmode.errors import BadInput
from goalmode.testing import steps
from tests.acceptance.cli import Command
from tests.acceptance.world import Provider, World

TOKEN = "unique-token-4711"


def objective(length: int) -> str:
    return ("Totals of the month. " * (length // 20))[: length - len(TOKEN)] + TOKEN


@pytest.mark.parametrize("way", ["argument", "file", "stdin"])
@pytest.mark.parametrize("length", [3999, 4000, 4001, 20_000, MAX_OBJECTIVE, MAX_OBJECTIVE + 1, 2_000_000])
def test_a_long_objective_is_whole_or_refused(
    goalmode: Command, workspace: Path, provider: Provider, tmp_path: Path, length: int, way: str
) -> None:
    """B105: stored as it was given, or refused with limit and length and without a row."""
    text = objective(length)
    (tmp_path / "brief.txt").write_text(text)
    given = {"argument": text, "file": f"@{tmp_path / 'brief.txt'}", "stdin": "-"}[way]
    options = ["--workspace", str(workspace), "--model", "openai:stub", "--base-url", provider.url, "--json"]

    made = goalmode("new", given, *options, stdin=text.encode())

    if length <= MAX_OBJECTIVE:
        assert goalmode.show(made.json["id"])["objective"] == text
    else:
        assert made.code == 2
        assert f"{MAX_OBJECTIVE:,}" in made.line
        assert f"{length:,}" in made.line
        assert not goalmode.store.exists()


def test_a_long_objective_is_shown_in_part_and_says_so(world: World) -> None:
    """B105: what does not fit the context is shown head and tail, with its length, and stays whole in the store."""
    text = objective(MAX_OBJECTIVE)
    goal = world.goal(text)
    world.provider.script(*[steps.text("")] * 3)

    assert world.wake(goal).reason is ExitReason.EARLY_NO_TOOL
    told = world.provider.told(0)
    assert len(told) < 80_000
    assert TOKEN in told
    assert str(MAX_OBJECTIVE) in told.replace(",", "")
    assert goal.uid in told


@pytest.mark.parametrize(
    "text", ["", " \n\t\u3000", objective(MAX_OBJECTIVE + 1)], ids=["empty", "white", "long"]
)
def test_a_refused_objective_leaves_nothing_behind(world: World, goalmode: Command, text: str) -> None:
    """B107: a typed error, one line without a traceback, an unchanged store, and the next command works."""
    with pytest.raises(BadInput, match="objective") as told:
        world.goal(text)
    options = [
        "--workspace",
        str(world.workspace),
        "--model",
        "openai:stub",
        "--base-url",
        world.provider.url,
    ]
    made = goalmode("new", text, *options)

    assert told.value.field == "objective"
    assert made.code == 2
    assert "objective" in made.line
    assert world.rows("SELECT count(*) FROM goals") == [(0,)]
    assert goalmode("new", "Fine.", *options).code == 0
