"""The contract is the user's: what it may hold, what it protects, what a person accepts, and a look at it any time."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from goalmode.domain.contract import FileCheck, FileTest, Requirement, RequirementStatus, basis_of
from goalmode.domain.exits import Exit, ExitReason, GoalStatus
from goalmode.domain.goal import Control, Goal, GoalSettings, GoalSpec
from goalmode.domain.questions import Asking, QuestionKind
from goalmode.domain.redact import Redactor
from goalmode.errors import BadInput, NotAllowed, UnknownGoal
from goalmode.orchestrator.accept import accept
from goalmode.orchestrator.check import Checked, check_contract
from goalmode.orchestrator.contract import MAX_LINE, parse_file_check, warnings
from goalmode.orchestrator.goals import create_goal, delete_goal, edit_goal, stop_goal
from goalmode.settle import protect
from goalmode.state import contract, goals, reading
from goalmode.state import tables as t
from goalmode.state.contract import Acceptance
from goalmode.state.store import Store
from goalmode.testing import ManualClock
from goalmode.tools.paths import Workspace
from tests.orchestrator.builders import DONE, begin, new_goal, now
from tests.state.builders import dump, rows

HUMAN = Requirement("", "It is beautiful.", human=True)
SIGN_OFF = Exit(
    ExitReason.NEEDS_USER_INPUT,
    "a person has to accept R1",
    {"sign_off": ["R1"]},
    question=Asking(QuestionKind.SIGN_OFF, "Do you accept R1?"),
)


def command(text: str) -> Requirement:
    return Requirement("", text, text)


def file(test: FileTest, path: str, value: str = "") -> Requirement:
    return Requirement("", "", file=FileCheck(test, path, value))


def protected(goal: Goal) -> dict[str, str]:
    return {one.path: one.named_by for one in goal.protected}


def look(store: Store, goal: Goal, **environment: str) -> Checked:
    path = {"PATH": os.environ["PATH"], **environment}

    async def run() -> Checked:
        return await check_contract(store, goal, environment=path, redact=Redactor())

    return anyio.run(run)


def waiting(store: Store, workspace: Path, *more: Requirement, paths: tuple[str, ...] = ()) -> Goal:
    """A goal that waits for R1 to be accepted."""
    goal = new_goal(store, workspace, requirements=(HUMAN, *more), deliverables=paths)
    begin(store, goal).close(SIGN_OFF)
    goal = now(store, goal)
    assert goal.status is GoalStatus.WAITING_USER
    return goal


@pytest.mark.parametrize(
    ("text", "check"),
    [
        ("exists:out.md", FileCheck(FileTest.EXISTS, "out.md")),
        ("exists:a:b", FileCheck(FileTest.EXISTS, "a:b")),
        ("non-empty:out dir/报告.md", FileCheck(FileTest.NON_EMPTY, "out dir/报告.md")),
        ("contains:report.md:Total: 5", FileCheck(FileTest.CONTAINS, "report.md", "Total: 5")),
        ("json:out.json", FileCheck(FileTest.JSON, "out.json")),
        ("larger:data.csv:1024", FileCheck(FileTest.LARGER, "data.csv", "1024")),
    ],
)
def test_a_files_test_is_read_as_it_is_written(text: str, check: FileCheck) -> None:
    """And is written as it was read."""
    assert parse_file_check(text) == check
    assert check.written == text


@pytest.mark.parametrize("text", ["", "exists", "exists:", "shorter:a:1", "EXISTS:a", ":a", "out.md"])
def test_what_is_no_files_test_is_refused(text: str) -> None:
    """The message has an example of one that is."""
    with pytest.raises(BadInput, match=r"contains:report\.md:Total"):
        parse_file_check(text)


def test_all_kinds_of_requirements_are_stored(store: Store, workspace: Path) -> None:
    """Each comes back as it was given, under its id, its path in the clean form."""
    given = (
        Requirement("", "Be kind."),
        command("true"),
        file(FileTest.CONTAINS, "./out//a.md", "Total"),
        replace(file(FileTest.EXISTS, "b"), text="B is there."),
        HUMAN,
    )
    goal = new_goal(store, workspace, requirements=given)

    assert [(r.id, r.kind.value, r.text) for r in goal.requirements] == [
        ("R1", "evidence", "Be kind."),
        ("R2", "command", "true"),
        ("R3", "file", "contains:out/a.md:Total"),
        ("R4", "file", "B is there."),
        ("R5", "human", "It is beautiful."),
    ]
    assert goal.requirements[2].file == FileCheck(FileTest.CONTAINS, "out/a.md", "Total")
    assert {r.status for r in goal.requirements} == {RequirementStatus.OPEN}


def test_nobody_has_accepted_what_is_new(store: Store, workspace: Path) -> None:
    """Not even if it is given as accepted: that is for `accept` to say."""
    held = replace(HUMAN, status=RequirementStatus.PASSED, basis=basis_of(()))
    goal = new_goal(store, workspace, requirements=(held,))

    assert goal.requirements[0].status is RequirementStatus.OPEN
    edited = edit_goal(store, goal, requirements=(replace(held, text="It is kind."),))
    assert edited.requirements[0].status is RequirementStatus.OPEN


BAD: list[tuple[str, dict[str, Any]]] = [
    ("human", {"requirements": (Requirement("", " ", human=True),)}),
    ("human", {"requirements": (Requirement("", "x" * (MAX_LINE + 1), human=True),)}),
    ("requirement", {"requirements": (Requirement("", "t", "true", human=True),)}),
    ("requirement", {"requirements": (Requirement("", "t", file=FileCheck(FileTest.EXISTS, "a"), human=True),)}),
    ("check", {"requirements": (command("x" * (MAX_LINE + 1)),)}),
    ("check-file", {"requirements": (file(FileTest.EXISTS, ""),)}),
    ("check-file", {"requirements": (file(FileTest.EXISTS, "."),)}),
    ("check-file", {"requirements": (file(FileTest.EXISTS, "../a"),)}),
    ("check-file", {"requirements": (file(FileTest.EXISTS, "/etc/passwd"),)}),
    ("check-file", {"requirements": (file(FileTest.EXISTS, "a\x00"),)}),
    ("check-file", {"requirements": (file(FileTest.EXISTS, "a", "value"),)}),
    ("check-file", {"requirements": (file(FileTest.CONTAINS, "a"),)}),
    ("check-file", {"requirements": (file(FileTest.CONTAINS, "a", "\udcff"),)}),
    ("check-file", {"requirements": (file(FileTest.CONTAINS, "a", "x" * MAX_LINE),)}),
    ("check-file", {"requirements": (file(FileTest.LARGER, "a", ""),)}),
    ("check-file", {"requirements": (file(FileTest.LARGER, "a", "-1"),)}),
    ("check-file", {"requirements": (file(FileTest.LARGER, "a", "1k"),)}),
    ("check-file", {"requirements": (file(FileTest.LARGER, "a", "9" * 16),)}),
    ("deliverable", {"deliverables": ("R1",)}),
    ("deliverable", {"deliverables": ("./R12",)}),
    ("protect", {"protect": ("nothing/**",)}),
    ("protect", {"protect": ("../*",)}),
    ("protect", {"protect": ("R1",)}),
    ("protect", {"protect": ("a\udcff",)}),
    ("check-timeout", {"settings": GoalSettings(check_seconds=0)}),
    ("check-timeout", {"settings": GoalSettings(check_seconds=float("nan"))}),
    ("check-timeout", {"settings": GoalSettings(check_seconds=86_401)}),
]  # fmt: skip


@pytest.mark.parametrize(("field", "fields"), BAD, ids=lambda value: str(value)[:60])
def test_bad_input_creates_nothing(store: Store, workspace: Path, field: str, fields: dict[str, Any]) -> None:
    """B25: each names its field and what would be right, in one line, with exit code 2; the store is as it was."""
    before = dump(store)

    with pytest.raises(BadInput) as caught:
        create_goal(store, GoalSpec("Write the report.", str(workspace), **fields))

    assert (caught.value.field, caught.value.exit_code) == (field, 2)
    assert caught.value.expected
    assert "\n" not in str(caught.value)
    assert dump(store) == before


def test_what_a_check_names_is_protected(store: Store, workspace: Path) -> None:
    """With its hash, and what names it; a deliverable is there to be written, and what is absent to be made."""
    for name in ("run.sh", "conf.ini", "out.md"):
        (workspace / name).write_text(name)
    goal = new_goal(
        store,
        workspace,
        requirements=(command("sh run.sh --config=conf.ini out.md absent.md"),),
        deliverables=("out.md",),
        protect=("*.ini", "out*"),
    )

    assert protected(goal) == {"run.sh": "R1", "conf.ini": "R1"}
    assert goal.protected[0].sha256 == Workspace(workspace).observe(goal.protected[0].path).sha256


def test_too_much_to_protect_is_refused(
    store: Store, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bound is named, and no goal is made."""
    monkeypatch.setattr(protect, "MAX_PROTECTED", 2)
    for name in "abc":
        (workspace / name).touch()

    assert len(new_goal(store, workspace, protect=("[ab]",)).protected) == 2
    with pytest.raises(BadInput, match="at most 2 files"):
        new_goal(store, workspace, protect=("[ab]",), requirements=(command("cat c"),))


