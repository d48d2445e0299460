"""Questions: stored with the ending that asks, answered once, withdrawn with the goal, never taken for one another."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from alembic import command

from goalmode.domain.exits import Exit, ExitReason, GoalStatus
from goalmode.domain.goal import Control, Goal
from goalmode.domain.questions import AnsweredBy, Asking, Question, QuestionKind, QuestionStatus
from goalmode.errors import NotAllowed, StoreError, StoreUnreadable
from goalmode.orchestrator.recover import recover
from goalmode.state import answers, goals, migrate, notes, questions, snapshot, wakeups
from goalmode.state.closing import Aftermath
from goalmode.state.store import Store
from goalmode.testing import ManualClock
from tests.state.builders import DONE, claim, close, dump, finished, new_goal, rows

WAITING = Aftermath(GoalStatus.WAITING_USER, "", None, "", 0, 0)
OPEN, ANSWERED, WITHDRAWN = QuestionStatus.OPEN, QuestionStatus.ANSWERED, QuestionStatus.WITHDRAWN


def ask(store: Store, goal: Goal, text: str = "Which station?", **more: object) -> None:
    """A wakeup that ends with a question."""
    asking = Asking(QuestionKind.INPUT, text, "only you know", **more)  # type: ignore[arg-type]
    close(store, claim(store, goal), Exit(ExitReason.NEEDS_USER_INPUT, text, question=asking), WAITING)


def go_on(store: Store, goal: Goal) -> None:
    """Whatever it waits for: as after a note that came while it asked."""
    goals.make_due(store, goal, now=store.clock.now(), reason="resumed")


def of(store: Store, goal: Goal) -> list[Question]:
    with store.reading() as connection:
        return questions.of_goal(connection, goal)


def now(store: Store, goal: Goal) -> Goal:
    return goals.get(store, goal.id)


def answer(store: Store, goal: Goal, number: int, text: str = "Cuxhaven") -> None:
    answers.answer(store, goal, number, text, now=store.clock.now())


def test_an_ending_that_asks_leaves_its_question(store: Store, clock: ManualClock) -> None:
    """Everything that was asked is stored with the ending: why, options, default and its time."""
    goal = new_goal(store)
    at = clock.now() + timedelta(minutes=5)
    close(store, claim(store, goal))

    ask(store, goal, options=("Cuxhaven", "Husum"), default="Husum", default_at=at)

    asking = Asking(QuestionKind.INPUT, "Which station?", "only you know", ("Cuxhaven", "Husum"), "Husum", at)
    assert of(store, goal) == [Question(1, asking, OPEN, 2, clock.now())]
    assert now(store, goal).status is GoalStatus.WAITING_USER


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        (ExitReason.NEEDS_USER_INPUT, QuestionKind.INPUT),
        (ExitReason.WAITING_HUMAN, QuestionKind.HUMAN),
    ],
)
def test_an_ending_that_waits_always_leaves_a_question(
    store: Store, reason: ExitReason, kind: QuestionKind
) -> None:
    """A driver of its own that says only that it waits asks in the words of its detail."""
    goal = new_goal(store)

    close(store, claim(store, goal), Exit(reason, "which port?"), WAITING)

    [asked] = of(store, goal)
    assert asked.asking == Asking(kind, "which port?")


@pytest.mark.parametrize("control", [Control.PAUSE, Control.ABORT])
def test_a_stop_that_beats_an_ending_leaves_no_question(store: Store, control: Control) -> None:
    """The ending that is stored is the user's, so nothing is asked."""
    goal = new_goal(store)
    claimed = claim(store, goal)
    goals.stop(store, goal, control, now=store.clock.now())
    asking = Asking(QuestionKind.INPUT, "Which station?")

    close(store, claimed, Exit(ExitReason.NEEDS_USER_INPUT, "x", question=asking), WAITING)

    assert of(store, goal) == []


