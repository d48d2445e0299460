"""`questions`, `answer` and `note` as a user meets them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goalmode.testing import Stub, steps

Serve = Callable[..., Stub]

LOOK = steps.tool("list_files", {"path": "."})
WRITE = steps.tool("write_file", {"path": "a.txt", "content": "a\n"})
DONE = steps.tool("complete", {"status": "success", "summary": "Written.", "evidence": ["a.txt"]})


def ask(text: str = "Which colour?", **more: Any) -> Any:
    given = {"missing_info": text, "why_no_default": "It is printed.", **more}
    return steps.tool("complete", {"status": "needs_user_input", "summary": "?", **given})


@pytest.fixture
def waiting(cli: Any, serve: Serve) -> str:
    """A goal that asks for one of two colours."""
    stub = serve([ask(options=["blue", "green"], default="green", default_after_seconds=86_400)])
    uid = cli.new(url=stub.base_url)
    assert cli("wake", uid).code == 30
    return str(uid)


def other(cli: Any, serve: Serve, text: str = "Which size?") -> str:
    """A second goal that asks something."""
    uid = cli.new(url=serve([ask(text)]).base_url)
    assert cli("wake", uid).code == 30
    return str(uid)


def test_what_waits_for_an_answer_is_listed(cli: Any, serve: Serve, waiting: str) -> None:
    """The open questions of all goals, with what may be answered; none are said to be none."""
    second = other(cli, serve)

    lines = cli("questions").out.splitlines()

    assert lines[0].split() == ["GOAL", "ID", "STATUS", "ASKED", "ANSWER", "QUESTION"]
    assert [line.split()[:3] for line in lines[1:]] == [[waiting, "Q1", "open"], [second, "Q1", "open"]]
    assert "1) blue, 2) green; default from " in lines[1]
    assert lines[1].endswith("Which colour?")
    found = cli("questions", "--json").json
    assert [(q["goal"], q["id"], q["options"]) for q in found] == [
        (waiting, "Q1", ["blue", "green"]),
        (second, "Q1", []),
    ]


def test_no_questions(cli: Any) -> None:
    """Neither without a store, which is not made, nor in one whose goals ask nothing."""
    assert cli("questions").out == "No goal asks anything.\n"
    assert cli("questions", "--json").json == []
    assert not cli.store.exists()
    uid = cli.new()

    assert cli("questions").out == "No goal asks anything.\n"
    assert cli("questions", uid).out == "It has asked nothing.\n"
    assert cli("questions", uid, "--json").json == []
    assert cli("questions", "-q").out == ""
    assert cli("questions", "nosuch").code == 1


def test_all_questions_of_one_goal(cli: Any, serve: Serve, waiting: str) -> None:
    """Those that were answered too, with their answers."""
    other(cli, serve)
    cli("answer", waiting, "neither")

    listed = cli("questions", waiting).out.splitlines()

    assert len(listed) == 2
    assert listed[1].split()[:3] == [waiting, "Q1", "answered"]
    assert "neither" in listed[1]
    assert [q["goal"] for q in cli("questions", "--json").json] != [waiting]


@pytest.mark.parametrize(
    ("words", "stdin", "stored"),
    [
        (("red, or nearly",), b"", "red, or nearly"),
        (("Q1", "red"), b"", "red"),
        (("q1", "Q1"), b"", "Q1"),
        (("--option", "2"), b"", "green"),
        (("Q1", "--option", "1"), b"", "blue"),
        (("-",), "青色\n".encode(), "青色\n"),
        (("@colour.txt",), b"", "from a file"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, tuple) else None,
)
def test_an_answer(cli: Any, waiting: str, words: tuple[str, ...], stdin: bytes, stored: str) -> None:
    """A text, standard input, a file, or an option: the goal is due, and nothing has run."""
    Path("colour.txt").write_text("from a file")

    done = cli("answer", waiting, *words, stdin=stdin)

    assert (done.code, done.err) == (0, "")
    assert (
        done.out
        == f"{waiting}: Q1 is answered; the goal goes on, if nothing runs it: goalmode run {waiting}\n"
    )
    [question] = cli("questions", waiting, "--json").json
    assert (question["answer"], question["answered_by"], question["status"]) == (stored, "user", "answered")
    shown = cli("show", waiting, "--json").json
    assert (shown["status"], shown["wake_reason"], len(shown["wakeups"])) == ("ACTIVE", "answered", 1)


def test_an_answer_in_json(cli: Any, waiting: str) -> None:
    """The question as it stands now, and what became of the goal."""
    found = cli("answer", waiting, "red", "--json").json

    assert (found["goal"], found["id"], found["answer"]) == (waiting, "Q1", "red")
    assert found["goal_status"] == "ACTIVE"


NO_ANSWERS: tuple[tuple[tuple[str, ...], str], ...] = (
    ((), "an answer is missing: TEXT, or --option N"),
    (("",), "answer: '' is not valid: a text that is not blank, or --option 1 to 2"),
    ((" \t",), "not blank"),
    (("x" * 1_000_000,), "at most 10,000 characters, it has 1,000,000, or --option 1 to 2"),
    (("--option", "3"), "option: '3' is not valid: the number of one of Q1's options: 1) blue, 2) green"),
    (("--option", "0"), "1) blue, 2) green"),
    (("--option", "blue"), "'blue' is not a valid integer"),
    (("red", "green"), "question: 'red' is not valid: the id of an open question"),
    (("Q2", "red"), "question: 'Q2' is not valid: the id of an open question"),
    (("Q1",), "an answer; Q1 names a question: goalmode answer"),
    (("Q1", "red", "--option", "1"), "give TEXT or --option N, not both"),
    (("navy", "or", "black"), "put an answer of several words into quotes"),
    (("@nosuch.txt",), "a file that can be read"),
    (("red\udcff",), "UTF-8"),
)


def test_what_is_no_answer(cli: Any, waiting: str) -> None:
    """B124: one line with the valid form, exit code not 0; the question stays open and nothing is written."""
    before = cli.rows()

    for words, told in NO_ANSWERS:
        refused = cli("answer", waiting, *words)
        assert refused.code == 2
        assert told in refused.line()

    assert cli.rows() == before


def test_an_answer_for_another_goal(cli: Any, serve: Serve, waiting: str) -> None:
    """B124: neither a goal that does not exist, nor another goal's question."""
    second = other(cli, serve)
    cli("resume", second, "--answer", "large", "--no-run")
    before = cli.rows()

    assert cli("answer", "nosuch", "red").code == 1
    assert "waits for no answer" in cli("answer", second, "red").line()
    assert "was answered already, by the user: 'large'" in cli("answer", second, "Q1", "red").line()
    assert cli.rows() == before


