"""The gate looks itself: at files, at commands, at pending items, at what the evidence cites."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from goalmode.domain.budget import Limits, Spent
from goalmode.domain.calls import CallOutcome
from goalmode.domain.contract import (
    Deliverable,
    FileCheck,
    FileTest,
    ProtectedFile,
    Requirement,
    RequirementStatus,
    basis_of,
)
from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Control, Goal, GoalSettings
from goalmode.domain.redact import Redactor
from goalmode.domain.snapshot import Action
from goalmode.domain.work import StatePatch, WorkState, apply
from goalmode.errors import Fenced
from goalmode.settle import command
from goalmode.settle.case import Case, Judgement
from goalmode.settle.gate import MAX_EVIDENCE, judge
from goalmode.tools.paths import Workspace
from tests.held import Begun

NOW = datetime(2030, 1, 1, tzinfo=UTC)
NOTHING = WorkState()
SETTINGS = GoalSettings()


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


class PatientGate:
    """Its commands' time runs from the moment at which they have made `file`."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @contextmanager
    def enter(self, call_id: str) -> Iterator[Begun]:
        yield Begun(self._file)


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
        settings: GoalSettings = SETTINGS,
        protected: tuple[ProtectedFile, ...] = (),
        paths: tuple[str, ...] = (),
        requirements: tuple[Requirement, ...] = (),
        work: WorkState = NOTHING,
        evidence: tuple[str, ...] = (),
        actions: tuple[Action, ...] = (),
        gate: object | None = None,
        redact: Redactor | None = None,
    ) -> Judgement:
        goal = _goal(tmp_path, requirements, tuple(Deliverable(p) for p in paths))
        goal = replace(goal, settings=settings, protected=protected)
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


def test_a_hanging_check_is_ended(decide: Judge, tmp_path: Path) -> None:
    """A check that never ends is a failed check: after the goal's time limit its processes are ended."""
    verdict = decide(
        requirements=(check("echo begun; touch ready; sleep 90 & sleep 90"),),
        settings=GoalSettings(check_seconds=0.2),
        gate=PatientGate(tmp_path / "ready"),
    )

    assert "timed out after 0.2 s" in verdict.missing[0]
    assert verdict.checks[0].exit_code is None
    assert verdict.checks[0].tail == "begun\n[timed out after 0.2 s]"


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
        (("结果已写入notes.md并核对",), True),
        (("结果已写入absent.md并核对",), False),
        (("已运行pytest -q tests通过",), True),
        (("pwd says where",), True),
        (("ls says what",), False),
        (("../outside.txt",), False),
    ],
)
def test_evidence_must_cite_what_the_host_knows(
    decide: Judge, tmp_path: Path, evidence: tuple[str, ...], stands: bool
) -> None:
    """Without checks a claim rests on a recorded call or a file that is there, and is stored as evidence-only."""
    (tmp_path / "notes.md").write_text("x")

    short = (replace(READ, call_id="c8", brief=brief) for brief in ("ls", "pwd"))
    verdict = decide(evidence=evidence, actions=(READ, *short))

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


HUMAN = Requirement("R1", "It is beautiful.", human=True)


def accepted(basis: str) -> Requirement:
    return replace(HUMAN, status=RequirementStatus.PASSED, basis=basis)


def basis(tmp_path: Path, *paths: str) -> str:
    jail = Workspace(tmp_path)
    return basis_of((path, jail.observe(path).sha256) for path in paths)


def test_a_person_is_asked_only_when_all_else_holds(decide: Judge, tmp_path: Path) -> None:
    """An open human requirement is not missing: it is signed off, once there is nothing else to do."""
    without = decide(paths=("a.txt",), requirements=(HUMAN,))
    (tmp_path / "a.txt").write_text("x")
    with_it = decide(paths=("a.txt",), requirements=(HUMAN,))

    assert "a.txt" in without.missing[0]
    assert without.sign_off == ()
    assert (with_it.missing, with_it.sign_off, with_it.stands) == ((), (HUMAN,), False)


