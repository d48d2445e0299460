"""Whatever happens in whatever order: turns, claims, notes, edits, answers, stops, crashes, jumps of the clock.

No sequence runs two wakeups at once, spends past a limit by more than the one declared call, loses a question or a
note, changes a contract without a user's revision, or reports success while a check fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from goalmode.domain.budget import Limits
from goalmode.domain.contract import FileCheck, FileTest, Requirement
from goalmode.domain.exits import Exit, ExitReason, GoalStatus
from goalmode.domain.goal import Control, Goal, GoalSettings, GoalSpec
from goalmode.domain.messages import Reply, Request, Usage
from goalmode.domain.questions import QuestionStatus
from goalmode.errors import GoalmodeError
from goalmode.loop.ports import Event
from goalmode.model.scripted import say
from goalmode.orchestrator.goals import create_goal, edit_goal, resume_goal, stop_goal
from goalmode.orchestrator.notes import add_note
from goalmode.orchestrator.questions import answer_question
from goalmode.orchestrator.skip import Skip
from goalmode.state import goals, notes, questions
from goalmode.state.store import Store
from goalmode.testing import ManualClock, call
from goalmode.wiring import begin_wakeup, run_wakeup, workshop
from tests.loop.conftest import PROFILE
from tests.orchestrator.builders import abandon
from tests.state.builders import rows

TOKENS = 14_000
CHEAP, DEAR = Usage(input=900, output=40), Usage(input=7_000, output=900)
"""What a call is charged: far less, and far more, than the host had estimated."""

PRODUCT = "out.txt"

MODEL = {
    "look": lambda: call("list_files", path="."),
    "write": lambda: call("write_file", path=PRODUCT, content="good\n"),
    "spoil": lambda: call("write_file", path=PRODUCT, content="bad\n"),
    "save": lambda: call("update_working_checkpoint", key_info="all done, 收口", pending=["look at it"]),
    "verify": lambda: call("verify", item="W1", outcome="passed", evidence=PRODUCT),
    "claim": lambda: call("complete", status="success", summary="done", evidence=[PRODUCT]),
    "block": lambda: call("complete", status="blocked", summary="stuck", obstacle="no network"),
    "ask": lambda: call(
        "complete", status="needs_user_input", summary="ask", missing_info="which?", why_no_default="yours"
    ),
    "wait": lambda: call("wait", seconds=60, reason="a build"),
    "prose": lambda: say("All done. 任务完成。"),
}
USER = ("note", "edit", "answer", "pause", "abort", "clock on", "clock back", "resume", "raise")
_MOVES = [[("model", move)] for move in sorted(MODEL)]
_ACTS = [[("user", act)] for act in USER]
_ENDS = [[("process", "crash")], [("process", "end")]]
_PHRASES = [
    [("model", "write"), ("model", "claim")],
    [("model", "write"), ("user", "edit"), ("model", "claim"), ("model", "claim")],
    [("model", "spoil"), ("model", "claim")],
    [("model", "look"), ("model", "ask"), ("user", "answer")],
    [("model", "save"), ("model", "verify")],
    [("user", "note"), ("model", "look"), ("user", "pause"), ("user", "resume")],
    [("model", "look"), ("process", "crash")],
]
EVENTS = st.lists(
    st.sampled_from([*_MOVES, *_ACTS, *_ENDS, *_PHRASES, *_PHRASES]), min_size=3, max_size=12
).map(lambda phrases: [event for phrase in phrases for event in phrase])


class Crash(BaseException):
    """The process is gone: nothing after this runs."""


@dataclass
class Story:
    """One goal, the events still to come, and what must never be lost."""

    store: Store
    other: Store
    clock: ManualClock
    goal: Goal
    events: list[tuple[str, str]]
    said: list[str] = field(default_factory=list)
    asked: int = 0
    edits: int = 0
    endings: list[Exit] = field(default_factory=list)
    sent: list[Request] = field(default_factory=list)

    @property
    def now(self) -> Goal:
        return goals.get(self.other, self.goal.id)

    async def complete(self, request: Request) -> Reply:
        """The model: what users do meanwhile happens while it thinks."""
        self.sent.append(request)
        while self.events:
            who, what = self.events.pop(0)
            if who == "user":
                self.act(what)
            elif what == "crash":
                raise Crash
            elif what == "end":
                break
            else:
                return _of(MODEL[what](), len(self.sent), DEAR if what == "spoil" else CHEAP)
        return _of(say(""), len(self.sent), CHEAP)

    def act(self, what: str) -> None:
        """A user does something, from another process. What is refused changes nothing."""
        before = self.now
        try:
            self._act(what, before)
        except GoalmodeError:
            assert self.now == before

    def _act(self, what: str, goal: Goal) -> None:
        match what:
            case "note":
                text = f"note {len(self.said)}: use tabs"
                add_note(self.other, goal, text)
                self.said.append(text)
            case "edit":
                edit_goal(self.other, goal, objective=f"Objective {self.edits}.")
                self.edits += 1
            case "answer":
                answer_question(self.other, goal, "the left one")
            case "pause":
                stop_goal(self.other, goal, Control.PAUSE)
            case "abort":
                stop_goal(self.other, goal, Control.ABORT)
            case "clock on":
                self.clock.advance(1, wall=17 * 3600)
            case "clock back":
                self.clock.advance(1, wall=-400 * 86_400)
            case "resume":
                resume_goal(self.other, goal)
            case "raise":
                more = Limits(tokens=(goal.limits.tokens or 0) + TOKENS)
                resume_goal(self.other, goal, limits=more)

    def wake(self) -> None:
        """One wakeup, until the events say that its process dies or something ends it."""
        wake = begin_wakeup(
            self.store, self.now, profile=PROFILE, only_if_due=False, shop=workshop(self.now, PROFILE)
        )
        if isinstance(wake, Skip):
            return
        claims = []

        def sink(event: Event) -> None:
            claims.append(event.kind)
            assert rows(self.store, "SELECT count(*) FROM wakeups WHERE goal = ? AND exit_reason IS NULL",
                        self.goal.id)[0] <= 1  # fmt: skip

        try:
            ending = anyio.run(lambda: run_wakeup(wake, self, sink=sink))
        except BaseException as error:
            if not _crashed(error):
                raise
            wake.let_go()
            abandon(self.store)
            return
        self.endings.append(ending)
        self.asked += ending.reason is ExitReason.NEEDS_USER_INPUT
        if ending.reason is ExitReason.CURRENT_TASK_DONE:
            product = Path(self.goal.workspace) / PRODUCT
            assert product.read_text() == "good\n", "success was reported while the check fails"
        assert ending.reason is not ExitReason.ENGINE_ERROR, ending.facts["traceback"]

    def hears_every_note(self) -> None:
        """One wakeup more, where one is possible: all that users said is in it."""
        goal = self.now
        assert goal.limits.tokens is not None
        if goal.status is not GoalStatus.ACTIVE or goal.limits.tokens - goal.spent.tokens < TOKENS // 2:
            return
        self.sent.clear()
        self.events = [("process", "end")]
        self.wake()
        if not self.sent:  # What a crash had reserved has used the budget up.
            assert self.now.status is GoalStatus.EXHAUSTED
            return
        heard = "\n".join(getattr(message, "text", "") for r in self.sent for message in r.messages)
        assert [text for text in self.said if text not in heard] == []

    def check(self) -> None:
        """What holds at every moment between two wakeups."""
        goal = self.now
        intervals = rows(
            self.store,
            "SELECT fence, exit_reason IS NULL FROM wakeups WHERE goal = ? ORDER BY seq",
            goal.id,
        )
        fences = [fence for fence, _ in intervals]
        assert fences == sorted(set(fences))
        assert sum(is_open for _, is_open in intervals[:-1]) == 0
        spent = rows(
            self.store,
            "SELECT coalesce(sum(input - cached + output), 0) FROM turns JOIN wakeups ON wakeups.id = turns.wakeup"
            " WHERE wakeups.goal = ?",
            goal.id,
        )[0]
        assert spent == goal.spent.tokens
        assert goal.limits.tokens is not None
        assert goal.spent.tokens <= goal.limits.tokens + PROFILE.max_output, (
            "more than one declared call too many"
        )
        assert goal.revision == 1 + self.edits
        assert [r.file for r in goal.requirements] == [FileCheck(FileTest.CONTAINS, PRODUCT, "good")]
        assert goal.objective == (f"Objective {self.edits - 1}." if self.edits else "Write it.")
        with self.other.reading() as connection:
            kept = {note.text for note in notes.of_goal(connection, goal.id)}
            asked = questions.of_goal(connection, goal)
        assert kept == set(self.said)
        assert len(asked) == self.asked
        assert all(q.answer for q in asked if q.status is QuestionStatus.ANSWERED)
        if goal.status is GoalStatus.WAITING_USER:
            assert any(q.status is QuestionStatus.OPEN for q in asked)


def _of(reply: Reply, number: int, usage: Usage) -> Reply:
    named = tuple(replace(c, id=f"call_{number}_{n}") for n, c in enumerate(reply.calls))
    return replace(reply, calls=named, usage=usage)


def _crashed(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return any(map(_crashed, error.exceptions))
    return isinstance(error, Crash)


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Story]]:
    """Goals in one store, which is opened twice: by whoever runs them, and by whoever interferes."""
    root = tmp_path_factory.mktemp("stories")
    clock = ManualClock(datetime(2030, 1, 1, tzinfo=UTC))
    path = str(root / "store" / "goals.sqlite")
    made = 0
    with Store(path, clock=clock) as store, Store(path, clock=clock) as other:

        def place() -> Story:
            nonlocal made
            made += 1
            workspace = root / f"workspace-{made}"
            workspace.mkdir()
            holds = Requirement("", "it is good", file=FileCheck(FileTest.CONTAINS, PRODUCT, "good"))
            spec = GoalSpec(
                "Write it.",
                str(workspace),
                (holds,),
                (PRODUCT,),
                limits=Limits(tokens=TOKENS),
                settings=GoalSettings(max_turns=6),
            )
            return Story(store, other, clock, create_goal(store, spec), [])

        yield place


def _tell(story: Story, events: list[tuple[str, str]]) -> None:
    """Wake, let happen what happens, look; until all of it has happened."""
    story.events = list(events)
    for _ in range(12):
        story.wake()
        story.check()
        while story.events and story.events[0][0] == "user":
            story.act(story.events.pop(0)[1])
            story.check()
        if not story.events:
            break
    story.hears_every_note()


_ALL = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}


@pytest.mark.long
@settings(max_examples=20, **_ALL)
@given(events=EVENTS)
def test_no_sequence_of_events_breaks_a_promise(places: Callable[[], Story], events: list[Any]) -> None:
    """In short."""
    _tell(places(), events)


@pytest.mark.slow
@settings(max_examples=500, **_ALL)
@given(events=EVENTS)
def test_no_sequence_of_many_events_breaks_a_promise(places: Callable[[], Story], events: list[Any]) -> None:
    """At length."""
    _tell(places(), events)
