"""Which files a text names, and what a verification rests on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from goalmode.domain.work import StatePatch, WorkState, apply
from goalmode.tools import named
from goalmode.tools.builtin.checkpoint import verify
from goalmode.tools.named import files_named, hash_of, is_file, words
from goalmode.tools.paths import Workspace
from goalmode.tools.registry import ToolContext


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    for path in ("a.txt", "src/b.py", "报告.md", "c"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)
    (root / "out").symlink_to("/bin/true")
    return root


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("a.txt", ["a.txt"]),
        ("`cat a.txt` printed it; see src/b.py:12, and a.txt.", ["a.txt", "src/b.py"]),
        ('open("src/./b.py") <a.txt> [c]', ["src/b.py", "a.txt", "c"]),
        ("“a.txt”、《报告.md》。", ["a.txt", "报告.md"]),
        ("已写入a.txt并检查了src/b.py。", ["a.txt", "src/b.py"]),
        ("报告.md与a.txt", ["a.txt"]),
        ("用c写的，第2章见../x和/etc/passwd里", []),
        ("src out nothing.txt ../x /etc/passwd https://h/a.txt ~/a.txt \x00", []),
        ("", []),
    ],
)
def test_the_files_that_a_text_names(root: Path, text: str, paths: list[str]) -> None:
    """Files of the workspace in their clean form, each once, with their hashes; no directory, nothing outside."""
    jail = Workspace(root)

    assert files_named(jail, text) == tuple((path, hash_of(jail, path)) for path in paths)


def test_what_is_followed_is_bounded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many files of one text, of such a size, in so much of the text; the boundaries count."""
    jail = Workspace(root)
    monkeypatch.setattr(named, "MAX_NAMED", 2)
    monkeypatch.setattr(named, "MAX_FOLLOWED", len("a.txt"))

    assert [path for path, _ in files_named(jail, "a.txt src/b.py c 报告.md")] == ["a.txt", "c"]
    assert hash_of(jail, "src/b.py") is None
    assert is_file(jail, "src/b.py")
    assert list(words("x" * 501)) == []
    monkeypatch.setattr(named, "MAX_TEXT", 5)
    assert list(words("a.txt c")) == ["a.txt"]


@pytest.mark.anyio
async def test_a_verification_rests_on_the_files_that_it_and_its_item_name(
    context: ToolContext, root: Path
) -> None:
    """Their hashes are taken when it passes; a failed one rests on nothing."""
    work = apply(WorkState(), StatePatch(pending=("src/b.py parses",)), wakeup=1)
    context = replace(context, workspace=root, work=work)
    arguments = {"item": "W1", "outcome": "passed", "evidence": "a.txt says so"}

    passed = await verify.run(context, arguments)
    failed = await verify.run(context, {**arguments, "outcome": "failed"})

    jail = Workspace(root)
    assert passed.patch is not None
    assert failed.patch is not None
    assert passed.patch.rests_on == {"W1": tuple((p, hash_of(jail, p)) for p in ("src/b.py", "a.txt"))}
    assert failed.patch.rests_on == {}
