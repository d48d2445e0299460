"""The file of answers: it goes on after anything, and takes nothing that is not its own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goalmode.domain.messages import Usage
from goalmode.errors import BadInput
from goalmode.evals.measure import Answer
from goalmode.evals.results import FILE, Results
from tests.evals.builders import ONE, SUBJECT, cell, prompt

ANSWER = Answer(-1.0, -2.5, "final", usage=Usage(input=30, cached=20, output=4))


def _filled(path: Path) -> None:
    with Results(path, SUBJECT) as results:
        results.start(ONE)
        results.add(cell("A"), prompt("d1"), ANSWER)
        results.add(cell("C"), prompt("d2"), Answer(None, None))
        results.add_too_long(cell("A", 60), prompt("d3"), "8193 tokens")


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    """Answers, refusals and the way they were asked for."""
    path = tmp_path / "deep" / "down" / FILE
    _filled(path)
    with Results(path, SUBJECT) as results:
        assert results.way == ONE
        assert results.answers == {cell("A").key: ANSWER, cell("C").key: Answer(None, None)}
        assert results.too_long == {cell("A", 60).key: "8193 tokens"}
        assert results.is_done(cell("A"), prompt("d1"))
        assert results.is_done(cell("A", 60), prompt("d3"))
        assert not results.is_done(cell("B"), prompt("d1"))


def test_nothing_is_made_before_there_is_something_to_write(tmp_path: Path) -> None:
    """Whoever is asked and says no finds nothing left behind."""
    with Results(tmp_path / "new" / FILE, SUBJECT) as results:
        assert results.way is None

    assert list(tmp_path.iterdir()) == []


@settings(max_examples=20)
@given(cut=st.integers(0, 10_000))
def test_a_file_that_was_cut_anywhere_goes_on(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    """A crash costs the line that was being written, and the file is whole again afterwards."""
    path = tmp_path_factory.getbasetemp() / FILE
    path.unlink(missing_ok=True)
    _filled(path)
    data = path.read_bytes()
    path.write_bytes(data[: cut % (len(data) + 1)])
    whole = path.read_bytes().count(b"\n")
    with Results(path, SUBJECT) as results:
        if results.way is None:
            results.start(ONE)
        assert len(results.answers) + len(results.too_long) == max(0, whole - 1)
        results.add(cell("B"), prompt("d4"), ANSWER)

    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert len(lines) == max(1, whole) + 1
    assert lines[-1]["cell"] == cell("B").key


def test_a_file_of_another_subject_is_refused_with_what_differs(tmp_path: Path) -> None:
    """Both values are named, and the file is as it was."""
    path = tmp_path / FILE
    _filled(path)
    before = path.read_bytes()
    other = replace(SUBJECT, model="n", temperature=0.5)
    with pytest.raises(BadInput) as refused, Results(path, other):
        pass

    assert "model 'm' (now 'n'), temperature None (now 0.5)" in str(refused.value)
    assert path.read_bytes() == before


def test_a_cell_that_was_asked_in_other_words_is_refused(tmp_path: Path) -> None:
    """Templates that have changed since would be compared with those before."""
    _filled(tmp_path / FILE)
    with (
        Results(tmp_path / FILE, SUBJECT) as results,
        pytest.raises(BadInput, match="asked there in other words"),
    ):
        results.is_done(cell("A"), prompt("d9"))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("my notes", 1),
        ("my notes\n", 1),
        ("[1]\n", 1),
        ('{"kind": "something else"}\n', 1),
        ('{"kind": "goalmode eval pollution", "version": 1}\n', 1),
        ("HEAD{}\n", 2),
        (
            'HEAD{"cell": "A", "prompt": "d", "tool": "x", "final": 1, "input": 1, "cached": 0, "output": 0}\n',
            2,
        ),
    ],
)
def test_a_file_of_somebody_else_is_left_alone(tmp_path: Path, text: str, line: int) -> None:
    """The line that is none of ours is named."""
    path = tmp_path / FILE
    _filled(path)
    head = path.read_text("utf-8").splitlines(keepends=True)[0]
    path.write_text(text.replace("HEAD", head))
    before = path.read_bytes()
    with pytest.raises(BadInput, match=f"line {line} is none of its lines"), Results(path, SUBJECT):
        pass

    assert path.read_bytes() == before


def test_a_newer_version_is_named(tmp_path: Path) -> None:
    """It is no damage."""
    (tmp_path / FILE).write_text('{"kind": "goalmode eval pollution", "version": 2}\n')
    with (
        pytest.raises(BadInput, match="a file of version 1; this one has 2"),
        Results(tmp_path / FILE, SUBJECT),
    ):
        pass


def test_one_evaluation_at_a_time(tmp_path: Path) -> None:
    """A second one is refused while the first runs, and also one that began before there was a file."""
    path = tmp_path / FILE
    with Results(path, SUBJECT) as early:
        with Results(path, SUBJECT) as first:
            first.start(ONE)
            with pytest.raises(BadInput, match="no other evaluation"), Results(path, SUBJECT):
                pass
            with pytest.raises(BadInput, match="no other evaluation"):
                early.start(ONE)
        with pytest.raises(BadInput, match="no other evaluation"):
            early.start(ONE)


@pytest.mark.parametrize("below", ["", "deep"])
def test_a_directory_that_is_a_file_is_refused(tmp_path: Path, below: str) -> None:
    """Itself, or one above it."""
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(BadInput, match="notes is none"), Results(tmp_path / "notes" / below / FILE, SUBJECT):
        pass


def test_a_file_that_is_a_directory_is_refused(tmp_path: Path) -> None:
    """In one line."""
    (tmp_path / FILE).mkdir()
    with pytest.raises(BadInput, match="a file to write to"), Results(tmp_path / FILE, SUBJECT):
        pass
