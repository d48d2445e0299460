"""File predicates: each test holds or says what is wrong, and never looks outside of the workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from goalmode.domain.contract import FileCheck, FileTest, Requirement
from goalmode.settle import predicates
from goalmode.tools.paths import Workspace

T = FileTest


def problem(root: Path, test: FileTest, path: str, value: str = "") -> str:
    wanted = Requirement("R1", "t", file=FileCheck(test, path, value))
    result, told = predicates.check(Workspace(root), wanted)
    assert result.passed is (not told)
    assert told == "" or told.startswith(f"requirement R1 (file {test}:")
    return result.tail


@pytest.mark.parametrize(
    ("test", "content", "value", "told"),
    [
        (T.EXISTS, b"", "", ""),
        (T.EXISTS, None, "", "does not exist"),
        (T.NON_EMPTY, b"x", "", ""),
        (T.NON_EMPTY, b"", "", "is empty"),
        (T.NON_EMPTY, None, "", "does not exist"),
        (T.CONTAINS, b"a Total: 1 b", "Total: 1", ""),
        (T.CONTAINS, "Summe: 5 €".encode(), "5 €", ""),
        (T.CONTAINS, b"\xff\xfe Total", "Total", ""),
        (T.CONTAINS, b"a total", "Total", "does not hold 'Total'"),
        (T.CONTAINS, b"", "x", "does not hold"),
        (T.CONTAINS, b"line", "a\nb", "does not hold"),
        (T.JSON, b'{"a": [1, 2.5, null]}', "", ""),
        (T.JSON, b"0", "", ""),
        (T.JSON, b"9" * 6000, "", ""),
        (T.JSON, b"", "", "not valid JSON"),
        (T.JSON, b"{'a': 1}", "", "not valid JSON"),
        (T.JSON, b'{"a": NaN}', "", "NaN is no JSON value"),
        (T.JSON, b"\xff\xff\xff", "", "not valid JSON"),
        (T.JSON, b"[" * 200_000, "", "nested too deeply"),
        (T.LARGER, b"xyz", "2", ""),
        (T.LARGER, b"xyz", "3", "has 3 bytes, more than 3 are wanted"),
        (T.LARGER, b"", "0", "has 0 bytes"),
    ],
)
def test_each_test_holds_or_says_why_not(
    tmp_path: Path, test: FileTest, content: bytes | None, value: str, told: str
) -> None:
    """The boundary of each is where its name puts it."""
    if content is not None:
        (tmp_path / "f").write_bytes(content)

    found = problem(tmp_path, test, "f", value)

    assert told in found
    assert bool(found) is bool(told)


@pytest.mark.parametrize("test", list(FileTest))
def test_nothing_outside_is_looked_at(tmp_path: Path, test: FileTest) -> None:
    """B111: a link out of the workspace, a directory and a pipe are no files, and nothing waits for them."""
    secret = tmp_path / "secret"
    secret.write_text("[1234567]")
    root = tmp_path / "workspace"
    (root / "directory").mkdir(parents=True)
    (root / "link").symlink_to(secret)
    (root / "pipe").symlink_to("/dev/zero")

    for path, told in (
        ("link", "outside"),
        ("directory", "a directory"),
        ("pipe", "outside"),
        ("../secret", "leads out"),
    ):
        assert told in problem(root, test, path, "1")


@pytest.mark.parametrize("test", [T.CONTAINS, T.JSON])
def test_a_file_of_any_size_is_read_up_to_a_bound(
    tmp_path: Path, test: FileTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is too large to be looked into is refused with both numbers, and what is just small enough is not."""
    monkeypatch.setattr(predicates, "MAX_READ", 1_000)
    (tmp_path / "fits").write_text(f"[{'1' * 998}]")
    (tmp_path / "large").write_text(f"[{'1' * 999}]")

    assert problem(tmp_path, test, "fits", "1]") == ""
    assert problem(tmp_path, test, "large", "1]") == (
        f"the file has 1,001 bytes; {test} looks into files of at most 1,000"
    )


def test_a_huge_file_can_be_measured(tmp_path: Path) -> None:
    """Its size is known without reading it."""
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(1 << 40)

    assert problem(tmp_path, T.LARGER, "huge", str((1 << 40) - 1)) == ""
    assert problem(tmp_path, T.EXISTS, "huge") == ""


def test_another_spelling_of_the_name_is_hinted_at(tmp_path: Path) -> None:
    """B110: the other Unicode form of a name does not count, and is told."""
    (tmp_path / "re\u0301sume\u0301.md").write_text("x")

    assert "normalised" in problem(tmp_path, T.EXISTS, "r\u00e9sum\u00e9.md")
