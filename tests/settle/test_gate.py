"""The gate looks itself: at files, at commands, at pending items, at what the evidence cites."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from goalmode.domain.budget import Limits, Spent
from goalmode.domain.calls import CallOutcome
from goalmode.domain.contract import Deliverable, Requirement
from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Control, Goal, GoalSettings
from goalmode.domain.redact import Redactor
from goalmode.domain.snapshot import Action
from goalmode.domain.work import StatePatch, WorkState, apply
from goalmode.errors import Fenced
from goalmode.settle import command
from goalmode.settle.case import Case, Judgement
from goalmode.settle.gate import judge

NOW = datetime(2030, 1, 1, tzinfo=UTC)
NOTHING = WorkState()


@dataclass
class NoHold:
    fd: int | None = None

    def mark(self, process_group: int) -> None: ...


class OpenGate:
    def __init__(self) -> None:
        self.entered: list[str] = []

    @contextmanager
    def enter(self, call_id: str) -> Iterator[NoHold]:
        self.entered.append(call_id)
        yield NoHold()


class ShutGate:
    @contextmanager
    def enter(self, call_id: str) -> Iterator[NoHold]:
        raise Fenced
        yield NoHold()


Judge = Callable[..., Judgement]


@pytest.fixture
def decide(tmp_path: Path) -> Judge:
    """Judges a claim about `tmp_path`: keyword arguments make the contract, the state and the evidence."""

    def run(
        *,
        paths: tuple[str, ...] = (),
        requirements: tuple[Requirement, ...] = (),
        work: WorkState = NOTHING,
        evidence: tuple[str, ...] = (),
        actions: tuple[Action, ...] = (),
        gate: object | None = None,
        redact: Redactor | None = None,
    ) -> Judgement:
        goal = _goal(tmp_path, requirements, tuple(Deliverable(p) for p in paths))
        case = Case(goal, work, evidence, actions, gate or OpenGate(), "c1", {"PATH": "/usr/bin:/bin"})  # type: ignore[arg-type]
        return anyio.run(judge(tmp_path, redact or Redactor()), case)

    return run


def _goal(
    workspace: Path, requirements: tuple[Requirement, ...], deliverables: tuple[Deliverable, ...]
) -> Goal:
    return Goal(
        1, "abc", "Do it.", str(workspace), 1, 1, 0, requirements, deliverables, Limits(), Spent(), GoalSettings(),
        GoalStatus.ACTIVE, "", Control.NONE, 1, 0, NOW, "", "here", "pursue", 0, 0, NOW, NOW,
    )  # fmt: skip


def check(text: str, number: int = 1) -> Requirement:
    return Requirement(f"R{number}", text, text)


def test_a_deliverable_must_exist_inside_and_not_be_empty(decide: Judge, tmp_path: Path) -> None:
    """B04, B111: absent, empty, outside and directory are each told by their own cause; nothing outside is read."""
    outside = tmp_path.parent / "outside.txt"
    outside.write_text("secret")
    (tmp_path / "empty.txt").touch()
    (tmp_path / "link.txt").symlink_to(outside)
    (tmp_path / "dir").mkdir()

    verdict = decide(paths=("absent.txt", "empty.txt", "link.txt", "dir"))

    causes = dict(zip(("absent.txt", "empty.txt", "link.txt", "dir"), verdict.missing, strict=True))
    assert "does not exist" in causes["absent.txt"]
    assert "is empty" in causes["empty.txt"]
    assert "outside the workspace" in causes["link.txt"]
    assert "director" in causes["dir"]
    assert not any(c.sha256 for c in verdict.checks if c.subject == "link.txt")


def test_deliverables_with_blanks_and_other_letters(decide: Judge, tmp_path: Path) -> None:
    """B108: names with blanks and Chinese letters are one name each."""
    (tmp_path / "out dir").mkdir()
    (tmp_path / "out dir" / "报告 a.csv").write_text("x")

    verdict = decide(paths=("out dir/报告 a.csv",))

    assert verdict.stands
    assert verdict.checks[0].sha256 is not None


def test_a_decomposed_name_is_missing_with_a_hint(decide: Judge, tmp_path: Path) -> None:
    """B110: the other Unicode form of the name does not count, and the model is told that it is there."""
    (tmp_path / "re\u0301sume\u0301.md").write_text("x")

    verdict = decide(paths=("r\u00e9sum\u00e9.md",))

    assert not verdict.stands
    assert "normalised" in verdict.missing[0]


def test_commands_decide_by_their_exit_code(decide: Judge) -> None:
    """0 holds, anything else does not, and its output's end is kept."""
    passing = decide(requirements=(check("exit 0"),))
    failing = decide(requirements=(check("echo no luck; exit 9"),))

    assert passing.stands
    assert failing.checks[0].exit_code == 9
    assert "no luck" in failing.missing[0]


