"""Loops that guess and loops that do not: each of the corpus is judged right, in both languages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from goalmode.audit import files
from goalmode.audit.findings import Signal
from goalmode.audit.run import audit

CORPUS = Path(__file__).parent / "corpus"
ROOT = Path(__file__).parent.parent.parent
EXPECTED = re.compile(r"(?:#|//) expect: ([\w-]+)")

POSITIVE = sorted((CORPUS / "positive").iterdir())
NEGATIVE = sorted((CORPUS / "negative").iterdir())


def found(path: Path) -> list[tuple[int, str]]:
    return [(finding.line, finding.signal.value) for finding in audit([path]).findings]


@pytest.mark.parametrize("path", POSITIVE, ids=lambda path: path.name)
def test_what_guesses_is_found(path: Path) -> None:
    """Exactly the lines that say so are found, with the signal that they name."""
    lines = path.read_text("utf-8").splitlines()
    expected = [(n, match[1]) for n, line in enumerate(lines, 1) if (match := EXPECTED.search(line))]

    assert expected
    assert found(path) == expected


@pytest.mark.parametrize("path", NEGATIVE, ids=lambda path: path.name)
def test_what_does_not_guess_is_left_alone(path: Path) -> None:
    """Explicit signals, safety nets, retries, streams, schedulers and what is suppressed are no findings."""
    assert found(path) == []


def test_the_corpus_is_as_large_as_promised() -> None:
    """At least twelve of each kind in each language, and every signal in both."""
    for paths in (POSITIVE, NEGATIVE):
        python = [path for path in paths if path.suffix in files.PYTHON]
        assert len(python) >= 12
        assert len(paths) - len(python) >= 12
    for language in (files.PYTHON, files.SCRIPT):
        texts = [path.read_text("utf-8") for path in POSITIVE if path.suffix in language]
        assert {name for text in texts for name in EXPECTED.findall(text)} == {
            signal.value for signal in Signal
        }


def test_tests_and_fixtures_are_left_out_and_counted() -> None:
    """Under a root they are left out by their path; named themselves they are looked at."""
    guarded = CORPUS / "guarded"
    report = audit([guarded])

    assert (report.findings, report.looked_at, report.tests) == ((), 0, 3)
    assert [len(audit([guarded / name]).findings) for name in ("tests", "__fixtures__", "loop.test.ts")] == [
        1,
        1,
        1,
    ]


@pytest.mark.long
def test_our_own_code_does_not_guess() -> None:
    """Nothing is found in what this project ships, and nothing is suppressed in it."""
    report = audit([ROOT / name for name in ("goalmode", "state", "templates", "migrations", "scripts")])

    assert (report.findings, report.suppressed, report.unread) == ((), (), ())
    assert report.looked_at > 300