def test_an_edit_keeps_the_hashes_there_are_and_protects_what_is_new(store: Store, workspace: Path) -> None:
    """A changed file does not become right by an edit of something else; ids follow their requirements."""
    for name in ("run.sh", "data.csv", "new.sh", "late.csv"):
        (workspace / name).write_text(name)
    first, second = command("sh run.sh"), command("sh run.sh --again")
    goal = new_goal(store, workspace, requirements=(HUMAN, first, second), protect=("data.csv",))
    hashes = {one.path: one.sha256 for one in goal.protected}
    (workspace / "run.sh").write_text("easier")
    (workspace / "data.csv").unlink()

    goal = edit_goal(
        store, goal, requirements=(*goal.requirements[1:], command("sh new.sh")), protect=("late*",)
    )

    assert protected(goal) == {"data.csv": "data.csv", "run.sh": "R1", "late.csv": "late*", "new.sh": "R3"}
    assert {p: s for one in goal.protected if (p := one.path) in hashes for s in [one.sha256]} == hashes

    goal = edit_goal(store, goal, requirements=goal.requirements[1:])
    assert protected(goal)["run.sh"] == "R1"
    assert {one.path: one.sha256 for one in goal.protected}["run.sh"] == hashes["run.sh"]

    goal = edit_goal(store, goal, requirements=goal.requirements[1:])
    assert protected(goal) == {"data.csv": "data.csv", "late.csv": "late*", "new.sh": "R1"}

    goal = edit_goal(store, goal, deliverables=("new.sh",), unprotect=("late*", "data.csv"))
    assert protected(goal) == {}