@pytest.mark.parametrize("over", ["done", "aborted"])
def test_an_answer_for_a_goal_that_is_over(cli: Any, waiting: str, over: str) -> None:
    """B124: refused with what to do."""
    if over == "done":
        cli.sql("UPDATE goals SET status = 'DONE'")
    else:
        cli("abort", waiting)

    refused = cli("answer", waiting, "red")

    assert refused.code == 1
    assert ("`goalmode edit" if over == "done" else "can only be read") in refused.line()


def test_a_paused_goal_keeps_its_answer(cli: Any, waiting: str) -> None:
    """It is said that it does not go on by itself."""
    cli("pause", waiting)

    done = cli("answer", waiting, "red")

    assert done.out == f"{waiting}: Q1 is answered; the goal is PAUSED: goalmode resume {waiting}\n"


def test_why_names_the_question_and_the_command(cli: Any, waiting: str) -> None:
    """What is asked, why, the answers to choose from, and exactly what to type; with this user's store."""
    told = cli("why", waiting).out

    assert "Q1  Which colour?\n    why: It is printed.\n    1) blue\n    2) green\n    default from " in told
    assert f"To go on: goalmode answer {waiting} TEXT\n" in told
    elsewhere = cli("why", waiting, "--store", cli.url).out
    assert f"goalmode answer {waiting} TEXT --store {cli.name}\n" in elsewhere
    found = cli("why", waiting, "--json").json
    assert [q["id"] for q in found["questions"]] == ["Q1"]
    assert found["remedy"] == f"goalmode answer {waiting} TEXT"
    assert "goalmode answer" in cli("run", waiting, "--max-wait", "1s").line()


def test_show_has_the_questions(cli: Any, waiting: str) -> None:
    """As a table, and whole in JSON."""
    assert "\nQuestions\n" in cli("show", waiting).out
    [question] = cli("show", waiting, "--json").json["questions"]
    assert (question["text"], question["why"], question["default"]) == (
        "Which colour?",
        "It is printed.",
        "green",
    )


