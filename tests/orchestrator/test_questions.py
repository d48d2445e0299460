"""Answering: what counts as an answer, what a default does by itself, and what a running wakeup hears."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from goalmode.domain.exits import Exit, ExitReason, GoalStatus, SkipReason
from goalmode.domain.goal import Control, Goal
from goalmode.domain.notes import MAX_NOTE
from goalmode.domain.questions import MAX_ANSWER, Asking, QuestionKind, QuestionStatus
from goalmode.errors import BadInput, NotAllowed
from goalmode.inspection.questions import of_goal
from goalmode.inspection.why import why
from goalmode.loop.ports import Event
from goalmode.orchestrator.goals import edit_goal, resume_goal, stop_goal
from goalmode.orchestrator.notes import add_note, withdraw_note
from goalmode.orchestrator.questions import answer_question
from goalmode.orchestrator.run import run_goal
from goalmode.orchestrator.skip import Skip
from goalmode.orchestrator.wake import Wake
from goalmode.state.store import Store
from goalmode.testing import ManualClock
from tests.orchestrator.builders import (
    DONE,
    GO_ON,
    FakeRenderer,
    abandon,
    attempt,
    begin,
    finish,
    intend,
    new_goal,
    now,
    skipped,
    turn,
)
from tests.state.builders import dump, rows

OPTIONS = ("Cuxhaven", "Husum")


def ask(
    store: Store, goal: Goal, text: str = "Which station?", *, after_seconds: int | None = None, **more: Any
) -> None:
    """A wakeup that ends with a question."""
    at = None if after_seconds is None else store.clock.now() + timedelta(seconds=after_seconds)
    asking = Asking(QuestionKind.INPUT, text, default_at=at, **more)
    ending = Exit(ExitReason.NEEDS_USER_INPUT, text, question=asking)
    begin(store, goal, only_if_due=False).close(ending)


def statuses(store: Store, goal: Goal) -> list[str]:
    return [question["status"] for question in of_goal(store, now(store, goal))]


@pytest.mark.parametrize(
    "given",
    [
        {"text": None},
        {"text": ""},
        {"text": " \n\t "},
        {"text": "\u200b"},
        {"text": 7},
        {"text": ["Husum"]},
        {"text": "x" * 1_000_000},
        {"text": "x" * (MAX_ANSWER + 1)},
        {"option": 0},
        {"option": 3},
        {"option": -1},
        {"option": "1"},
        {"option": True},
        {"text": "Husum", "option": 2},
        {"text": "Husum", "question": "Q2"},
        {"text": "Husum", "question": "1"},
        {"text": "Husum", "question": ""},
        {"text": "Husum", "question": "Q99999999999999999999"},
    ],
    ids=lambda given: str(given)[:40],
)
def test_what_is_no_answer_is_refused(store: Store, workspace: Path, given: dict[str, Any]) -> None:
    """B124: the valid form is named in one line, the question stays open, nothing is written, and no wakeup starts."""
    goal = new_goal(store, workspace)
    ask(store, goal, options=OPTIONS)
    before = dump(store)

    with pytest.raises(BadInput) as refused:
        answer_question(store, now(store, goal), **given)

    assert "\n" not in str(refused.value)
    assert any(
        form in str(refused.value) for form in ("not blank", "at most", "1) Cuxhaven", "not both", "Q1")
    )
    assert dump(store) == before
    assert skipped(attempt(store, goal)) is SkipReason.WAITING


def test_a_question_of_another_goal_is_none_of_this_one(store: Store, workspace: Path) -> None:
    """B124: its id is refused like any other that the goal does not have."""
    goal, other = new_goal(store, workspace), new_goal(store, workspace)
    ask(store, goal)
    ask(store, other)
    resume_goal(store, now(store, other), answer="Cuxhaven")
    ask(store, other, "Which year?")

    with pytest.raises(BadInput, match=r"question: 'Q2' is not valid: .* Q1"):
        answer_question(store, now(store, goal), "2029", question="Q2")

    assert statuses(store, other) == ["answered", "open"]


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({"text": "x" * MAX_ANSWER}, "x" * MAX_ANSWER),
        ({"text": "neither: List\non Sylt"}, "neither: List\non Sylt"),
        ({"option": 1}, "Cuxhaven"),
        ({"option": 2, "question": "q1"}, "Husum"),
        ({"text": "青色", "question": " Q1 "}, "青色"),
    ],
    ids=["longest", "another text", "first option", "last option by id", "Chinese"],
)
def test_an_answer_is_stored_as_it_is_given(
    store: Store, workspace: Path, given: dict[str, Any], stored: str
) -> None:
    """A text of any kind, or an option by its number; the goal is due and says what it was told."""
    goal = new_goal(store, workspace)
    ask(store, goal, options=OPTIONS)

    done = answer_question(store, now(store, goal), **given)

    assert (done.question.answer, done.question.status) == (stored, QuestionStatus.ANSWERED)
    assert (done.goal.status, done.goal.next_wakeup_at) == (GoalStatus.ACTIVE, store.clock.now())
    assert isinstance(attempt(store, goal), Wake)


def test_an_option_of_a_question_without_options(store: Store, workspace: Path) -> None:
    """There is nothing to choose from, so a text is wanted."""
    goal = new_goal(store, workspace)
    ask(store, goal)

    with pytest.raises(BadInput, match="a text: Q1 has no options"):
        answer_question(store, now(store, goal), option=1)


def test_with_several_open_questions_the_answer_names_one(store: Store, workspace: Path) -> None:
    """The line that refuses it shows how; `resume --answer` means the newest."""
    goal = new_goal(store, workspace)
    ask(store, goal)
    wake = begin(store, resume_paused(store, goal))
    wake.close(Exit(ExitReason.NEEDS_USER_INPUT, "Which year?"))
    waiting = now(store, goal)

    with pytest.raises(NotAllowed, match=rf"\(Q1, Q2\); say which one: goalmode answer {goal.uid} Q2 TEXT"):
        answer_question(store, waiting, "2029")
    assert why(store, goal.id)["remedy"] == f"goalmode answer {goal.uid} Q2 TEXT"
    resume_goal(store, waiting, answer="2029")

    assert statuses(store, goal) == ["open", "answered"]
    assert answer_question(store, now(store, goal), "Cuxhaven").question.number == 1


def resume_paused(store: Store, goal: Goal) -> Goal:
    """The user pauses a goal that waits, and resumes it without an answer."""
    stop_goal(store, now(store, goal), Control.PAUSE)
    return resume_goal(store, now(store, goal))


def test_a_goal_that_asks_nothing_wants_no_answer(store: Store, workspace: Path) -> None:
    """It is said what would reach it."""
    goal = new_goal(store, workspace)

    with pytest.raises(
        NotAllowed, match=f"waits for no answer, it is ACTIVE; `goalmode note {goal.uid} TEXT`"
    ):
        answer_question(store, goal, "Cuxhaven")


@pytest.mark.parametrize("over", ["done", "aborted"])
def test_a_goal_that_is_over_takes_no_answer(store: Store, workspace: Path, over: str) -> None:
    """B124: success and abort withdraw the question; the line says what would be possible."""
    goal = new_goal(store, workspace)
    ask(store, goal)
    if over == "done":
        begin(store, resume_paused(store, goal)).close(DONE)
    else:
        stop_goal(store, now(store, goal), Control.ABORT)
    before = dump(store)

    hint = "`goalmode edit" if over == "done" else "can only be read"
    for question in (None, "Q1"):
        with pytest.raises(NotAllowed, match=hint):
            answer_question(store, now(store, goal), "Cuxhaven", question=question)
    with pytest.raises(NotAllowed, match=hint):
        resume_goal(store, now(store, goal), answer="Cuxhaven")
    assert dump(store) == before


def test_limits_and_answer_are_one_command(store: Store, workspace: Path) -> None:
    """`resume --answer … --turn-budget …` does both, or neither where somebody else was faster."""
    goal = new_goal(store, workspace)
    ask(store, goal)
    stale = now(store, goal)
    answer_question(store, stale, "Cuxhaven")
    ask(store, goal, "Which year?")
    before = dump(store)

    limits = stale.limits.__class__(turns=9)
    with pytest.raises(BadInput):
        resume_goal(store, now(store, goal), limits=limits, answer=" ")
    assert dump(store) == before
    found = resume_goal(store, now(store, goal), limits=limits, answer="2029")

    assert (found.limits, found.limits_revision, found.status) == (limits, 2, GoalStatus.ACTIVE)


class TestDefaults:
    def test_a_goal_goes_on_by_its_default(self, store: Store, workspace: Path, clock: ManualClock) -> None:
        """Until then it is skipped, with the time at which it goes on; then it is woken without anybody's help."""
        goal = new_goal(store, workspace)
        ask(store, goal, default="Husum", after_seconds=60)
        at = clock.now() + timedelta(seconds=60)

        clock.advance(59)
        found = attempt(store, goal)
        assert isinstance(found, Skip)
        assert (found.reason, found.due_at) == (SkipReason.WAITING, at)
        assert statuses(store, goal) == ["open"]
        clock.advance(1)
        assert why(store, goal.id)["skip"] is None
        assert statuses(store, goal) == ["open"], "reading answers nothing"
        renderer = FakeRenderer()
        begin(store, goal, renderer)

        [seen] = renderer.seen[-1].questions
        assert (seen.answer, seen.answered_by) == ("Husum", "default")

    def test_a_question_without_a_default_waits_for_ever(
        self, store: Store, workspace: Path, clock: ManualClock
    ) -> None:
        """B122: however often it is looked at, it is skipped, and nothing is written."""
        goal = new_goal(store, workspace)
        ask(store, goal)
        before = dump(store)

        for _ in range(5):
            clock.advance(7 * 24 * 3600)
            found = attempt(store, goal)
            assert isinstance(found, Skip)
            assert (found.reason, found.due_at) == (SkipReason.WAITING, None)

        assert dump(store) == before

    def test_the_earliest_of_several_defaults_counts(
        self, store: Store, workspace: Path, clock: ManualClock
    ) -> None:
        """What is not due yet stays open beside it."""
        goal = new_goal(store, workspace)
        ask(store, goal, default="Husum", after_seconds=600)
        resume_paused(store, goal)
        ask(store, goal, "Which year?", default="2029", after_seconds=60)
        clock.advance(60)

        assert isinstance(attempt(store, goal), Wake)
        assert statuses(store, goal) == ["open", "answered"]

    def test_a_paused_goal_does_not_go_on_by_a_default(
        self, store: Store, workspace: Path, clock: ManualClock
    ) -> None:
        """What a user stopped stays stopped; resumed, it goes on with the default."""
        goal = new_goal(store, workspace)
        ask(store, goal, default="Husum", after_seconds=60)
        stop_goal(store, now(store, goal), Control.PAUSE)
        clock.advance(3600)

        assert skipped(attempt(store, goal)) is SkipReason.PAUSED
        assert statuses(store, goal) == ["open"]
        resume_goal(store, now(store, goal))
        begin(store, goal)
        assert statuses(store, goal) == ["answered"]

    def test_the_default_of_a_workspace_elsewhere_is_left_to_its_host(
        self, store: Store, workspace: Path, clock: ManualClock
    ) -> None:
        """A worker that could not run the goal answers nothing for it."""
        goal = new_goal(store, workspace)
        ask(store, goal, default="Husum", after_seconds=60)
        rows(store, "UPDATE goals SET host_label = 'elsewhere'")
        clock.advance(60)

        assert skipped(attempt(store, goal)) is SkipReason.OTHER_HOST
        assert statuses(store, goal) == ["open"]

    def run(self, store: Store, goal: Goal, *, max_wait_seconds: float) -> tuple[Any, list[Event]]:
        """`run_goal` with wakeups that ask at first and then are done."""
        events: list[Event] = []

        async def wake_once() -> Exit | Skip:
            found = attempt(store, goal)
            if isinstance(found, Skip):
                return found
            if found.seq == 1:
                at = store.clock.now() + timedelta(seconds=300)
                asking = Asking(QuestionKind.INPUT, "Which station?", default="Husum", default_at=at)
                return found.close(Exit(ExitReason.NEEDS_USER_INPUT, "Which station?", question=asking))
            return found.close(DONE)

        async def body() -> Exit | Skip:
            return await run_goal(
                store,
                goal.id,
                wake_once,
                max_wait_seconds=max_wait_seconds,
                sink=events.append,
                stop=lambda: None,
            )

        return anyio.run(body), events

    def test_a_run_waits_for_a_default(self, store: Store, workspace: Path, clock: ManualClock) -> None:
        """Like for a back-off: it says so once, and goes on to the end."""
        goal = new_goal(store, workspace)
        start = clock.now()

        ending, events = self.run(store, goal, max_wait_seconds=300)

        assert ending.reason is ExitReason.CURRENT_TASK_DONE
        assert clock.now() == start + timedelta(seconds=300)
        assert [e.kind for e in events] == ["waiting"]
        assert events[0].data["why"] == "Which station?"

    def test_a_run_does_not_wait_longer_than_it_may(
        self, store: Store, workspace: Path, clock: ManualClock
    ) -> None:
        """It ends with the question."""
        goal = new_goal(store, workspace)

        ending, events = self.run(store, goal, max_wait_seconds=299)

        assert (ending.reason, events) == (ExitReason.NEEDS_USER_INPUT, [])
        assert statuses(store, goal) == ["open"]

    def test_an_answer_ends_the_wait(self, store: Store, workspace: Path, clock: ManualClock) -> None:
        """A user who answers while a run waits for the default is heard at once."""
        goal = new_goal(store, workspace)
        ask(store, goal, default="Husum", after_seconds=300)
        start, slept = clock.now(), clock.sleep

        async def sleep(seconds: float) -> None:
            await slept(seconds)
            if clock.now() - start == timedelta(seconds=3):
                answer_question(store, now(store, goal), "Cuxhaven")

        clock.sleep = sleep  # type: ignore[method-assign]
        ending, _ = self.run(store, goal, max_wait_seconds=300)

        assert ending.reason is ExitReason.CURRENT_TASK_DONE
        assert clock.now() - start < timedelta(seconds=10)
        assert of_goal(store, now(store, goal))[0]["answer"] == "Cuxhaven"