def test_protection_comes_back_only_for_a_check_that_is_new(store: Store, workspace: Path) -> None:
    """What the user took out stays out at the next edit of something else."""
    (workspace / "run.sh").touch()
    goal = new_goal(store, workspace, requirements=(command("sh run.sh"),))
    goal = edit_goal(store, goal, unprotect=("run.sh",))
    goal = edit_goal(store, goal, objective="Another.")

    assert protected(goal) == {}
    goal = edit_goal(store, goal, requirements=(*goal.requirements, command("./run.sh")))
    assert protected(goal) == {"run.sh": "R2"}


def test_an_edit_can_change_the_time_limit(store: Store, workspace: Path) -> None:
    """It is one of the settings, and the others stay."""
    goal = new_goal(store, workspace, settings=GoalSettings(max_turns=7))
    goal = edit_goal(store, goal, settings=replace(goal.settings, check_seconds=5.0))

    assert (goal.settings.check_seconds, goal.settings.max_turns, goal.revision) == (5.0, 7, 2)
    with pytest.raises(BadInput, match="to change"):
        edit_goal(store, goal, settings=goal.settings)


def test_masked_checks_are_told_by_their_ids() -> None:
    """Only commands can be."""
    given = (Requirement("R1", "a; true"), Requirement("R2", "t", "a; true"), Requirement("R3", "t", "a"))

    [line] = warnings(given)

    assert line.startswith("check R2 may hold whatever it finds: ")


def test_acceptance_makes_a_waiting_goal_due_once_nothing_is_left(store: Store, workspace: Path) -> None:
    """B124: the last open requirement answers the question; an earlier one leaves the goal waiting."""
    goal = waiting(store, workspace, replace(HUMAN, text="It is kind."))

    first = accept(store, goal, ["R2"])
    assert (first.goal.status, [r.id for r in first.open]) == (GoalStatus.WAITING_USER, ["R1"])
    last = accept(store, first.goal, ["r1"])

    assert (last.goal.status, last.goal.wake_reason, last.open) == (GoalStatus.ACTIVE, "signed off", ())
    assert last.goal.next_wakeup_at == store.clock.now()
    [(status, answer)] = rows(store, "SELECT status, answer FROM questions")
    assert (status, answer) == ("answered", "accepted: R1 (It is beautiful.)")
    events = [json.loads(data) for data in rows(store, "SELECT data FROM events WHERE kind = 'accepted'")]
    assert [event["requirement"] for event in events] == ["R2", "R1"]


