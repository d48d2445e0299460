"""The demo's second act shows what it says, and fails if it does not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from goalmode.cli import demo_endings
from goalmode.cli.demo import _wake
from goalmode.state.store import Store
from goalmode.testing.steps import Step, text, tool
from goalmode.testing.stub import Stub


def _played(tmp_path: Path, model: Any) -> demo_endings.Act:
    with Store(str(tmp_path / "store" / "goals.sqlite")) as store, Stub(model) as stub:
        act = demo_endings.play(store, tmp_path, stub.base_url, _wake)
        assert stub.rejected == []
        return act


def test_a_question_a_false_claim_and_a_settlement(tmp_path: Path) -> None:
    """Over real HTTP, shell, files and store."""
    act = _played(tmp_path, demo_endings.model)

    assert act.problems == ()
    question, rejected, _, settled = act.told
    assert demo_endings.OPTIONS[1] in question
    assert "rejected 1 false claim" in rejected
    assert demo_endings.FACT in settled


def _silent(request: Mapping[str, Any], number: int) -> Step:
    return text("All done.")


def _forgetful(request: Mapping[str, Any], number: int) -> Step:
    offered = [known["function"]["name"] for known in request["tools"]]
    return (
        tool("shell", {"command": "true"}) if offered == ["remember"] else demo_endings.model(request, number)
    )


@pytest.mark.parametrize(
    ("model", "problem"),
    [(_silent, "that the goal asked its question"), (_forgetful, "that the task was settled")],
)
def test_the_act_is_a_check_that_can_fail(tmp_path: Path, model: Any, problem: str) -> None:
    """What was not shown is found."""
    assert problem in _played(tmp_path, model).problems