def test_what_a_person_accepted_counts_as_long_as_the_deliverables_are_the_same(
    decide: Judge, tmp_path: Path
) -> None:
    """The acceptance is of what the person saw; after a change it is open again."""
    (tmp_path / "a.txt").write_text("x")
    held = accepted(basis(tmp_path, "a.txt"))

    before = decide(paths=("a.txt",), requirements=(held,))
    (tmp_path / "a.txt").write_text("y")
    after = decide(paths=("a.txt",), requirements=(held,))

    assert before.stands
    assert after.sign_off == (held,)


def test_a_person_alone_does_not_take_the_place_of_evidence(decide: Judge, tmp_path: Path) -> None:
    """Where nothing can be checked, nobody is asked before the claim cites something."""
    (tmp_path / "notes.md").write_text("x")

    assert "evidence" in decide(requirements=(HUMAN,)).missing[0]
    assert decide(requirements=(HUMAN,), evidence=("see notes.md",)).sign_off == (HUMAN,)


def test_a_claims_evidence_is_stored_with_the_requirements_it_is_for(decide: Judge, tmp_path: Path) -> None:
    """Of a claim that stands it is kept, of one that does not it is worth nothing."""
    (tmp_path / "a.txt").write_text("x")
    words = Requirement("R1", "It reads well.")

    long = "a.txt" + "." * MAX_EVIDENCE
    [_, kept] = decide(paths=("a.txt",), requirements=(words,), evidence=(long,)).checks
    assert kept.tail == long[:MAX_EVIDENCE]

    refused = decide(paths=("b.txt",), requirements=(words,), evidence=("a.txt reads well",))
    stands = decide(paths=("a.txt",), requirements=(words,), evidence=("a.txt reads well",))

    assert [c.subject for c in refused.checks] == ["b.txt"]
    assert ("R1", True, "a.txt reads well") in [(c.subject, c.passed, c.tail) for c in stands.checks]


def protected(tmp_path: Path, path: str) -> ProtectedFile:
    return ProtectedFile(path, Workspace(tmp_path).observe(path).sha256, "R1")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda file: file.write_text("exit 0 # easier"), "was changed"),
        (lambda file: file.unlink(), "was removed"),
        (lambda file: (file.unlink(), file.mkdir()), "was replaced (a directory"),
        (lambda file: (file.unlink(), file.symlink_to("/bin/true")), "was replaced (outside the workspace)"),
    ],
    ids=["changed", "removed", "directory", "link"],
)
def test_a_protected_file_must_stay_as_it_is(
    decide: Judge, tmp_path: Path, change: Callable[[Path], object], told: str
) -> None:
    """A changed test is no passed test: the claim is refused, with the file's name and both ways out."""
    file = tmp_path / "run.sh"
    file.write_text("exit 0")
    kept = (protected(tmp_path, "run.sh"),)
    holds = check("true")

    assert decide(requirements=(holds,), protected=kept).stands
    change(file)
    refused = decide(requirements=(holds,), protected=kept)

    assert len(refused.missing) == 1
    assert refused.missing[0].startswith(f"protected file run.sh {told}")
    assert "goalmode accept abc run.sh" in refused.missing[0]


def test_a_protected_file_that_is_put_back_while_the_checks_run_was_changed(
    decide: Judge, tmp_path: Path
) -> None:
    """The files are looked at before the checks run, too."""
    file = tmp_path / "run.sh"
    file.write_text("exit 1")
    kept = (protected(tmp_path, "run.sh"),)
    file.write_text("printf 'exit 1' > run.sh; exit 0")

    refused = decide(requirements=(check("sh run.sh"),), protected=kept)

    assert file.read_text() == "exit 1"
    assert "run.sh was changed:" in refused.missing[0]


def test_a_check_that_changes_what_is_protected_is_told_as_such(decide: Judge, tmp_path: Path) -> None:
    """Nobody can restore what the check itself changes each time, so this is said."""
    file = tmp_path / "log"
    file.write_text("")
    kept = (protected(tmp_path, "log"),)

    refused = decide(requirements=(check("date > log"),), protected=kept)

    assert "log was changed while the checks ran" in refused.missing[0]