class TestHearing:
    """What is said to a running wakeup is heard with the reply whose request held it."""

    def seen(self, store: Store) -> int:
        [seen] = rows(store, "SELECT inbox_seen FROM wakeups WHERE exit_reason IS NULL")
        return int(seen)

    def test_news_is_heard_with_the_reply_that_follows_it(self, store: Store, workspace: Path) -> None:
        """Until that reply is stored a crash would have it told again; afterwards it is told no more."""
        goal = new_goal(store, workspace)
        wake = begin(store, goal)
        wake.boundary()
        assert wake.news == ()
        add_note(store, goal, "use metres")

        wake.boundary()
        assert [n.text for n in wake.news] == ["use metres"]
        wake.hear()
        assert self.seen(store) == 0
        intend(wake, "shell")
        assert self.seen(store) == now(store, goal).inbox_head
        finish(wake)
        wake.boundary()
        assert wake.news == ()

    def test_what_was_not_heard_makes_the_goal_due(self, store: Store, workspace: Path) -> None:
        """A note that came behind the last boundary: the next wakeup is now. One that was heard: as the ending says."""
        for heard in (True, False):
            goal = new_goal(store, workspace)
            wake = begin(store, goal)
            add_note(store, goal, "use metres")
            wake.boundary()
            if heard:
                wake.hear()
            turn(wake)
            wake.close(Exit(ExitReason.EARLY_NO_TOOL, "it stopped early"))

            due = now(store, goal).next_wakeup_at
            assert due is not None
            assert (due > store.clock.now()) is heard

    def test_a_driver_that_does_not_listen_loses_nothing(self, store: Store, workspace: Path) -> None:
        """News that it leaves where it is stays news."""
        goal = new_goal(store, workspace)
        wake = begin(store, goal)
        add_note(store, goal, "use metres")
        for number in range(3):
            wake.boundary()
            assert [n.text for n in wake.news] == ["use metres"]
            turn(wake, prefix=f"t{number}-")
        wake.close(Exit(ExitReason.EARLY_NO_TOOL, "it stopped early"))

        assert now(store, goal).next_wakeup_at == store.clock.now()

    def test_a_crash_before_the_reply_has_it_told_again(self, store: Store, workspace: Path) -> None:
        """The next wakeup's context holds what the dead one's request held."""
        goal = new_goal(store, workspace)
        wake = begin(store, goal)
        add_note(store, goal, "use metres")
        wake.boundary()
        wake.hear()
        abandon(store)
        renderer = FakeRenderer()

        begin(store, goal, renderer)

        assert [entry.text for entry in renderer.seen[-1].inbox] == ["use metres"]

    def test_a_context_rendered_anew_holds_the_news(self, store: Store, workspace: Path) -> None:
        """So it is not told a second time."""
        goal = new_goal(store, workspace)
        renderer = FakeRenderer()
        wake = begin(store, goal, renderer)
        add_note(store, goal, "use metres")
        wake.boundary()

        wake.rerender([], limit=500, turns_left=3, reserve_output=10)

        assert [entry.text for entry in renderer.seen[-1].inbox] == ["use metres"]
        assert wake.news == ()
        wake.boundary()
        assert wake.news == ()
        assert self.seen(store) == now(store, goal).inbox_head

    def test_an_edit_during_the_run_is_not_undone_by_its_closing(self, store: Store, workspace: Path) -> None:
        """B140: what the run writes last are its own columns."""
        goal = new_goal(store, workspace)
        wake = begin(store, goal)
        turn(wake)
        edit_goal(store, now(store, goal), objective="Write two reports.")
        wake.close(GO_ON)

        assert (now(store, goal).objective, now(store, goal).revision) == ("Write two reports.", 2)


@pytest.mark.parametrize(
    "text", ["", "  \n", "\u200b", 7, None, "x" * (MAX_NOTE + 1)], ids=lambda t: repr(t)[:9]
)
def test_what_is_no_note_is_refused(store: Store, workspace: Path, text: Any) -> None:
    """With the valid form in one line; nothing is stored."""
    goal = new_goal(store, workspace)

    with pytest.raises(BadInput, match="note"):
        add_note(store, goal, text)

    assert rows(store, "SELECT text FROM inbox") == []


def test_notes_of_goals_that_are_over(store: Store, workspace: Path) -> None:
    """They are refused with what to do."""
    done, aborted = new_goal(store, workspace), new_goal(store, workspace)
    add_note(store, done, "use metres")
    add_note(store, aborted, "use metres")
    begin(store, done).close(DONE)
    stop_goal(store, aborted, Control.ABORT)

    for refused in (lambda g: add_note(store, g, "x"), lambda g: withdraw_note(store, g, 1)):
        with pytest.raises(NotAllowed, match="`goalmode edit"):
            refused(done)
        with pytest.raises(NotAllowed, match="can only be read"):
            refused(aborted)
