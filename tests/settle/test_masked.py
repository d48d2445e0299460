"""Checks whose exit code says nothing are told from those whose code counts."""

from __future__ import annotations

import pytest

from goalmode.settle.masked import masked
from goalmode.settle.shell import Simple, simple_commands

MASKED = {
    "pytest | tee log": "tee",
    "pytest 2>&1 | tee -a log.txt": "tee",
    "pytest |& tee log": "tee",
    "make test | /usr/bin/tail -5": "tail",
    "a | head -1": "head",
    "a | cat": "cat",
    "a | LC_ALL=C sort": "sort",
    "a | grep x | wc -l": "wc",
    "cd x && pytest | tee log": "tee",
    "pytest | tee log && echo ok": "tee",
    "(pytest | tee log)": "tee",
    "{ pytest | tee log; }": "tee",
    "bash -c 'pytest | tee log'": "tee",
    "pytest; true": "`true`",
    "pytest\ntrue\n": "`true`",
    "pytest; :": "`:`",
    "pytest; exit 0": "`exit 0`",
    "pytest ; echo done": "`echo`",
    "pytest || true": "`|| true`",
    "pytest||:": "`|| :`",
    "pytest || exit 0": "`|| exit 0`",
    "pytest || echo 'it failed; so what'": "`|| echo`",
    "set -e; pytest || true": "`|| true`",
    "a && b || true;": "`|| true`",
    "pytest &": "background",
    "pytest & ": "background",
    "sh -c 'pytest; true'": "`true`",
}

COUNTS = [
    "true",
    "exit 0",
    "pytest",
    "pytest -q tests",
    "grep -c '| tee' x",
    'grep -c "|| true" x',
    "grep '; exit 0' x",
    "grep -q a\\|tee x",
    "grep 'ends in &' x",
    "pytest # | tee log",
    "pytest | grep passed",
    "cat x | grep -q y",
    "pytest | tee log; exit ${PIPESTATUS[0]}",
    "pytest | tee log; test ${PIPESTATUS[0]} -eq 0",
    "set -o pipefail; pytest | tee log",
    "set -euo pipefail\npytest | tee log",
    "bash -c 'set -o pipefail; pytest | tee log'",
    "set -e; pytest; echo done",
    "pytest && echo ok",
    "pytest || exit 1; echo ok",
    "if grep -q bad x; then exit 1; fi; exit 0",
    "true; pytest",
    "serve & pytest",
    "test \"$(cat x | head -1)\" = 'a'",
    'test "`cat x | wc -l`" -gt 3',
    "test $(cat x | wc -l) -gt ${MIN:-3}",
    "[ -s out.txt ]",
    "a || { echo failed; exit 1; }",
    "a || { exit 1; }; true",
    "case x in a) true;; esac && pytest",
    "diff <(sort a) <(sort b)",
    "pytest > log 2>&1",
    "pytest &> log",
    "",
    "   ",
    "# only a comment",
    "'unclosed | tee",
    '"unclosed $(oops',
    "`unclosed",
    "\\",
    "|",
    "|| && ;",
    ")(",
]


@pytest.mark.parametrize("command", MASKED, ids=str)
def test_a_masked_exit_code_is_told_with_its_cause(command: str) -> None:
    """The reason names what gives the exit code instead."""
    assert MASKED[command] in masked(command)


@pytest.mark.parametrize("command", COUNTS, ids=str)
def test_a_check_that_can_fail_is_not_warned_about(command: str) -> None:
    """Quoted operators are words, and what handles its failures itself is left alone."""
    assert masked(command) == ""


def test_a_deep_nest_has_an_end() -> None:
    """Groups and quotes within each other are followed some way down, then left."""
    assert masked('"$(' * 3000) == ""
    assert masked("(" * 5000 + "a | tee x" + ")" * 5000) == ""


@pytest.mark.parametrize(
    ("command", "commands"),
    [
        ('a \'b c\' "d\\"e" f\\ g', [Simple(("a", "b c", 'd"e', "f g"))]),
        ("a>out 2>err <in; b", [Simple(("a", "in"), ("out", "err")), Simple(("b",))]),
        ("a | (b && c) & d", [Simple((x,)) for x in "abcd"]),
        ("a <<< word >> log", [Simple(("a",), ("log",))]),
        ("a $(b 'c)' \"d)\") e", [Simple(("a", "$(b 'c)' \"d)\")", "e"))]),
        ("a \\\n b", [Simple(("a", "b"))]),
        ("a #b\nc#d", [Simple(("a",)), Simple(("c#d",))]),
    ],
)
def test_commands_are_read_with_their_quotes(command: str, commands: list[Simple]) -> None:
    """Words come without quotes, redirections apart, and separators end a command."""
    assert simple_commands(command) == commands