def test_a_question_and_its_ending_are_one_commit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash behind the question undoes both: the goal does not wait for what nobody can see."""
    goal = new_goal(store)
    claimed = claim(store, goal)

    def crash(*_: object, **__: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr("goalmode.state.closing.settle_goal", crash)
    with pytest.raises(StoreError):
        close(store, claimed, Exit(ExitReason.NEEDS_USER_INPUT, "Which station?"), WAITING)

    assert of(store, goal) == []
    assert rows(store, "SELECT exit_reason FROM wakeups") == [None]


def test_an_answer_makes_the_waiting_goal_due(store: Store, clock: ManualClock) -> None:
    """Once; with a clean streak, since somebody has looked at it; and the model will hear it."""
    goal = new_goal(store)
    ask(store, goal)
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE goals SET streak = 2, failures = 3")
    clock.advance(60)

    answer(store, goal, 1)

    found = now(store, goal)
    assert (found.status, found.next_wakeup_at, found.wake_reason) == (
        GoalStatus.ACTIVE,
        clock.now(),
        "answered",
    )
    assert (found.streak, found.failures, found.status_detail) == (0, 0, "")
    [asked] = of(store, goal)
    assert (asked.status, asked.answer, asked.answered_by, asked.answered_at) == (
        ANSWERED,
        "Cuxhaven",
        AnsweredBy.USER,
        clock.now(),
    )
    assert rows(store, "SELECT kind, text, question FROM inbox") == [("answer", "Cuxhaven", 1)]


def test_the_second_of_two_answers_is_told(store: Store, clock: ManualClock) -> None:
    """It changes nothing, also not when the goal is due again."""
    goal = new_goal(store)
    ask(store, goal)
    answer(store, goal, 1)
    before = dump(store)
    clock.advance(60)

    with pytest.raises(NotAllowed, match="Q1 was answered already, by the user: 'Cuxhaven'"):
        answer(store, goal, 1, "Husum")
    with pytest.raises(NotAllowed, match="has no question Q2"):
        answer(store, goal, 2, "Husum")

    assert dump(store) == before


def test_of_answers_at_once_exactly_one_stands(store: Store, clock: ManualClock) -> None:
    """Eight at the same moment, each with a store of its own: one is taken, seven are told."""
    goal = new_goal(store)
    ask(store, goal)
    taken, refused = [], []
    start = threading.Barrier(8)

    def try_it(text: str) -> None:
        with Store(store.url, clock=clock) as own:
            start.wait()
            try:
                answers.answer(own, goal, 1, text, now=clock.now())
                taken.append(text)
            except NotAllowed:
                refused.append(text)

    threads = [threading.Thread(target=try_it, args=(str(n),)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (len(taken), len(refused)) == (1, 7)
    assert [q.answer for q in of(store, goal)] == taken
    assert rows(store, "SELECT text FROM inbox") == taken


def test_an_answer_while_a_wakeup_runs_is_not_lost(store: Store, clock: ManualClock) -> None:
    """B14: the running wakeup has not heard it, so its ending makes the goal due at once, whatever it waits for."""
    goal = new_goal(store)
    ask(store, goal)
    go_on(store, goal)
    claimed = claim(store, goal)

    answer(store, goal, 1)
    assert now(store, goal).status is GoalStatus.ACTIVE
    clock.advance(5)
    close(store, claimed, Exit(ExitReason.NEEDS_USER_INPUT, "and which year?"), WAITING)

    found = now(store, goal)
    assert (found.status, found.next_wakeup_at) == (GoalStatus.ACTIVE, clock.now())
    assert [q.status for q in of(store, goal)] == [ANSWERED, OPEN]


def test_an_answer_does_not_resume_a_goal_that_a_user_paused(store: Store) -> None:
    """It is kept for when the goal is resumed."""
    goal = new_goal(store)
    ask(store, goal)
    goals.stop(store, goal, Control.PAUSE, now=store.clock.now())

    answer(store, goal, 1)

    assert now(store, goal).status is GoalStatus.PAUSED
    assert of(store, goal)[0].status is ANSWERED


def test_one_answer_of_several_makes_the_goal_due(store: Store) -> None:
    """What else is open stays open."""
    goal = new_goal(store)
    ask(store, goal)
    go_on(store, goal)
    ask(store, goal, "Which year?")

    answer(store, goal, 1)

    assert now(store, goal).status is GoalStatus.ACTIVE
    assert [q.status for q in of(store, goal)] == [ANSWERED, OPEN]


def test_the_same_text_asked_again_is_another_question(store: Store) -> None:
    """B127: it has its own number and waits for its own answer."""
    goal = new_goal(store)
    ask(store, goal)
    answer(store, goal, 1)

    ask(store, goal)

    assert [(q.label, q.status, q.answer) for q in of(store, goal)] == [
        ("Q1", ANSWERED, "Cuxhaven"),
        ("Q2", OPEN, ""),
    ]
    assert now(store, goal).status is GoalStatus.WAITING_USER


def test_questions_of_goals_are_told_apart(store: Store) -> None:
    """Each goal counts from 1; an answer reaches its own goal only."""
    one, two = new_goal(store), new_goal(store)
    ask(store, one)
    ask(store, two)

    answer(store, two, 1)

    assert [q.status for q in (*of(store, one), *of(store, two))] == [OPEN, ANSWERED]
    with store.reading() as connection:
        assert [(uid, q.label) for uid, q in questions.every_open(connection)] == [(one.uid, "Q1")]


def _done(store: Store, goal: Goal) -> None:
    go_on(store, goal)
    close(store, claim(store, goal), DONE, finished(store))


def _aborted(store: Store, goal: Goal) -> None:
    goals.stop(store, goal, Control.ABORT, now=store.clock.now())


def _aborted_while_running(store: Store, goal: Goal) -> None:
    go_on(store, goal)
    claimed = claim(store, goal)
    goals.stop(store, goal, Control.ABORT, now=store.clock.now())
    assert of(store, goal)[0].status is OPEN
    close(store, claimed)


def _aborted_and_dead(store: Store, goal: Goal) -> None:
    go_on(store, goal)
    claim(store, goal)
    goals.stop(store, goal, Control.ABORT, now=store.clock.now())
    rows(store, "UPDATE wakeups SET pid_start = 'long ago' WHERE exit_reason IS NULL")
    with store.reading() as connection:
        dead = wakeups.open_wakeup(connection, goal.id)
    assert dead is not None
    assert recover(store, now(store, goal), dead, turns=0, jitter=0.0)


@pytest.mark.parametrize("end", [_done, _aborted, _aborted_while_running, _aborted_and_dead])
def test_a_goal_that_is_over_asks_nothing(store: Store, end: Callable[[Store, Goal], None]) -> None:
    """Success and abort withdraw what is open, and an answer that comes later is refused."""
    goal = new_goal(store)
    ask(store, goal)

    end(store, goal)

    assert [q.status for q in of(store, goal)] == [WITHDRAWN]
    with pytest.raises(NotAllowed, match="Q1 was withdrawn"):
        answer(store, goal, 1)


def test_deleting_a_goal_deletes_its_questions(store: Store) -> None:
    """And no other goal's."""
    goal, other = new_goal(store), new_goal(store)
    ask(store, goal)
    ask(store, other)

    goals.delete(store, goal)

    assert rows(store, "SELECT goal FROM questions") == [other.id]


