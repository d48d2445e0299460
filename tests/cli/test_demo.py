"""The demo shows what it says, and fails if it does not."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from goalmode.cli.demo import QUOTA, REPORT, Woken, _problems
from goalmode.domain.goal import ContextPolicy

FULL = Woken(QUOTA, QUOTA, "MAX_TURNS_EXCEEDED")
SHORT = Woken(3, 0, "EARLY_NO_TOOL")
DONE = Woken(4, 4, "CURRENT_TASK_DONE")


def test_replay_collapses_and_rebuild_keeps_its_quota(
    cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over real HTTP, shell, files and store: 20, a few, none against 20, 20, 20 and a checked deliverable."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    done = cli("demo")

    assert (done.code, done.err) == (0, "")
    [report] = tmp_path.glob(f"goalmode-demo-*/rebuild/{REPORT}")
    assert str(report) in done.out
    rows = [line.split() for line in done.out.splitlines() if line[:1].isdigit()]
    assert [row[4:6] for row in rows[:3]] == [["20", "20"]] * 3
    assert [int(row[2]) for row in rows[:3]] == [20, 1, 0]
    assert rows[3][-1] == "CURRENT_TASK_DONE"
    assert "rejected 1 false claim" in done.out
    assert "goalmode why" in done.out


@pytest.mark.parametrize(
    ("replayed", "rebuilt", "invalid", "problem"),
    [
        ([FULL, SHORT, SHORT], [FULL, FULL, FULL, DONE], [], None),
        ([FULL, FULL, SHORT], [FULL, FULL, FULL, DONE], [], "did not collapse"),
        ([SHORT, SHORT], [FULL, FULL, FULL, DONE], [], "did not collapse"),
        ([FULL, SHORT], [FULL, SHORT, FULL, DONE], [], "did not keep its quota"),
        ([FULL, SHORT], [FULL, FULL, FULL, FULL], [], "was not completed"),
        ([FULL, SHORT], [FULL, FULL, FULL, DONE], ["bad"], "an invalid request"),
    ],
    ids=["as wanted", "no collapse", "short from the start", "quota lost", "not done", "invalid"],
)
def test_the_demo_is_a_check_that_can_fail(
    tmp_path: Path, replayed: list[Woken], rebuilt: list[Woken], invalid: list[str], problem: str | None
) -> None:
    """What was not shown is found, and nothing else."""
    (tmp_path / REPORT).touch()
    found = _problems({ContextPolicy.REPLAY: replayed, ContextPolicy.REBUILD: rebuilt}, tmp_path, invalid)

    assert [problem in text for text in found] == [True] if problem else found == []