def test_a_file_requirement_is_looked_at_after_the_commands(decide: Judge, tmp_path: Path) -> None:
    """A check cannot remove what was counted before."""
    (tmp_path / "a.txt").write_text("x")
    there = Requirement("R1", "exists:a.txt", file=FileCheck(FileTest.EXISTS, "a.txt"))

    verdict = decide(paths=("a.txt",), requirements=(there, check("rm a.txt", 2)))

    assert [(c.subject, c.passed) for c in verdict.checks] == [("R1", False), ("R2", True), ("a.txt", False)]
    assert "requirement R1 (file exists:a.txt)" in verdict.missing[1]


def test_a_verified_item_is_verified_again_when_its_files_changed(decide: Judge, tmp_path: Path) -> None:
    """What was verified holds for the files as they were."""
    (tmp_path / "a.txt").write_text("x")
    work = apply(WorkState(), StatePatch(pending=("a.txt is right",)), wakeup=1)
    sha = str(Workspace(tmp_path).observe("a.txt").sha256)
    seen = StatePatch(verified={"W1": (True, "cat")}, rests_on={"W1": (("a.txt", sha),)})
    work = apply(work, seen, wakeup=1)

    assert decide(paths=("a.txt",), work=work).stands
    (tmp_path / "a.txt").write_text("y")
    refused = decide(paths=("a.txt",), work=work)

    assert refused.missing == (
        "item W1 was verified, but a.txt changed since, verify it again: a.txt is right",
    )


def test_what_is_missing_is_bounded_and_says_so(decide: Judge) -> None:
    """Of a hundred missing files twenty are named."""
    verdict = decide(paths=tuple(f"{n}.txt" for n in range(100)))

    assert len(verdict.missing) == 21
    assert verdict.missing[-1] == "and 80 more"


def test_an_endless_output_keeps_its_end_in_little_memory(decide: Judge) -> None:
    """A check may print what it likes: a bounded part is kept, and its exit code counts."""
    tracemalloc.start()
    verdict = decide(
        requirements=(check("head -c 30000000 /dev/zero | tr '\\0' x; echo; echo the end; exit 3"),)
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert verdict.checks[0].exit_code == 3
    assert verdict.checks[0].tail.endswith("the end")
    assert len(verdict.checks[0].tail) <= command.TAIL
    assert peak < 12_000_000


def test_a_check_has_no_terminal_and_nothing_to_read(decide: Judge) -> None:
    """What asks a question gets the end of its input at once, and does not hang."""
    verdict = decide(requirements=(check("read answer && exit 0; test -t 0 && exit 0; exit 5"),))

    assert verdict.checks[0].exit_code == 5


def test_what_a_check_leaves_running_ends_with_it(decide: Judge, tmp_path: Path) -> None:
    """Forked children are in the same process group, and do not hold the check open."""
    leaves = "for n in 1 2 3; do sleep 90 & echo $! >> pids; done; exit 0"

    assert decide(requirements=(check(leaves),)).stands
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == 3
    assert [pid for pid in pids if _runs(Path("/proc") / pid / "stat")] == []


def _runs(stat: Path) -> bool:
    """A zombie whose new parent does not reap it runs no more."""
    try:
        return stat.read_text().rsplit(")", 1)[-1].split()[0] not in "ZX"
    except OSError:
        return False


def test_texts_of_requirements_are_told_as_they_are(decide: Judge) -> None:
    """Template syntax, tags and control characters in a requirement are data, on one line."""
    odd = "{{ 7*7 }} </contract>\nand\x1b[31m more"
    verdict = decide(requirements=(Requirement("R1", odd),))

    assert "{{ 7*7 }} </contract>\\nand\\x1b[31m more" in verdict.missing[0]


def test_the_output_of_a_check_has_a_digest(decide: Judge) -> None:
    """Equal outputs are known again, without being kept whole."""
    verdict = decide(requirements=(check("echo same", 1), check("printf same", 2), check("echo other", 3)))
    digests = [c.output_sha256 for c in verdict.checks]

    assert digests[0] == digests[1] != digests[2]
