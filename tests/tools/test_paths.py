"""The workspace jail, with real links, swaps and odd names."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import threading
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goalmode.domain.snapshot import Observed
from goalmode.errors import BadInput
from goalmode.tools import beneath
from goalmode.tools.listing import Entry, Kind, entries
from goalmode.tools.paths import Missing, PathError, Workspace

NFC = unicodedata.normalize("NFC", "résumé.md")
NFD = unicodedata.normalize("NFD", "résumé.md")


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    made = tmp_path / "outside"
    made.mkdir()
    (made / "secret.md").write_text("secret")
    os.utime(made / "secret.md", (1, 1))
    return made


@pytest.fixture(params=["kernel", "walk"])
def jail(workspace: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """By the kernel's resolution of paths where it has one, and by the walk alone."""
    if request.param == "walk":
        monkeypatch.setattr(beneath, "enter", lambda root, path: None)
    return Workspace(workspace)


@pytest.mark.parametrize(
    ("given", "clean"),
    [
        ("a.md", "a.md"),
        ("./a//b/./c/", "a/b/c"),
        ("a/../b", "b"),
        (".", "."),
        ("my report.md", "my report.md"),
        ("out dir/a b.csv", "out dir/a b.csv"),
        ("报告.md", "报告.md"),
        ("a\nb\x1b[31m", "a\nb\x1b[31m"),
        ("..a/b..", "..a/b.."),
        ("~backup", "~backup"),
        ("a:b", "a:b"),
        ("..\\x", "..\\x"),
    ],
    ids=repr,
)
def test_a_path_inside_has_one_clean_form(given: str, clean: str, jail: Workspace) -> None:
    """Blanks, letters and control characters are part of a name (B108)."""
    assert jail.normalise(given) == clean


@pytest.mark.parametrize(
    ("given", "cause"),
    [
        ("", "empty"),
        ("  ", "empty"),
        ("../x", "leads out"),
        ("a/../../x", "leads out"),
        ("..", "leads out"),
        ("/etc/passwd", "outside the workspace"),
        ("//srv/share", "outside the workspace"),
        ("/", "outside the workspace"),
        ("~", "home directory"),
        ("~/x", "home directory"),
        ("~root/x", "home directory"),
        ("./~/x", "home directory"),
        ("file:///etc/passwd", "URL"),
        ("FILE:/etc/passwd", "URL"),
        ("https://example.org/x", "URL"),
        ("C:\\x", "drive"),
        ("c:/x", "drive"),
        ("./C:/x", "drive"),
        ("\\\\srv\\share\\x", "network share"),
        ("a\x00b", "NUL"),
        ("a\ud800", "surrogate"),
    ],
    ids=repr,
)
def test_a_path_that_means_something_outside_is_refused_with_the_cause(
    given: str, cause: str, jail: Workspace
) -> None:
    """Each is refused by its text alone, so nothing is revealed of what exists outside (B113)."""
    with pytest.raises(BadInput, match=cause):
        jail.normalise(given)


def test_an_absolute_path_inside_becomes_relative(workspace: Path, tmp_path: Path) -> None:
    """Below the workspace as given or as it really is, an absolute path is accepted (B114)."""
    (tmp_path / "link").symlink_to(workspace)
    jail = Workspace(tmp_path / "link")

    assert jail.normalise(f"{workspace}/a/b.md") == "a/b.md"
    assert jail.normalise(f"{tmp_path}/link/a/b.md") == "a/b.md"
    assert jail.normalise(str(workspace)) == "."
    with pytest.raises(BadInput, match="outside"):
        jail.normalise(f"{workspace}-other/a")


@given(
    st.lists(
        st.sampled_from(
            ["..", ".", "", "/", "~", "a", "C:", "\\", "\x00", "file:", "//", "é", " ", "\ud800", "w"]
        )
        | st.text(max_size=4),
        max_size=12,
    ).map("".join)
)
@settings(deadline=None, max_examples=300)
def test_no_path_normalises_to_one_outside(path: str) -> None:
    """Whatever the text, it is refused or becomes a clean path inside, which is its own clean form."""
    jail = Workspace(Path("/w"))
    try:
        clean = jail.normalise(path)
    except BadInput:
        return
    whole = os.path.normpath(f"/w/{clean}")

    assert whole == "/w" or whole.startswith("/w/")
    assert not {"", ".."} & set(clean.split("/"))
    assert jail.normalise(clean) == clean


