"""Which files are protected: those that a check names, and those that a glob matches."""

from __future__ import annotations

from pathlib import Path

import pytest

from goalmode.domain.contract import Requirement
from goalmode.errors import BadInput
from goalmode.settle import protect
from goalmode.tools.paths import Workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    for path in ("run.sh", "a b.txt", "conf.ini", "tests/test_a.py", "tests/deep/test_b.py", "tests/data/x.json",
                 ".git/config", ".env", "测试.py"):  # fmt: skip
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)
    (root / "link.sh").symlink_to(root / "run.sh")
    (root / "out").symlink_to("/bin/true")
    return root


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("sh run.sh", ["run.sh"]),
        ("./run.sh --fast && cat 'a b.txt'", ["run.sh", "a b.txt"]),
        ("./tests/../run.sh", ["run.sh"]),
        ("pytest --config=conf.ini tests", ["conf.ini"]),
        ("CONFIG=conf.ini pytest tests/test_a.py::test_x", ["conf.ini", "tests/test_a.py"]),
        ("cd tests && pytest test_a.py deep/test_b.py", ["tests/test_a.py", "tests/deep/test_b.py"]),
        ("python 测试.py", ["测试.py"]),
        ("sort < conf.ini | diff - .env", ["conf.ini", ".env"]),
        ("bash -c 'sh run.sh'", ["run.sh"]),
        ("sh -c \"bash -c 'sh run.sh'\"", ["run.sh"]),
        ("test -f run.sh; (cat conf.ini)", ["run.sh", "conf.ini"]),
        ("echo x > run.sh; echo y 2> conf.ini >> .env", []),
        ("sh run.sh | tee conf.ini", ["run.sh"]),
        ("sort conf.ini run.sh > conf.ini", ["run.sh"]),
        ("make # run.sh", []),
        ("cat tests out link-not-there ../workspace/x /etc/passwd ~/run.sh", []),
        ("./link.sh", ["link.sh"]),
        ("run.sh; run.sh", ["run.sh"]),
        ("'unclosed run.sh", []),
    ],
)
def test_what_a_command_names(root: Path, command: str, named: list[str]) -> None:
    """Regular files of the workspace, each once; not directories, nothing outside, nothing that it writes."""
    found = protect.named_by_checks(Workspace(root), [Requirement("R1", "t", command)])

    assert found == dict.fromkeys(named, "R1")


def test_an_absolute_path_inside_is_the_same_file(root: Path) -> None:
    """The form of the path does not matter."""
    found = protect.named_by_checks(Workspace(root), [Requirement("R1", "t", f"sh {root}/run.sh")])

    assert list(found) == ["run.sh"]


def test_the_first_check_that_names_a_file_is_told(root: Path) -> None:
    """Other kinds of requirements name none."""
    wanted = [
        Requirement("R1", "run.sh"),
        Requirement("R2", "t", "sh run.sh"),
        Requirement("R3", "t", "cat run.sh conf.ini"),
    ]

    assert protect.named_by_checks(Workspace(root), wanted) == {"run.sh": "R2", "conf.ini": "R3"}


@pytest.mark.parametrize(
    ("glob", "paths"),
    [
        ("run.sh", ["run.sh"]),
        ("./run.sh", ["run.sh"]),
        ("tests/*.py", ["tests/test_a.py"]),
        ("tests/**/*.py", ["tests/deep/test_b.py", "tests/test_a.py"]),
        ("tests/**", ["tests/data/x.json", "tests/deep/test_b.py", "tests/test_a.py"]),
        ("tests", ["tests/data/x.json", "tests/deep/test_b.py", "tests/test_a.py"]),
        ("tests/", ["tests/data/x.json", "tests/deep/test_b.py", "tests/test_a.py"]),
        ("**/*.json", ["tests/data/x.json"]),
        ("**/**/test_?.py", ["tests/deep/test_b.py", "tests/test_a.py"]),
        ("*.[is][nh]*", ["conf.ini", "run.sh"]),
        (".env", [".env"]),
        ("*.py", ["测试.py"]),
        (".git/config", [".git/config"]),
    ],
)
def test_what_a_glob_matches(root: Path, glob: str, paths: list[str]) -> None:
    """Names in one directory, directories at any depth, or all below a directory; links are not followed."""
    assert sorted(protect.matched(Workspace(root), [glob])) == paths


@pytest.mark.parametrize("glob", ["*.none", "none/**", "../*", "/etc/*", "", "a\x00", "**/config", "link*"])
def test_a_glob_that_protects_nothing_is_refused(root: Path, glob: str) -> None:
    """A slip of the pen must not leave a goal unprotected."""
    with pytest.raises(BadInput, match="protect"):
        protect.matched(Workspace(root), [glob])


def test_hashes_are_taken_within_bounds(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Count and bytes are bounded, together with what is protected already; the boundary itself is allowed."""
    jail = Workspace(root)
    monkeypatch.setattr(protect, "MAX_PROTECTED", 2)
    monkeypatch.setattr(protect, "MAX_BYTES", len("run.sh") + len("conf.ini"))

    both = protect.take_hashes(jail, {"run.sh": "R1", "conf.ini": "*.ini"})

    assert [(f.path, f.named_by, f.sha256) for f in both] == [
        (path, by, jail.observe(path).sha256) for path, by in (("run.sh", "R1"), ("conf.ini", "*.ini"))
    ]
    with pytest.raises(BadInput, match="at most 2 files"):
        protect.take_hashes(jail, {".env": "R1"}, both)
    with pytest.raises(BadInput, match="bytes together"):
        protect.take_hashes(jail, {"a b.txt": "R1"}, both[:1] * 0 + both[1:])


def test_a_file_that_nobody_may_hash_counts_as_changed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that has grown beyond the bound is not read."""
    [file] = protect.take_hashes(Workspace(root), {"run.sh": "R1"})
    monkeypatch.setattr(protect, "MAX_BYTES", 2)

    assert protect.state_of(Workspace(root), file) == "was changed"


def test_an_absent_file_can_be_what_is_to_stay(root: Path) -> None:
    """A user may have accepted that a file is gone; then it must not come back."""
    [file] = protect.take_hashes(Workspace(root), {"run.sh": "R1"})
    gone = protect.ProtectedFile(file.path, None, file.named_by)

    assert protect.state_of(Workspace(root), gone) == "was made anew"
    (root / "run.sh").unlink()
    assert protect.state_of(Workspace(root), gone) == ""
    assert protect.state_of(Workspace(root), file) == "was removed"
