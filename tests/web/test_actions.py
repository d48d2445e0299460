"""The forms: each does what its command does, once, and a refused one changes nothing and loses no text."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goalmode.domain.budget import Limits
from goalmode.domain.contract import Requirement
from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Control, GoalSpec
from goalmode.domain.notes import MAX_NOTE
from goalmode.orchestrator.goals import create_goal, stop_goal
from goalmode.state import notes, questions
from goalmode.testing import call
from goalmode.web import forms
from tests import stores
from tests.web.conftest import FORM, ORIGIN, Pages, Read

Open = Callable[..., Pages]


def ask(pages: Pages, text: str = "Which port?", *options: str) -> None:
    """The goal's next wakeup ends in a question."""
    claim: dict[str, Any] = {"status": "needs_user_input", "summary": "I need to know."}
    claim |= {"missing_info": text, "why_no_default": "Only you know."}
    if options:
        claim["options"] = list(options)
    pages.world.wake([call("list_files", path="."), call("complete", **claim)])


def told(pages: Pages, done: Any) -> str:
    """The page that a form led to, as text."""
    assert done.status_code == 303, done.text
    return pages.read(done.headers["location"]).text


def test_pause_and_resume(pages: Pages) -> None:
    """Paused at once where nothing runs; resumed it is due, and nothing is run from here."""
    assert "The goal is paused." in told(pages, pages.do("pause"))
    assert pages.world.now.status is GoalStatus.PAUSED

    assert "The goal is due." in told(pages, pages.do("resume"))
    goal = pages.world.now
    assert (goal.status, goal.next_wakeup_at) == (GoalStatus.ACTIVE, pages.world.clock.now())
    assert goal.spent.wakeups == 0


def test_a_running_wakeup_is_asked_to_end(pages: Pages) -> None:
    """As `goalmode pause` does it: the wakeup ends by itself, and the page says so."""
    wake = pages.world.begin()
    assert "ends within a second" in told(pages, pages.do("pause"))
    assert pages.world.now.control is Control.PAUSE

    assert "aborted" in told(pages, pages.do("abort"))
    assert pages.world.now.control is Control.ABORT
    wake.let_go()  # type: ignore[union-attr]


def test_abort_asks_first(pages: Pages) -> None:
    """The goal's page links to a page that asks; only its form aborts. From then on nothing is offered."""
    assert f"{pages.goal}/abort" in {a.get("href") for a in pages.page().all("a")}
    assert f"{pages.goal}/abort" not in {f.get("action") for f in pages.page().all("form")}
    asking = pages.read(f"{pages.goal}/abort")
    assert [f["action"] for f in asking.all("form")] == [f"{pages.goal}/abort"]
    assert "Write the report." in asking.text

    assert "can only be read" in told(pages, pages.do("abort"))
    assert pages.world.now.status is GoalStatus.ABORTED
    assert pages.page().all("form") == []


def test_a_note_is_stored(pages: Pages) -> None:
    """With the line ends that it has everywhere else, whatever a browser sends."""
    assert "The note is stored." in told(pages, pages.do("note", text="Use 端口 80,\r\nplease."))

    with pages.world.store.reading() as connection:
        [note] = notes.of_goal(connection, pages.world.goal.id)
    assert note.text == "Use 端口 80,\nplease."
    assert "Use 端口 80," in pages.page().text


def test_an_answer_in_words_lets_the_goal_go_on(open_pages: Open) -> None:
    """The question is answered by the user, and the goal is due."""
    pages = open_pages()
    ask(pages)
    assert pages.world.now.status is GoalStatus.WAITING_USER

    assert "The answer is stored." in told(pages, pages.do("answer", question="Q1", text="8080"))
    assert pages.world.now.status is GoalStatus.ACTIVE
    assert _answers(pages) == ["8080"]
    assert "Which port?" in pages.page().text
    assert "8080" in pages.page().text


