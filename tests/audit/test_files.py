"""Which files are looked at, and what happens to those that cannot be."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goalmode.audit import files, run
from goalmode.audit.run import audit

GUESS = "while True:\n    r = llm.chat(m)\n    if not r.tool_calls:\n        break\n"


def put(root: Path, name: str, text: str | bytes = GUESS) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_code_of_others_is_not_looked_at(tmp_path: Path) -> None:
    """Vendored, built and minified files are not what somebody audits."""
    for name in (
        ".venv/a.py",
        "node_modules/x/a.js",
        ".git/a.py",
        "dist/a.js",
        "build/a.py",
        "a.min.js",
        "a.txt",
    ):
        put(tmp_path, name)
    put(tmp_path, "env/pyvenv.cfg", "")
    put(tmp_path, "env/lib/a.py")
    put(tmp_path, "own.py")

    assert [finding.path for finding in audit([tmp_path]).findings] == [str(tmp_path / "own.py")]


@pytest.mark.parametrize(
    ("name", "is_test"),
    [
        ("tests/a.py", True), ("a/__tests__/b.ts", True), ("fixtures/a.py", True), ("test_a.py", True),
        ("a_test.py", True), ("conftest.py", True), ("a.test.tsx", True), ("a.spec.js", True), ("e2e/a.ts", True),
        ("latest.py", False), ("contest.py", False), ("testing/a.py", False), ("attest/a.ts", False),
    ],
)  # fmt: skip
def test_tests_are_told_by_their_path(tmp_path: Path, name: str, is_test: bool) -> None:
    """By whole words in the path relative to the root."""
    root = tmp_path / "tests"
    put(root, name)
    report = audit([root])

    assert (report.tests, report.looked_at) == ((1, 0) if is_test else (0, 1))


def test_each_file_is_looked_at_once(tmp_path: Path) -> None:
    """Roots that overlap, and links in the tree, add nothing; links out of it are not followed."""
    put(tmp_path, "outside/b.py")
    put(tmp_path, "root/a/a.py")
    (tmp_path / "root" / "again.py").symlink_to("a/a.py")
    (tmp_path / "root" / "out").symlink_to(tmp_path / "outside")
    (tmp_path / "root" / "round").symlink_to(tmp_path / "root")
    report = audit([tmp_path / "root", tmp_path / "root" / "a", tmp_path / "root" / "a" / "a.py"])

    assert (len(report.findings), report.looked_at, report.links) == (1, 1, 3)


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("a.py", b"def f(:\n", "line 1 does not parse as Python"),
        ("a.py", b"a = 1\0\n", "line 1 does not parse as Python"),
        ("a.py", b"# \xff\xfe", "is not UTF-8 (byte 2)"),
        ("a.ts", b"// \xff", "is not UTF-8 (byte 3)"),
        ("a.ts", b"while (true) {\n  const = 3;\n}", "line 2 does not parse; the rest was looked at"),
        ("a.js", b"x" * 30_000, "is minified"),
        ("a.py", b"-" * 90_000 + b"1", "nested too deeply"),
        ("a.ts", b"!" * 9_000 + b"x", "nested too deeply"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_that_cannot_be_read_costs_itself_only(
    tmp_path: Path, name: str, data: bytes, why: str
) -> None:
    """It is named with the reason, and the rest is audited."""
    put(tmp_path, name, data)
    put(tmp_path, "other.py")
    report = audit([tmp_path])

    assert [unread.path for unread in report.unread] == [str(tmp_path / name)]
    assert report.unread[0].why.startswith(why)
    assert len(report.findings) == 1


def test_a_file_is_read_up_to_the_limit(tmp_path: Path) -> None:
    """As long as the limit is looked at, one byte more is named; 50 MB are not read whole."""
    put(tmp_path, "a.py", GUESS + "#" * (files.MOST - len(GUESS)))
    put(tmp_path, "b.py", GUESS + "#" * (files.MOST - len(GUESS) + 1))
    with put(tmp_path, "c.py", "").open("r+b") as file:
        file.truncate(50_000_000)
    report = audit([tmp_path])

    assert [Path(finding.path).name for finding in report.findings] == ["a.py"]
    assert [(Path(u.path).name, u.why) for u in report.unread] == [
        ("b.py", "is longer than 1,048,576 bytes"),
        ("c.py", "is longer than 1,048,576 bytes"),
    ]


def test_a_pipe_in_the_tree_does_not_hang(tmp_path: Path) -> None:
    """Only regular files are read."""
    os.mkfifo(tmp_path / "a.py")
    [unread] = audit([tmp_path]).unread

    assert unread.why == "is no regular file"


def test_without_the_extra_python_is_still_audited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripts are counted in one line that says what to install."""
    monkeypatch.setitem(sys.modules, "tree_sitter", None)
    monkeypatch.delitem(sys.modules, "goalmode.audit.typescript", raising=False)
    monkeypatch.delattr("goalmode.audit.typescript", raising=False)
    for name in ("a.py", "b.ts", "c.jsx"):
        put(tmp_path, name)
    report = audit([tmp_path])

    assert (len(report.findings), report.looked_at) == (1, 1)
    assert [(unread.path, unread.why) for unread in report.unread] == [("2 files", run.EXTRA)]


SOUP = st.lists(
    st.sampled_from(
        [
            *(
                "while",
                "(",
                ")",
                "{",
                "}",
                ":",
                "\n",
                "\n    ",
                "if",
                "else",
                "return",
                "break",
                "reply.tool_calls",
                "=>",
            ),
            *(
                "reply",
                "=",
                "llm.chat(m)",
                "not",
                "!",
                "idle",
                "+=",
                "1",
                "'max_tokens'",
                "switch",
                "case",
                "default",
                ";",
            ),
            *(
                "function f",
                "async",
                "await",
                "try",
                "catch",
                "for",
                "const",
                "[",
                "]",
                "setTimeout",
                "lambda",
                "`",
                "${",
            ),
        ]
    ),
    max_size=60,
).map(" ".join)


@settings(max_examples=60, deadline=None)
@given(data=st.one_of(st.binary(max_size=300), st.text(max_size=200).map(str.encode), SOUP.map(str.encode)))
def test_no_source_makes_it_fail(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """Whatever stands in a file, there is a report."""
    root = tmp_path_factory.mktemp("soup")
    for name in ("a.py", "b.ts", "c.tsx", "d.js"):
        (root / name).write_bytes(data)
    report = audit([root])

    assert report.looked_at <= 4
    assert {Path(unread.path).suffix for unread in report.unread} <= {".py", ".ts", ".tsx", ".js"}