def test_a_file_is_written_read_and_observed(jail: Workspace, workspace: Path) -> None:
    """Directories are made, an old file is replaced as a whole and keeps its mode, no temporary file stays."""
    assert jail.write("out dir/a b.csv", b"1") is False
    (workspace / "out dir/a b.csv").chmod(0o750)
    assert jail.write("out dir/a b.csv", b"1,2") is True

    with jail.open("out dir/a b.csv") as file:
        assert file.read() == b"1,2"
    assert (workspace / "out dir/a b.csv").stat().st_mode & 0o777 == 0o750
    assert _names(workspace / "out dir") == ["a b.csv"]
    assert jail.observe("out dir/a b.csv") == Observed("out dir/a b.csv", True, 3, _sha(b"1,2"))


def _names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def _sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.mark.parametrize("relative", [False, True])
def test_a_workspace_may_be_a_link_or_relative(
    relative: bool, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Through a link and from a relative root everything inside works, links to other places inside too (B114)."""
    (tmp_path / "link").symlink_to(workspace)
    monkeypatch.chdir(tmp_path)
    jail = Workspace(Path("link") if relative else tmp_path / "link")
    (workspace / "real").mkdir()
    (workspace / "by name").symlink_to("real")
    (workspace / "real/back").symlink_to("../top.md")
    (workspace / "absolute").symlink_to(workspace / "real")
    (workspace / "through").symlink_to(tmp_path / "link/real")

    for path in ("by name/a.md", "absolute/a.md", "through/a.md", "real/back"):
        jail.write(path, path.encode())
        assert jail.observe(path).sha256 == _sha(path.encode())

    assert (workspace / "top.md").read_bytes() == b"real/back"
    assert (workspace / "real/back").is_symlink()


def test_links_out_are_neither_read_nor_written(jail: Workspace, workspace: Path, outside: Path) -> None:
    """A linked file, a linked directory, a dangling link and a chain of links change nothing outside (B111)."""
    (workspace / "out.md").symlink_to(outside / "secret.md")
    (workspace / "d").symlink_to(outside)
    (workspace / "new.md").symlink_to(outside / "new.md")
    (workspace / "chain").symlink_to("d")
    (workspace / "up").symlink_to("../outside/secret.md")

    for path in ("out.md", "d/secret.md", "d/nothing.md", "d", "new.md", "chain/new.md", "up"):
        with pytest.raises(PathError, match="outside the workspace"):
            jail.write(path, b"x")
        with pytest.raises(PathError, match="outside the workspace"), jail.open(path):
            pass
        assert jail.observe(path) == Observed(path, False, problem="outside the workspace")

    assert [(p.name, p.read_text(), p.stat().st_mtime) for p in outside.iterdir()] == [
        ("secret.md", "secret", 1)
    ]


def test_a_loop_of_links_ends(jail: Workspace, workspace: Path) -> None:
    """Links that point at each other are followed only so far."""
    (workspace / "a").symlink_to("b")
    (workspace / "b").symlink_to("a")

    assert jail.observe("a/x").problem == "too many symbolic links"


def test_swapping_a_directory_for_a_link_never_leads_out(
    jail: Workspace, workspace: Path, outside: Path
) -> None:
    """While another thread swaps a directory and a link out, no write lands outside and no read comes from there."""
    (workspace / "dir").mkdir()
    (workspace / "dir/secret.md").write_text("inside")
    (workspace / "link").symlink_to(outside)
    stop = threading.Event()

    def move(name: str, to: str) -> None:
        while True:
            try:
                (workspace / name).rename(workspace / to)
            except OSError:  # A write has just made a directory in the gap.
                shutil.rmtree(workspace / to, ignore_errors=True)
            else:
                return

    def swap() -> None:
        while not stop.is_set():
            for name, to in (("dir", "kept"), ("link", "dir"), ("dir", "link"), ("kept", "dir")):
                move(name, to)

    thread = threading.Thread(target=swap)
    thread.start()
    seen = set()
    try:
        for _ in range(500):
            try:
                with jail.open("dir/secret.md") as file:
                    seen.add(file.read())
                jail.write("dir/new.md", b"x")
            except PathError:
                pass
    finally:
        stop.set()
        thread.join()

    assert seen <= {b"inside"}
    assert _names(outside) == ["secret.md"]


def test_only_regular_files_count(jail: Workspace, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory, a pipe and a socket are refused without waiting for anybody."""
    (workspace / "dir").mkdir()
    os.mkfifo(workspace / "pipe")
    monkeypatch.chdir(workspace)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")

        for path in ("dir", ".", "pipe", "socket"):
            problem = jail.observe(path).problem
            assert problem.endswith("not a file")
            with pytest.raises(PathError, match="not a file"):
                jail.write(path, b"x")


def test_what_is_not_there_is_absent(jail: Workspace, workspace: Path) -> None:
    """A missing file or directory is told, a file in place of a directory too, and a workspace that is gone."""
    (workspace / "file").write_text("")

    assert jail.observe("a/b") == Observed("a/b", False)
    assert jail.observe("file") == Observed("file", True, 0, _sha(b""))
    assert jail.observe("file/x").problem == "Not a directory"
    assert jail.observe("n" * 300).problem == "File name too long"
    assert jail.observe("d/" * 200 + "f") == Observed("d/" * 200 + "f", False)
    with pytest.raises(PathError, match="more than 128 directories deep"):
        jail.write("d/" * 200 + "f", b"")
    assert Workspace(workspace / "gone").observe("x").problem == "the workspace itself is not there"


@pytest.mark.parametrize(("wanted", "stored"), [(NFC, NFD), (NFD, NFC)], ids=["NFC", "NFD"])
def test_a_twin_in_another_normal_form_is_absent_with_a_hint(
    wanted: str, stored: str, jail: Workspace, workspace: Path
) -> None:
    """A name composed of other characters is another file; the hint says so, for directories too (B110)."""
    (workspace / stored).write_text("x")
    seen = jail.observe(wanted)

    assert (seen.exists, seen.problem) == (False, "")
    assert "a file with the same normalised name exists" in seen.hint
    assert stored in seen.hint
    with pytest.raises(Missing, match="same normalised name"), jail.open(wanted):
        pass


def test_a_failed_write_leaves_the_old_file(
    jail: Workspace, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the new file cannot take its place, the old one is whole and nothing else is left."""
    (workspace / "a").write_text("old")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(PathError, match="No space left"):
        jail.write("a", b"new")

    assert [(p.name, p.read_text()) for p in workspace.iterdir()] == [("a", "old")]


def test_no_descriptor_stays_open(jail: Workspace, workspace: Path, outside: Path) -> None:
    """Whatever a path does, every directory opened on its way is closed again."""
    (workspace / "a").mkdir()
    (workspace / "a/l").symlink_to(outside)
    before = len(_names(Path("/proc/self/fd")))
    jail.write("a/b/c", b"x")
    for path in ("a/b/c", "a/x/y", "a/l/x", "a", "a/b/c/d"):
        jail.observe(path)
    entries(jail, depth=5)

    assert len(_names(Path("/proc/self/fd"))) == before


def test_a_listing_is_sorted_bounded_and_follows_no_link(
    jail: Workspace, workspace: Path, outside: Path
) -> None:
    """Directories are entered to the depth asked for, links are only named, some directories are never entered."""
    jail.write("b/c/deep.md", b"12")
    jail.write(".git/config", b"")
    (workspace / "a").symlink_to(outside)

    assert entries(jail, depth=2) == (
        (
            Entry(".git", Kind.DIRECTORY),
            Entry("a", Kind.LINK),
            Entry("b", Kind.DIRECTORY),
            Entry("b/c", Kind.DIRECTORY),
        ),
        False,
    )
    assert entries(jail, "b", depth=9)[0][-1] == Entry("c/deep.md", Kind.FILE, 2)
    assert entries(jail, depth=1, limit=2) == ((Entry(".git", Kind.DIRECTORY), Entry("a", Kind.LINK)), True)
    with pytest.raises(PathError, match="outside"):
        entries(jail, "a")
    with pytest.raises(Missing, match="no such directory"):
        entries(jail, "zzz")