def _answers(pages: Pages) -> list[str]:
    with pages.world.store.reading() as connection:
        return [q.answer for q in questions.of_goal(connection, pages.world.now)]


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        ({"option": "2", "text": ""}, "blue"),
        ({"option": "2", "text": " \n"}, "blue"),
        ({"option": "2", "text": "green"}, "green"),
        ({"text": "green"}, "green"),
    ],
    ids=str,
)
def test_an_answer_may_be_one_of_the_options(open_pages: Open, fields: dict[str, str], answer: str) -> None:
    """Other words go before the choice."""
    pages = open_pages()
    ask(pages, "Which colour?", "red", "blue")
    assert [f["value"] for f in pages.page().all("input") if f.get("type") == "radio"] == ["1", "2"]

    assert pages.do("answer", question="Q1", **fields).status_code == 303
    assert _answers(pages) == [answer]


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"question": "Q1", "text": "   "}, 400),
        ({"question": "Q1"}, 400),
        ({"question": "Q1", "option": "3"}, 400),
        ({"question": "Q1", "option": "0"}, 400),
        ({"question": "Q1", "option": "²"}, 400),
        ({"question": "Q1", "option": "1; drop"}, 400),
        ({"question": "Q7", "text": "kept text"}, 400),
        ({"question": "", "text": "kept text"}, 400),
        ({"question": "<b>", "text": "kept text"}, 400),
        ({"question": "Q1", "text": "x" * 10_001}, 400),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_wrong_answer_changes_nothing(open_pages: Open, fields: dict[str, str], status: int) -> None:
    """One line says what would be right, and what was written is still there."""
    pages = open_pages()
    ask(pages, "Which colour?", "red", "blue")
    before = stores.dump(pages.world.store.url)
    done = pages.do("answer", **fields)

    assert done.status_code == status
    shown = Read(done.text)
    assert [p for p in shown.all("p") if p.get("role") == "alert"]
    assert "is not valid" in shown.text
    assert "b" not in shown.names()
    assert stores.dump(pages.world.store.url) == before
    if fields.get("question") == "Q1" and fields.get("text", "").strip():
        assert fields["text"] in shown.text
    if fields.get("option") == "1":
        assert [f for f in shown.all("input") if "checked" in f]


def test_of_two_answers_the_first_one_stands(open_pages: Open) -> None:
    """Two browsers: the second one is told, and its text is not stored."""
    pages = open_pages()
    ask(pages)
    assert pages.do("answer", question="Q1", text="8080").status_code == 303
    done = pages.do("answer", question="Q1", text="9090")

    assert done.status_code == 409
    assert "was answered already" in Read(done.text).text
    assert _answers(pages) == ["8080"]


@pytest.mark.parametrize(
    ("status", "action", "fields"),
    [
        (GoalStatus.ABORTED, "pause", {}),
        (GoalStatus.ABORTED, "resume", {}),
        (GoalStatus.ABORTED, "abort", {}),
        (GoalStatus.ABORTED, "note", {"text": "x"}),
        (GoalStatus.ABORTED, "answer", {"question": "Q1", "text": "x"}),
        (GoalStatus.PAUSED, "pause", {}),
        (GoalStatus.PAUSED, "answer", {"question": "Q1", "text": "x"}),
    ],
    ids=str,
)
def test_what_a_status_does_not_allow_is_said(
    pages: Pages, status: GoalStatus, action: str, fields: dict[str, str]
) -> None:
    """A page that was loaded before somebody else acted: its form is refused in one line."""
    control = Control.ABORT if status is GoalStatus.ABORTED else Control.PAUSE
    stop_goal(pages.world.store, pages.world.now, control)
    before = stores.dump(pages.world.store.url)
    done = pages.do(action, **fields)

    assert done.status_code in (400, 409)
    assert pages.world.goal.uid in Read(done.text).text
    assert stores.dump(pages.world.store.url) == before


def test_a_goal_that_waits_is_not_resumed_without_an_answer(open_pages: Open) -> None:
    """The page offers the answer alone, and a form of an older page is refused."""
    pages = open_pages()
    ask(pages)

    assert f"{pages.goal}/resume" not in {f.get("action") for f in pages.page().all("form")}
    assert pages.do("resume").status_code == 409
    assert pages.world.now.status is GoalStatus.WAITING_USER


def test_limits_are_raised_with_a_resume(open_pages: Open) -> None:
    """A number sets a limit, one with + adds to it; what is left empty stays. Only limits that are set are offered."""
    limits = Limits(turns=10, tokens=50_000, active_seconds=60)
    pages = open_pages(limits=limits)
    stop_goal(pages.world.store, pages.world.now, Control.PAUSE)
    offered = {f["name"] for f in pages.page().all("input") if str(f.get("id", "")).startswith("raise-")}
    assert offered == {"turns", "tokens", "active_seconds"}

    done = pages.do("resume", turns="+5", tokens=" 200k ", active_seconds="")
    assert done.status_code == 303
    assert pages.world.now.limits == Limits(turns=15, tokens=200_000, active_seconds=60)


@pytest.mark.parametrize(
    "fields",
    [{"turns": "many"}, {"turns": "-1"}, {"tokens": "+5"}, {"cost_micro": "1e99"}, {"deadline": "soon"}],
    ids=str,
)
def test_a_wrong_limit_changes_nothing(open_pages: Open, fields: dict[str, str]) -> None:
    """The whole form is refused; what was written stays in it."""
    pages = open_pages(limits=Limits(turns=10))
    stop_goal(pages.world.store, pages.world.now, Control.PAUSE)
    before = pages.world.now
    done = pages.do("resume", **fields)

    assert done.status_code == 400
    assert pages.world.now == before
    if "turns" in fields:
        assert fields["turns"] in [f.get("value") for f in Read(done.text).all("input")]