def test_accepting_twice_is_harmless(store: Store, workspace: Path) -> None:
    """It says so, and changes neither the time of the first nor the goal's."""
    goal = new_goal(store, workspace, requirements=(HUMAN,))
    first = accept(store, goal, ["R1", "R1"])
    clock = store.clock
    assert isinstance(clock, ManualClock)
    clock.advance(60)
    second = accept(store, first.goal, ["R1"])

    assert (first.names, first.already) == (("R1",), ())
    assert (second.names, second.already) == (("R1",), ("R1",))
    assert second.goal.requirements == first.goal.requirements
    assert rows(store, "SELECT count(*) FROM events WHERE kind = 'accepted'") == [1]


def test_two_who_accept_at_once_are_one_acceptance(store: Store, workspace: Path) -> None:
    """Both have read the goal as it was; the second changes nothing any more."""
    (workspace / "run.sh").touch()
    goal = new_goal(store, workspace, requirements=(command("sh run.sh"), HUMAN))
    (workspace / "run.sh").write_text("true")

    first, second = (accept(store, goal, ["R2", "run.sh"]).goal for _ in range(2))

    assert replace(first, inbox_head=0) == replace(second, inbox_head=0)
    assert rows(store, "SELECT count(*) FROM events WHERE kind = 'accepted'") == [2]
    assert rows(store, "SELECT count(*) FROM inbox") == [1]