def test_a_default_stands_when_its_time_comes(store: Store, clock: ManualClock) -> None:
    """Not a second before; the goal is due, and its streak goes on, since nobody has looked."""
    goal = new_goal(store)
    at = clock.now() + timedelta(seconds=60)
    ask(store, goal, default="Husum", default_at=at)
    with store.writing() as connection:
        connection.exec_driver_sql("UPDATE goals SET streak = 2")

    clock.advance(59)
    assert answers.answer_by_default(store, goal, now=clock.now()) == []
    clock.advance(1)
    assert answers.answer_by_default(store, goal, now=clock.now()) == [1]
    assert answers.answer_by_default(store, goal, now=clock.now()) == []

    [asked] = of(store, goal)
    assert (asked.answer, asked.answered_by) == ("Husum", AnsweredBy.DEFAULT)
    found = now(store, goal)
    assert (found.status, found.next_wakeup_at, found.streak) == (GoalStatus.ACTIVE, clock.now(), 2)
    assert rows(store, "SELECT kind, text, question FROM inbox") == [("answer", "Husum", 1)]


def test_a_default_never_beats_an_answer(store: Store, clock: ManualClock) -> None:
    """Whoever comes first has answered, also behind the default's time; the other changes nothing."""
    goal = new_goal(store)
    ask(store, goal, default="Husum", default_at=clock.now() + timedelta(seconds=60))
    clock.advance(90)

    answer(store, goal, 1)

    assert answers.answer_by_default(store, goal, now=clock.now()) == []
    assert of(store, goal)[0].answer == "Cuxhaven"


def test_a_default_stands_once_however_many_look(store: Store, clock: ManualClock) -> None:
    """Two processes at the deadline: one entry in the inbox."""
    goal = new_goal(store)
    ask(store, goal, default="Husum", default_at=clock.now())
    start, found = threading.Barrier(4), []

    def look() -> None:
        with Store(store.url, clock=clock) as own:
            start.wait()
            found.extend(answers.answer_by_default(own, goal, now=clock.now()))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert found == [1]
    assert rows(store, "SELECT text FROM inbox") == ["Husum"]