def test_a_deadline_can_be_moved(open_pages: Open) -> None:
    """Another one, in the user's own zone or with an offset."""
    pages = open_pages()
    pages.world.clock.now()
    spec = GoalSpec("x", str(pages.world.workspace))
    goal = create_goal(pages.world.store, spec)
    stop_goal(pages.world.store, goal, Control.PAUSE)
    path = f"{pages.keys.base}/goals/{goal.uid}/resume"

    assert pages.post(path, {"deadline": "2031-01-31T18:00+01:00"}).status_code == 303
    assert pages.post(path, {"deadline": "2001-01-31T18:00+01:00"}).status_code == 400


def test_what_only_a_person_can_accept_is_accepted_here(open_pages: Open) -> None:
    """A requirement for a person has a button; once it is pressed the page says so."""
    pages = open_pages()
    spec = GoalSpec("x", str(pages.world.workspace), (Requirement("", "It looks good.", human=True),))
    goal = create_goal(pages.world.store, spec)
    path = f"{pages.keys.base}/goals/{goal.uid}"
    assert f"{path}/accept" in {f.get("action") for f in pages.read(path).all("form")}

    assert "The acceptance is stored." in told(pages, pages.post(f"{path}/accept", {"name": "R1"}))
    assert f"{path}/accept" not in {f.get("action") for f in pages.read(path).all("form")}
    for name in ("R2", "", "../x", "<b>"):
        assert pages.post(f"{path}/accept", {"name": name}).status_code == 400


def test_an_unknown_goal_takes_no_form(pages: Pages) -> None:
    """Nor does the beginning of an id."""
    for uid in ("nope", pages.world.goal.uid[:5]):
        assert pages.post(f"{pages.keys.base}/goals/{uid}/pause").status_code == 404
    assert pages.post(f"{pages.goal}/explode").status_code == 404
    assert pages.world.now == pages.world.goal


@pytest.mark.parametrize(
    "text", ["", "  \n ", "\u200b", "x" * (MAX_NOTE + 1)], ids=["empty", "blank", "zero", "long"]
)
def test_a_note_that_is_none_is_refused(pages: Pages, text: str) -> None:
    """One line says what would be right; a long one is not lost."""
    done = pages.do("note", text=text)

    assert done.status_code == 400
    assert "note: " in Read(done.text).text
    assert len(text) < 10 or text in done.text
    with pages.world.store.reading() as connection:
        assert notes.of_goal(connection, pages.world.goal.id) == []


def test_the_longest_note_is_taken(pages: Pages) -> None:
    """Also where each of its characters takes nine bytes on the way."""
    assert pages.do("note", text="好" * MAX_NOTE).status_code == 303


@pytest.mark.parametrize(
    ("headers", "content", "status"),
    [
        ({"content-type": "application/json"}, b'{"text": "x"}', 415),
        ({"content-type": "multipart/form-data; boundary=x"}, b"--x--", 415),
        ({"content-type": ""}, b"text=x", 415),
        (FORM, b"x" * forms.MAX_BYTES, 403),
        (FORM, b"x" * (forms.MAX_BYTES + 1), 413),
        (FORM, b"&".join([b"a=b"] * (forms.MAX_FIELDS + 1)), 400),
        (FORM, b"text=%ff%fe", 400),
        (FORM, b"text=\xff\xfe", 400),
        (FORM, b"", 403),
        (FORM, b"%", 403),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_no_form_of_ours_is_refused(
    pages: Pages, headers: dict[str, str], content: bytes, status: int
) -> None:
    """Other types, more bytes, other bytes: one line, and nothing is stored."""
    sent = {"cookie": pages.cookie, "origin": ORIGIN, "sec-fetch-site": "same-origin", **headers}
    done = pages.ask("POST", f"{pages.goal}/note", headers=sent, content=content)

    assert done.status_code == status
    assert pages.world.now == pages.world.goal


def test_a_secret_in_a_note_is_struck_out(pages: Pages) -> None:
    """Before it is stored."""
    pages.do("note", text="The key is correct-horse-battery, sk-abcdefghijklmnopqrstuvwx.")

    with pages.world.store.reading() as connection:
        [note] = notes.of_goal(connection, pages.world.goal.id)
    assert note.text == "The key is [redacted], [redacted]."


def test_a_word_of_the_address_is_not_put_on_the_page(pages: Pages) -> None:
    """`?did=` chooses among lines of ours."""
    shown = pages.read(f"{pages.goal}?did=Your%20account%20is%20locked")

    assert "locked" not in shown.text
    assert [p for p in shown.all("p") if p.get("class") == "did"] == []


@pytest.mark.sqlite
def test_a_store_that_somebody_holds_is_said(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    """A form waits some seconds, then says that the store is busy; nothing is stored, and reading goes on."""
    from goalmode.web import stores as opened

    monkeypatch.setattr(opened, "BUSY_SECONDS", 0.05)
    assert isinstance(pages.world.store.path, Path)
    with pages.world.store.writing():
        done = pages.do("note", text="x")
        assert pages.get(pages.goal).status_code == 200
    assert done.status_code == 503
    assert pages.do("note", text="x").status_code == 303