def test_an_acceptance_is_stored_whole_or_not_at_all(
    store: Store, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash before its commit leaves the requirement open and the question unanswered."""
    goal = waiting(store, workspace)
    before = dump(store)

    def crash(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(contract.answers, "sign_off", crash)
    with pytest.raises(RuntimeError):
        accept(store, goal, ["R1"])

    assert dump(store) == before


def test_an_acceptance_that_did_not_reach_the_goal_is_made_good(store: Store, workspace: Path) -> None:
    """Accepting once more makes a goal due that asks about what has been accepted."""
    goal = new_goal(store, workspace, requirements=(HUMAN,))
    accept(store, goal, ["R1"])
    begin(store, now(store, goal)).close(SIGN_OFF)
    with store.writing() as connection:
        connection.execute(t.goals.update().values(status=GoalStatus.WAITING_USER))

    found = accept(store, now(store, goal), ["R1"])

    assert (found.already, found.goal.status) == (("R1",), GoalStatus.ACTIVE)


def test_an_acceptance_is_of_the_deliverables_as_they_were(store: Store, workspace: Path) -> None:
    """After a change it is open again and can be accepted again; a file that is put back is as accepted."""
    (workspace / "a.txt").write_text("x")
    goal = accept(
        store, new_goal(store, workspace, requirements=(HUMAN,), deliverables=("a.txt",)), ["R1"]
    ).goal
    (workspace / "a.txt").write_text("y")

    assert not look(store, goal).holds
    (workspace / "a.txt").write_text("x")
    assert look(store, goal).holds
    (workspace / "a.txt").write_text("y")
    again = accept(store, goal, ["R1"])
    assert again.already == ()
    assert look(store, again.goal).holds


def test_an_edit_keeps_what_was_accepted_in_the_same_words(store: Store, workspace: Path) -> None:
    """Also what was accepted after the edit's goal was read; in other words it is another requirement."""
    goal = new_goal(store, workspace, requirements=(command("true"), HUMAN))
    accept(store, goal, ["R2"])

    goal = edit_goal(store, goal, requirements=(goal.requirements[1], replace(HUMAN, text="It is kind.")))

    assert [r.status.value for r in goal.requirements] == ["passed", "open"]
    assert accept(store, goal, ["R1"]).already == ("R1",)


def test_a_protected_file_is_accepted_as_it_is_now(store: Store, workspace: Path) -> None:
    """Its new hash is stored with the time and an event; also that it is gone; a goal that is blocked stays so."""
    for name in ("run.sh", "b.sh"):
        (workspace / name).write_text(name)
    goal = new_goal(store, workspace, requirements=(command("sh run.sh; sh b.sh"),))
    (workspace / "run.sh").write_text("longer")
    (workspace / "b.sh").unlink()

    found = accept(store, goal, ["./run.sh", "b.sh"])

    stored = {one.path: one for one in found.goal.protected}
    assert stored["run.sh"].sha256 == Workspace(workspace).observe("run.sh").sha256
    assert stored["b.sh"].sha256 is None
    assert stored["run.sh"].accepted_at == store.clock.now()
    assert accept(store, found.goal, ["run.sh", "b.sh"]).already == ("run.sh", "b.sh")
    [first, _] = [json.loads(data) for data in rows(store, "SELECT data FROM events WHERE kind = 'accepted'")]
    assert (first["file"], first["before"]) == ("run.sh", goal.protected[0].sha256)


def test_an_edit_keeps_an_accepted_hash(store: Store, workspace: Path) -> None:
    """Also one that was accepted after the edit's goal was read."""
    (workspace / "run.sh").write_text("x")
    (workspace / "data").touch()
    goal = new_goal(store, workspace, requirements=(command("sh run.sh"),))
    (workspace / "run.sh").write_text("y")
    accepted = accept(store, goal, ["run.sh"]).goal

    edited = edit_goal(store, goal, protect=("data",))

    assert edited.protected[0] == accepted.protected[0]


@pytest.mark.parametrize("name", ["R1", "R9", "nothing", "a.txt", "", "../x", "/etc/passwd", "a\x00b"])
def test_only_what_waits_for_a_person_can_be_accepted(store: Store, workspace: Path, name: str) -> None:
    """Anything else is refused by name, and what was named beside it is not accepted either."""
    (workspace / "run.sh").touch()
    goal = new_goal(store, workspace, requirements=(command("sh run.sh"), HUMAN), deliverables=("a.txt",))
    before = dump(store)

    with pytest.raises(BadInput, match="accept"):
        accept(store, goal, ["R2", name])

    assert dump(store) == before


def test_what_cannot_be_hashed_is_not_accepted(store: Store, workspace: Path) -> None:
    """A protected file that became a directory, or a link out of the workspace."""
    (workspace / "run.sh").touch()
    goal = new_goal(store, workspace, requirements=(command("sh run.sh"),))
    (workspace / "run.sh").unlink()
    (workspace / "run.sh").symlink_to("/bin/true")

    with pytest.raises(BadInput, match="outside the workspace"):
        accept(store, goal, ["run.sh"])


def test_an_aborted_goal_takes_no_acceptance_and_no_check(store: Store, workspace: Path) -> None:
    """Also one that is aborted at the same moment."""
    goal = new_goal(store, workspace, requirements=(HUMAN,))
    aborted, _ = stop_goal(store, goal, Control.ABORT)

    with pytest.raises(NotAllowed, match="`accept` is refused"):
        accept(store, aborted, ["R1"])
    with pytest.raises(NotAllowed, match="meanwhile"):
        contract.accept(store, goal, Acceptance(["R1"], "basis"), now=store.clock.now())
    with pytest.raises(NotAllowed, match="`check` is refused"):
        look(store, aborted)


def test_an_acceptance_at_an_older_revision_is_refused(store: Store, workspace: Path) -> None:
    """R1 may be another requirement by now."""
    goal = new_goal(store, workspace, requirements=(HUMAN,))
    edit_goal(store, goal, requirements=(command("true"), HUMAN))

    with pytest.raises(NotAllowed, match="meanwhile"):
        accept(store, goal, ["R1"])


def test_an_acceptance_while_the_wakeup_is_about_to_ask_is_not_lost(store: Store, workspace: Path) -> None:
    """The goal asks, but does not wait for what has been said already."""
    goal = new_goal(store, workspace, requirements=(HUMAN,))
    wake = begin(store, goal)
    accept(store, now(store, goal), ["R1"])
    wake.close(SIGN_OFF)

    assert now(store, goal).status is GoalStatus.ACTIVE


def test_another_question_is_not_answered_by_an_acceptance(store: Store, workspace: Path) -> None:
    """The goal goes on waiting for what only words can answer."""
    goal = new_goal(store, workspace, requirements=(HUMAN,))
    begin(store, goal).close(Exit(ExitReason.NEEDS_USER_INPUT, "Which colour?"))

    assert accept(store, now(store, goal), ["R1"]).goal.status is GoalStatus.WAITING_USER


def test_a_check_stores_what_it_finds_without_a_wakeup(store: Store, workspace: Path) -> None:
    """Results, the requirements' states and the deliverables' hashes are those of a claim; the goal stays as it was."""
    (workspace / "a.txt").write_text("x")
    goal = new_goal(
        store,
        workspace,
        requirements=(
            command("echo no luck; exit 4"),
            file(FileTest.EXISTS, "a.txt"),
            Requirement("", "Kind."),
        ),
        deliverables=("a.txt", "b.txt"),
    )

    found = look(store, goal)

    assert [(line.subject, line.holds) for line in found.lines] == [
        ("R1", False), ("R2", True), ("R3", None), ("a.txt", True), ("b.txt", False),
    ]  # fmt: skip
    assert (found.holds, found.lines[0].exit_code, found.lines[0].tail) == (False, 4, "no luck")
    assert [r.status.value for r in found.goal.requirements] == ["failed", "passed", "open"]
    assert found.goal.requirements[0].checked_at == store.clock.now()
    assert [d.sha_seen is not None for d in found.goal.deliverables] == [True, False]
    assert rows(store, "SELECT DISTINCT wakeup, revision FROM checks") == [(None, 1)]
    assert (found.goal.status, found.goal.next_wakeup_at) == (goal.status, goal.next_wakeup_at)


def test_a_check_holds_when_nothing_is_left_but_evidence(store: Store, workspace: Path) -> None:
    """What only a claim can show is open, and no failure."""
    goal = new_goal(store, workspace, requirements=(Requirement("", "Kind."), command("true")))

    assert look(store, goal).holds


def test_a_check_has_the_goals_time_limit_and_its_own_environment(store: Store, workspace: Path) -> None:
    """As in a claim."""
    short = GoalSettings(check_seconds=0.2)
    slow = new_goal(store, workspace, requirements=(command("sleep 90"),), settings=short)
    goal = new_goal(store, workspace, requirements=(command('test "$A" = b'),))

    [late] = look(store, slow).lines
    [told] = look(store, goal, A="b").lines

    assert (late.holds, late.exit_code, "timed out after 0.2 s" in late.tail) == (False, None, True)
    assert told.holds


def test_results_of_an_older_revision_do_not_pass_for_the_newer_one(store: Store, workspace: Path) -> None:
    """The contract was edited while the checks ran: what they found is kept, and says nothing of the new R1."""
    goal = new_goal(store, workspace, requirements=(command("true"),))
    edit_goal(store, goal, requirements=(command("false"),))

    found = look(store, goal)

    assert found.goal.requirements[0].status is RequirementStatus.OPEN
    with store.reading() as connection:
        assert reading.last_checks(connection, goal.id, 2) == {}
        assert list(reading.last_checks(connection, goal.id, 1)) == ["R1"]


def test_a_check_of_a_goal_that_is_gone_or_elsewhere_is_refused(store: Store, workspace: Path) -> None:
    """It names the machine; a goal that is deleted while its checks run leaves nothing behind."""
    goal = new_goal(store, workspace, requirements=(command("true"),))
    with pytest.raises(NotAllowed, match="its workspace is on elsewhere"):
        look(store, replace(goal, host_label="elsewhere"))
    with pytest.raises(NotAllowed, match="its workspace is on elsewhere"):
        accept(store, replace(goal, host_label="elsewhere"), ["R1"])
    delete_goal(store, goal)

    with pytest.raises(UnknownGoal, match="deleted"):
        look(store, goal)


def test_a_goal_that_is_done_can_still_be_checked(store: Store, workspace: Path) -> None:
    """It stays done."""
    goal = new_goal(store, workspace, requirements=(command("exit 1"),))
    begin(store, goal).close(DONE)

    found = look(store, now(store, goal))

    assert (found.holds, found.goal.status) == (False, GoalStatus.DONE)


def test_protected_files_are_part_of_a_check(store: Store, workspace: Path) -> None:
    """Only a changed one is told."""
    (workspace / "run.sh").touch()
    goal = new_goal(store, workspace, requirements=(command("sh run.sh"),))
    assert [line.kind for line in look(store, goal).lines] == ["command"]
    (workspace / "run.sh").write_text("true")

    line = look(store, goal).lines[-1]

    assert (line.subject, line.kind, line.holds, line.detail) == ("run.sh", "protected", False, "was changed")


def test_a_goal_is_as_it_was_stored(store: Store, workspace: Path) -> None:
    """Protection and acceptance survive the way through the store."""
    (workspace / "run.sh").touch()
    goal = new_goal(store, workspace, requirements=(command("sh run.sh"), HUMAN))
    found = accept(store, goal, ["R2", "run.sh"])

    assert goals.get(store, goal.id) == found.goal