def test_a_run_says_how_to_answer(cli: Any, serve: Serve) -> None:
    """The line on standard error ends in the command."""
    uid = cli.new(url=serve([LOOK, ask(), WRITE, DONE]).base_url)

    asked = cli("run", uid)
    assert asked.line().endswith(f"to go on: goalmode answer {uid} TEXT")
    cli("answer", uid, "blue")

    assert cli("run", uid).code == 0


def test_hostile_questions_are_shown_harmlessly(cli: Any, serve: Serve) -> None:
    """What a model asks cannot move the cursor or forge a line."""
    uid = cli.new(url=serve([ask("a\x1b[2J\nGOAL  Q9", options=["b\x1b]0;x\x07"])]).base_url)
    cli("wake", uid)

    assert len(cli("questions").out.splitlines()) == 2
    assert cli("why", uid).code == 0
    assert cli("show", uid).code == 0


class TestNotes:
    def test_notes_are_listed_with_their_numbers(self, cli: Any) -> None:
        """What stands, what was replaced and what was taken back."""
        uid = cli.new()
        assert cli("note", uid).out == "There are no notes.\n"

        assert cli("note", uid, "use metres").out == f"{uid}: note 1 stands from now on\n"
        cli(
            "note",
            uid,
            "-",
            stdin=b"use feet",
        )
        cli("note", uid, "use yards", "--replaces", "2")
        assert cli("note", uid, "--withdraw", "1").out == f"{uid}: note 1 withdrawn\n"

        assert [line.split() for line in cli("note", uid).out.splitlines()] == [
            ["NOTE", "STATE", "TEXT"],
            ["1", "withdrawn", "use", "metres"],
            ["2", "replaced", "by", "3", "use", "feet"],
            ["3", "stands", "use", "yards"],
        ]
        found = cli("note", uid, "--json").json
        assert [(n["number"], n["stands"], n["replaced_by"], n["withdrawn"]) for n in found] == [
            (1, False, None, True),
            (2, False, 3, False),
            (3, True, None, False),
        ]
        assert cli("note", uid, "more", "--json").json["number"] == 4

    def test_a_note_is_in_the_next_context(self, cli: Any, serve: Serve) -> None:
        """As it was given."""
        stub = serve([WRITE, DONE])
        uid = cli.new(url=stub.base_url)
        cli("note", uid, "use 青色")

        assert cli("run", uid).code == 0
        assert "use 青色" in json.dumps(stub.requests[0].body, ensure_ascii=False)

    def test_a_note_is_no_answer(self, cli: Any, waiting: str) -> None:
        """The goal still waits, and it is said how it goes on."""
        told = cli("note", waiting, "take your time").out

        assert told == (
            f"{waiting}: note 1 stands from now on; the goal still waits for an answer: "
            f"goalmode answer {waiting} TEXT\n"
        )
        assert cli("show", waiting, "--json").json["status"] == "WAITING_USER"

    def test_what_is_no_note(self, cli: Any) -> None:
        """One line that says what would be right; nothing is written."""
        uid = cli.new()
        cli("note", uid, "use metres")
        before = cli.rows()

        for words, code, told in (
            ((" ",), 2, "note: ' ' is not valid: a text that is not blank"),
            (("x" * 10_001,), 2, "at most 10,000 characters, it has 10,001"),
            (("new", "--replaces", "2"), 1, "has no note 2; `goalmode note"),
            (("new", "--replaces", "0"), 2, "0 is not in the range"),
            (("--withdraw", "2"), 1, "has no note 2"),
            (("--withdraw", "one"), 2, "'one' is not a valid integer"),
            (("new", "--withdraw", "1"), 2, "leave out TEXT and --replaces"),
            (("--replaces", "1"), 2, "--replaces needs the TEXT"),
            (("two", "words"), 2, "unexpected extra argument"),
            (("@nosuch.txt",), 2, "a file that can be read"),
        ):
            refused = cli("note", uid, *words)
            assert refused.code == code
            assert told in refused.line()

        assert cli.rows() == before

    def test_a_note_for_a_goal_that_is_over(self, cli: Any) -> None:
        """Done: `edit` reopens it. Aborted: it can only be read."""
        uid = cli.new()
        cli.sql("UPDATE goals SET status = 'DONE'")
        assert f"`goalmode edit {uid}` reopens it" in cli("note", uid, "x").line()
        cli.sql("UPDATE goals SET status = 'ABORTED'")
        assert "can only be read" in cli("note", uid, "x").line()
        assert cli("note", uid).code == 0