def test_every_command_runs_even_after_one_failed(decide: Judge) -> None:
    """The model learns everything that is missing at once."""
    verdict = decide(requirements=(check("exit 1", 1), check("exit 2", 2), check("true", 3)))

    assert [c.exit_code for c in verdict.checks] == [1, 2, 0]
    assert len(verdict.missing) == 2


def test_a_hanging_check_is_ended(decide: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that never ends is a failed check."""
    monkeypatch.setattr(command, "TIMEOUT_SECONDS", 0.2)

    verdict = decide(requirements=(check("sleep 90"),))

    assert "timed out" in verdict.missing[0]


def test_checks_pass_the_gate_and_a_lost_goal_runs_none(decide: Judge) -> None:
    """A check is an effect like any other: without the goal it does not run."""
    gate = OpenGate()
    decide(requirements=(check("true"),), gate=gate)

    assert gate.entered == ["c1/R1"]
    with pytest.raises(Fenced):
        decide(requirements=(check("touch ran"),), gate=ShutGate())


def test_secrets_in_a_checks_output_are_struck_out(decide: Judge) -> None:
    """B115: neither the stored tail nor what the model is told holds the key."""
    verdict = decide(requirements=(check("echo canary-123456; exit 1"),), redact=Redactor(["canary-123456"]))

    assert "canary-123456" not in verdict.missing[0].split("its output")[1]
    assert "canary-123456" not in verdict.checks[0].tail


def test_pending_items_refuse_success(decide: Judge, tmp_path: Path) -> None:
    """B01: an item that awaits verification is named."""
    (tmp_path / "a.txt").write_text("x")
    work = apply(WorkState(), StatePatch(pending=("check the totals",)), wakeup=1)

    verdict = decide(paths=("a.txt",), work=work)

    assert "W1" in verdict.missing[0]


READ = Action(1, 1, "call_7", "shell", "pytest -q tests", CallOutcome.SUCCESS, 0)


@pytest.mark.parametrize(
    ("evidence", "stands"),
    [
        ((), False),
        (("everything is fine",), False),
        (("`pytest -q tests` passed",), True),
        (("see call_7",), True),
        (("notes.md shows it.",), True),
        (("absent.md shows it",), False),
        (("../outside.txt",), False),
    ],
    ids=["none", "prose", "command", "call id", "file", "absent file", "outside"],
)
def test_evidence_must_cite_what_the_host_knows(
    decide: Judge, tmp_path: Path, evidence: tuple[str, ...], stands: bool
) -> None:
    """Without checks a claim rests on a recorded call or a file that is there, and is stored as evidence-only."""
    (tmp_path / "notes.md").write_text("x")

    verdict = decide(evidence=evidence, actions=(READ,))

    assert verdict.stands is stands
    assert verdict.basis == "evidence-only"


def test_a_failed_call_is_no_evidence(decide: Judge) -> None:
    """What did not succeed shows nothing."""
    verdict = decide(evidence=("pytest -q tests",), actions=(replace(READ, outcome=CallOutcome.FAILED),))

    assert not verdict.stands


def test_requirements_in_words_need_evidence_beside_the_checks(decide: Judge, tmp_path: Path) -> None:
    """A text-only requirement is not covered by a passing check."""
    (tmp_path / "a.txt").write_text("x")
    words = Requirement("R1", "It reads well.")

    without = decide(paths=("a.txt",), requirements=(words,))
    with_it = decide(paths=("a.txt",), requirements=(words,), evidence=("a.txt reads well",))

    assert "It reads well." in without.missing[0]
    assert with_it.stands