def test_an_answer_is_one_commit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash in the middle leaves the question open and the goal waiting."""
    goal = new_goal(store)
    ask(store, goal)
    before = dump(store)

    def crash(*_: object, **__: object) -> None:
        raise StoreError("the disk is full")

    monkeypatch.setattr("goalmode.state.goals.go_on", crash)
    with pytest.raises(StoreError):
        answer(store, goal, 1)

    assert dump(store) == before


def test_a_snapshot_has_what_is_open_and_what_was_answered_of_late(store: Store) -> None:
    """However many there are: an old one that is open is not crowded out; what was withdrawn is left out."""
    goal = new_goal(store)
    ask(store, goal, "the first")
    for number in range(2, questions.MAX_SHOWN + 3):
        go_on(store, goal)
        ask(store, goal, f"number {number}")
        answer(store, goal, number)

    seen = snapshot.snapshot(store, goal.id, now=store.clock.now())

    assert len(seen.questions) == questions.MAX_SHOWN
    assert [q.number for q in seen.questions] == [1, *range(4, questions.MAX_SHOWN + 3)]
    assert [entry.text for entry in seen.inbox] == []
    _aborted(store, goal)
    assert 1 not in [q.number for q in snapshot.snapshot(store, goal.id, now=store.clock.now()).questions]


@pytest.mark.sqlite
@pytest.mark.parametrize("column", ["kind", "status", "answered_by"])
def test_a_word_that_is_not_known_is_refused_by_name(store: Store, column: str) -> None:
    """A newer goalmode's question is not guessed at."""
    goal = new_goal(store)
    ask(store, goal)
    with store.writing() as connection:
        connection.exec_driver_sql("PRAGMA ignore_check_constraints=ON")
        connection.exec_driver_sql(f"UPDATE questions SET {column} = 'oracle'")

    with pytest.raises(StoreUnreadable, match=f"question.{column} is 'oracle'"):
        of(store, goal)


@pytest.mark.sqlite
def test_goals_of_an_older_store_that_wait_get_their_question(store: Store, tmp_path: Path) -> None:
    """In schema 0001 only the ending said what was asked: after the upgrade it can be answered like any other."""
    waits, other = new_goal(store), new_goal(store)
    close(store, claim(store, other))
    close(store, claim(store, waits), Exit(ExitReason.WAITING_HUMAN, "sign the contract"), WAITING)
    config = migrate._config()
    config.attributes["engine"] = store.database.writing(durable=True, busy_seconds=5)
    command.downgrade(config, "0001")
    config.attributes["engine"].dispose()
    store.close()

    with Store(store.url, clock=store.clock) as upgraded:
        [asked] = of(upgraded, waits)
        assert of(upgraded, other) == []
        assert (asked.number, asked.asking, asked.status, asked.wakeup) == (
            1,
            Asking(QuestionKind.HUMAN, "sign the contract"),
            OPEN,
            1,
        )
        answer(upgraded, waits, 1)
        assert now(upgraded, waits).status is GoalStatus.ACTIVE


