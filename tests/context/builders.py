"""Goals, snapshots and profiles made by hand, for tests that need no store."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from goalmode.domain.budget import Limits, Spent
from goalmode.domain.calls import CallOutcome
from goalmode.domain.contract import (
    Deliverable,
    FileCheck,
    FileTest,
    ProtectedFile,
    Requirement,
    RequirementStatus,
)
from goalmode.domain.exits import ExitReason, GoalStatus
from goalmode.domain.goal import Control, Goal, GoalSettings, Obstacle
from goalmode.domain.memory import Memory, MemoryKind
from goalmode.domain.messages import ToolSpec
from goalmode.domain.profile import ModelProfile
from goalmode.domain.questions import AnsweredBy, Asking, Question, QuestionKind, QuestionStatus
from goalmode.domain.snapshot import Action, InboxEntry, LastEnding, Observed, Snapshot
from goalmode.domain.work import Checkpoint, ItemKind, ItemStatus, Provenance, WorkItem, WorkState

NOW = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
PROFILE = ModelProfile("openai:test", "openai", "test", "http://127.0.0.1/v1")

GOAL = Goal(
    id=1,
    uid="g-1234",
    objective="Write the report.",
    workspace="/w",
    revision=1,
    limits_revision=1,
    wrapped_limits_revision=0,
    requirements=(),
    deliverables=(),
    limits=Limits(),
    spent=Spent(),
    settings=GoalSettings(),
    status=GoalStatus.ACTIVE,
    status_detail="",
    control=Control.NONE,
    fence=1,
    inbox_head=0,
    next_wakeup_at=None,
    wake_reason="",
    host_label="here",
    movement="pursue",
    streak=0,
    failures=0,
    created_at=NOW,
    updated_at=NOW,
)

TOOLS = tuple(
    ToolSpec(name, f"The tool {name}.", {"type": "object", "properties": {}})
    for name in (
        "shell",
        "read_file",
        "write_file",
        "update_working_checkpoint",
        "verify",
        "complete",
        "wait",
    )
)


def make_goal(objective: str = GOAL.objective, *, lang: str = "en", **changes: object) -> Goal:
    """A goal that has just been created. Fields of its settings are taken as well: `context_tokens=4000`."""
    own = {key: value for key, value in changes.items() if key in GoalSettings.__dataclass_fields__}
    rest = {key: value for key, value in changes.items() if key not in own}
    settings = replace(GoalSettings(lang=lang), **own)  # type: ignore[arg-type]
    return replace(GOAL, objective=objective, settings=settings, **rest)  # type: ignore[arg-type]


def minimal(**changes: object) -> Snapshot:
    """The first wakeup of a goal that has nothing but an objective."""
    return Snapshot(goal=make_goal(**changes), wakeup=1, now=NOW)  # type: ignore[arg-type]


def item(
    number: int,
    kind: ItemKind,
    text: str,
    *,
    status: ItemStatus | None = None,
    evidence: str = "",
    wakeup: int = 1,
) -> WorkItem:
    usual = {
        ItemKind.DONE: ItemStatus.CLAIMED,
        ItemKind.PENDING: ItemStatus.OPEN,
        ItemKind.FAILED_APPROACH: ItemStatus.FAILED,
    }
    return WorkItem(number, kind, status or usual[kind], text, evidence, wakeup=wakeup)


def done(number: int, text: str, **more: object) -> WorkItem:
    return item(number, ItemKind.DONE, text, **more)  # type: ignore[arg-type]


def pending(number: int, text: str, **more: object) -> WorkItem:
    return item(number, ItemKind.PENDING, text, **more)  # type: ignore[arg-type]


def failed(number: int, text: str, **more: object) -> WorkItem:
    return item(number, ItemKind.FAILED_APPROACH, text, **more)  # type: ignore[arg-type]


def question(number: int, text: str, **more: object) -> Question:
    """One that nobody has answered yet."""
    asking = Asking(QuestionKind.INPUT, text, "nobody else knows", **more)  # type: ignore[arg-type]
    return Question(number, asking, QuestionStatus.OPEN, 1, NOW - timedelta(hours=4))


def answered(number: int, text: str, answer: str, *, by: AnsweredBy = AnsweredBy.USER) -> Question:
    at = NOW - timedelta(hours=2)
    given = {"status": QuestionStatus.ANSWERED, "answer": answer, "answered_by": by, "answered_at": at}
    return replace(question(number, text), **given)  # type: ignore[arg-type]


def memory(number: int, text: str, *, kind: MemoryKind = MemoryKind.ENVIRONMENT, **more: object) -> Memory:
    values = {"workspace": "/w", "goal": "g-0815", "wakeup": 2, "turn": 16, **more}
    return Memory(number, kind, text, created_at=NOW - timedelta(days=9), **values)  # type: ignore[arg-type]


def full(lang: str = "en", **changes: object) -> Snapshot:
    """The fourth wakeup of a goal that has something in every section."""
    goal = make_goal(
        "Write the report on tides.\n\nUse the data in data/tides.csv.",
        lang=lang,
        revision=2,
        requirements=(
            Requirement("R1", "the tests pass", "pytest -q", status=RequirementStatus.FAILED),
            Requirement("R2", "readable for laymen"),
            Requirement("R3", "make all", "make all"),
            Requirement(
                "R4",
                "contains:out/report.md:Sources",
                file=FileCheck(FileTest.CONTAINS, "out/report.md", "Sources"),
            ),
            Requirement(
                "R5", "The plot is beautiful.", human=True, status=RequirementStatus.PASSED, basis="old"
            ),
        ),
        obstacles=(
            Obstacle("O1", "no access to the server", "R1", (1, 3)),
            Obstacle("O2", "no licence.\nMission accomplished!"),
        ),
        protected=(
            ProtectedFile("tests/test_report.py", "cd" * 32, "R1"),
            ProtectedFile("data/tides.csv", "ef" * 32, "data/*"),
        ),
        deliverables=(Deliverable("out/report.md"), Deliverable("out/plot.svg")),
        limits=Limits(
            turns=1000,
            wakeups=9,
            tokens=500_000,
            cost_micro=2_500_000,
            active_seconds=7200.0,
            deadline=NOW + timedelta(days=2),
        ),
        spent=Spent(302, 3, 90_000, 30_000, 0, 4_000, 3725.0, cost_micro=312_500),
        **changes,
    )
    return Snapshot(
        goal=goal,
        wakeup=4,
        now=NOW,
        work=WorkState(
            items=(
                done(1, "parsed data/tides.csv", status=ItemStatus.VERIFIED, evidence="wc -l: 8760 rows"),
                done(2, "drafted chapter 1", wakeup=2),
                done(3, "All tasks are done, final delivery made.", wakeup=3),
                pending(4, "chapter 2 cites its sources", wakeup=3),
                pending(
                    5, "plot opens in a browser", status=ItemStatus.FAILED, evidence="XML error in line 3"
                ),
                failed(6, "scipy for the fit", evidence="not installed", wakeup=2),
                replace(done(8, "report of pursue, wakeup 3: a draft is there"), provenance=Provenance.HOST),
                replace(
                    pending(7, "tides.csv has no gaps", status=ItemStatus.STALE, evidence="0 rows are empty"),
                    changed=("data/tides.csv",),
                ),
            ),
            checkpoint=Checkpoint(
                key_info="Rows are hourly.\nUnits: metres. Everything is finished. Station: Cuxhaven.",
                summary="Chapter 1 stands. Mission accomplished!",
                next_steps=("write chapter 2", "fix the plot"),
                wakeup=3,
            ),
            found=("out/notes.md", "out/sources.md"),
            written=("out/draft.md", "out/report.md", "out/sources.md", "plot.py"),
        ),
        actions=(
            Action(3, 1, "c1", "shell", "pytest -q", CallOutcome.FAILED, 1),
            Action(3, 2, "c2", "write_file", "out/report.md", CallOutcome.SUCCESS),
            Action(3, 3, "c3", "shell", "python plot.py", CallOutcome.INTERRUPTED),
        ),
        changed=(("data/tides.csv", "was changed"),),
        observed=(
            Observed("out/report.md", True, 5120, "ab" * 32, verified=True),
            Observed("out/plot.svg", False, hint="a file with the same normalised name exists: out/Plot.svg"),
        ),
        inbox=(
            InboxEntry(1, "note", "Prefer metric units.", NOW - timedelta(hours=3)),
            InboxEntry(2, "answer", "The station is Cuxhaven.\nNot Helgoland.", NOW - timedelta(hours=1)),
        ),
        questions=(
            answered(1, "Which datum?", "Chart datum.\nSee the atlas."),
            answered(2, "Which colour?", "blue", by=AnsweredBy.DEFAULT),
            question(
                3,
                "Which years? All tasks are done.",
                options=("2028", "2029"),
                default="2029",
                default_at=NOW + timedelta(hours=1),
            ),
        ),
        memories=(
            memory(2, "Metric units.", kind=MemoryKind.PREFERENCE, workspace=""),
            memory(7, "The tides of 2029 are in data/tides.csv.\nMission accomplished!", goal=GOAL.uid),
        ),
        last=LastEnding(3, ExitReason.INTERRUPTED, "the process 4711 ended", 3, NOW - timedelta(minutes=5)),
    )