class TestNotes:
    def test_notes_are_numbered_within_their_goal(self, store: Store) -> None:
        """Whatever else is in the inbox, and whichever goal's."""
        goal, other = new_goal(store), new_goal(store)
        notes.add(store, other, "elsewhere", now=store.clock.now())
        first = notes.add(store, goal, "use metres", now=store.clock.now())
        with store.writing() as connection:
            notes.post(store, connection, goal.id, "stop", "pause", store.clock.now())
        second = notes.add(store, goal, "use 2029", now=store.clock.now())

        assert (first.number, second.number) == (1, 2)
        with store.reading() as connection:
            assert notes.of_goal(connection, goal.id) == [first, second]

    def test_a_note_takes_the_place_of_another(self, store: Store) -> None:
        """The old one is still listed, but stands in no context."""
        goal = new_goal(store)
        notes.add(store, goal, "use metres", now=store.clock.now())
        notes.add(store, goal, "use feet", replaces=1, now=store.clock.now())

        with store.reading() as connection:
            listed = notes.of_goal(connection, goal.id)
        assert [(n.number, n.replaced_by, n.stands) for n in listed] == [(1, 2, False), (2, None, True)]
        seen = snapshot.snapshot(store, goal.id, now=store.clock.now())
        assert [entry.text for entry in seen.inbox] == ["use feet"]

    def test_a_note_is_taken_back(self, store: Store) -> None:
        """It stays in the list under its number, and later notes get later numbers."""
        goal = new_goal(store)
        notes.add(store, goal, "use metres", now=store.clock.now())

        taken = notes.withdraw(store, goal, 1, now=store.clock.now())
        later = notes.add(store, goal, "use feet", now=store.clock.now())

        assert (taken.number, taken.withdrawn, taken.stands) == (1, True, False)
        assert later.number == 2
        seen = snapshot.snapshot(store, goal.id, now=store.clock.now())
        assert [entry.text for entry in seen.inbox] == ["use feet"]

    @pytest.mark.parametrize("number", [0, 1, 2, 3, 99])
    def test_only_a_note_that_stands_can_be_replaced(self, store: Store, number: int) -> None:
        """One of another goal, one that was replaced or taken back, and none at all are refused; nothing is stored."""
        goal, other = new_goal(store), new_goal(store)
        for _ in range(5):
            notes.add(store, other, "elsewhere", now=store.clock.now())
        notes.add(store, goal, "use metres", now=store.clock.now())
        notes.add(store, goal, "use feet", replaces=1, now=store.clock.now())
        notes.withdraw(store, goal, 2, now=store.clock.now())
        before = dump(store)

        with pytest.raises(NotAllowed, match=r"no note|no longer stands"):
            notes.add(store, goal, "use yards", replaces=number, now=store.clock.now())
        with pytest.raises(NotAllowed, match=r"no note|no longer stands"):
            notes.withdraw(store, goal, number, now=store.clock.now())

        assert dump(store) == before

    @pytest.mark.parametrize("status", [GoalStatus.DONE, GoalStatus.ABORTED])
    def test_a_goal_that_is_over_takes_no_note(self, store: Store, status: GoalStatus) -> None:
        """Even where it ended after whoever notes something had looked."""
        goal = new_goal(store)
        rows(store, f"UPDATE goals SET status = '{status.value}'")

        with pytest.raises(NotAllowed, match=r"is done|is aborted"):
            notes.add(store, goal, "use metres", now=store.clock.now())

        assert rows(store, "SELECT text FROM inbox") == []


class TestNews:
    def news(self, store: Store, goal: Goal, after: int) -> list[tuple[str, str, str]]:
        with store.reading() as connection:
            return [(n.kind.value, n.text, n.about) for n in notes.news(connection, goal.id, after)]

    def test_news_is_what_came_later_and_stands(self, store: Store) -> None:
        """Notes and answers beside their questions, oldest first; no stops, no edits, nothing of other goals."""
        goal, other = new_goal(store), new_goal(store)
        notes.add(store, goal, "heard", now=store.clock.now())
        head = now(store, goal).inbox_head
        notes.add(store, other, "elsewhere", now=store.clock.now())
        notes.add(store, goal, "use metres", now=store.clock.now())
        ask(store, goal)
        ask_at = store.clock.now()
        answer(store, goal, 1)
        ask(store, goal, "Which colour?", default="blue", default_at=ask_at)
        answers.answer_by_default(store, goal, now=ask_at)
        goals.stop(store, goal, Control.PAUSE, now=store.clock.now())

        assert self.news(store, goal, head) == [
            ("note", "use metres", ""),
            ("answer", "Cuxhaven", "Q1: Which station?"),
            ("default", "blue", "Q2: Which colour?"),
        ]
        assert self.news(store, goal, now(store, goal).inbox_head) == []

    def test_what_replaces_a_note_that_was_heard_says_so(self, store: Store) -> None:
        """Over as many notes as came between; one that was never heard is not mentioned."""
        goal = new_goal(store)
        notes.add(store, goal, "use metres", now=store.clock.now())
        head = now(store, goal).inbox_head
        notes.add(store, goal, "use feet", replaces=1, now=store.clock.now())
        notes.add(store, goal, "use yards", replaces=2, now=store.clock.now())

        assert self.news(store, goal, head) == [("note", "use yards", "use metres")]
        assert self.news(store, goal, 0) == [("note", "use yards", "")]

    def test_a_note_taken_back_is_news_only_to_who_has_heard_it(self, store: Store) -> None:
        """A wakeup that never heard of it need not hear that it is gone."""
        goal = new_goal(store)
        notes.add(store, goal, "use metres", now=store.clock.now())
        head = now(store, goal).inbox_head
        notes.withdraw(store, goal, 1, now=store.clock.now())

        assert self.news(store, goal, head) == [("withdrawn", "use metres", "")]
        assert self.news(store, goal, 0) == []
