"""Rows B108 to B114: names with blanks and letters work, and no name leads out of the workspace."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest

from goalmode import ExitReason, GoalmodeError
from goalmode.testing import steps
from tests.acceptance.cli import Command
from tests.acceptance.processes import Children
from tests.acceptance.world import Provider, World, complete, mark, results, write

ESCAPES = [
    "../x",
    "a/../../x",
    "/etc/passwd",
    "~/x",
    "file:///etc/passwd",
    r"C:\x",
    r"\\srv\share\x",
    "a\x00b",
    "",
]


def test_names_with_blanks_and_other_letters(tmp_path: Path, provider: Provider, children: Children) -> None:
    """B108: workspace, store and deliverables with blanks: made, written, checked, shown, and never split."""
    workspace = tmp_path / "my wörk 空间"
    workspace.mkdir()
    store = tmp_path / "stätte mit blank" / "goals 1.sqlite"
    goalmode = Command(store, str(store), children)
    names = ["my report.md", "out dir/a b.csv"]
    options = [part for name in names for part in ("--deliverable", name)]
    goal = goalmode.new("Écris 报告", workspace, provider.url, *options, "--check", "test -s 'my report.md'")
    shell = steps.tool("shell", {"command": "mkdir -p 'out dir' && echo 1,2 > 'out dir/a b.csv'"})
    provider.script(write("my report.md", "text"), shell, complete())

    done = goalmode("run", goal, "--json")

    assert done.code == 0
    shown = goalmode.show(goal)
    assert [(d["path"], d["verified"]) for d in shown["deliverables"]] == [(name, True) for name in names]
    assert sorted(p.name for p in workspace.rglob("*")) == ["a b.csv", "my report.md", "out dir"]
    for command in ("show", "turns", "why", "context", "list"):
        assert goalmode(command, *([] if command == "list" else [goal])).code == 0


@pytest.mark.parametrize(("declared", "stored"), [("NFC", "NFD"), ("NFD", "NFC")])
def test_two_spellings_of_one_name(world: World, declared: str, stored: str) -> None:
    """B110: a file under the other normal form is missing, with a hint; command and library say the same."""
    name = "Übersicht–été.md"
    goal = world.goal(deliverables=[unicodedata.normalize(declared, name)], max_turns=2)  # type: ignore[arg-type]
    (world.workspace / unicodedata.normalize(stored, name)).write_text("text")  # type: ignore[arg-type]
    world.provider.script(complete(), mark())
    world.wake(goal)

    [seen] = world.inspect(goal)["deliverables"]
    told = results(world.provider.requests[1])[0]
    assert seen["exists"] or "same normalised name" in seen["hint"]
    assert seen["exists"] or "same normalised name" in told


def test_links_lead_nothing_out(world: World, tmp_path: Path) -> None:
    """B111: through a link to a file or directory outside nothing is written, and nothing outside is verified."""
    outside = tmp_path / "outside"
    outside.mkdir()
    secret = outside / "secret.md"
    secret.write_text("not yours")
    os.utime(secret, (1_000_000, 1_000_000))
    (world.workspace / "out.md").symlink_to(secret)
    (world.workspace / "d").symlink_to(outside)
    goal = world.goal(deliverables=["out.md", "d/new.md"], max_turns=7)
    edit = steps.tool("edit_file", {"path": "out.md", "old": "not yours", "new": "mine"})
    reads = steps.tool("read_file", {"path": "d/secret.md"})
    world.provider.script(
        write("out.md", "mine"), write("d/new.md", "mine"), edit, reads, complete(), mark(), mark()
    )

    ending = world.wake(goal)

    assert ending.reason is ExitReason.MAX_TURNS_EXCEEDED
    assert secret.read_text() == "not yours"
    assert secret.stat().st_mtime == 1_000_000
    assert list(outside.iterdir()) == [secret]
    assert world.outcomes()[:5] == ["failed"] * 4 + ["denied"]
    assert "not yours" not in "".join(results(world.provider.requests[-1]))
    for seen in world.inspect(goal)["deliverables"]:
        assert (seen["exists"], seen["verified_sha256"]) == (False, None)
        assert "outside the workspace" in seen["problem"]


def test_paths_that_lead_out_are_refused(world: World, goalmode: Command) -> None:
    """B113: by library, command and model: refused with the cause, and nothing said of what is outside."""
    options = ["--workspace", str(world.workspace), "--model", "openai:m"]
    for path in ESCAPES:
        with pytest.raises(GoalmodeError, match="deliverable"):
            world.goal(deliverables=[path])
        if "\x00" not in path:
            made = goalmode("new", "x", *options, "--deliverable", path)
            assert made.code == 2
            assert "deliverable" in made.line
    assert world.rows("SELECT count(*) FROM goals") == [(0,)]

    goal = world.goal(max_turns=3)
    writes = steps.tools([("write_file", {"path": path, "content": "x"}) for path in ESCAPES])
    saves = steps.tools([("update_working_checkpoint", {"deliverables": [path]}) for path in ESCAPES])
    world.provider.script(writes, saves, mark())
    world.wake(goal)

    answers = results(world.provider.requests[2])
    assert len(answers) == 2 * len(ESCAPES)
    assert world.outcomes() == ["failed"] * len(answers) + ["success"]
    assert not any("no such file" in answer.lower() for answer in answers)
    assert world.rows("SELECT count(*) FROM deliverables") == [(0,)]


def test_a_workspace_behind_links_is_no_escape(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B114: the workspace given through a link, or relative, and a link that stays inside: all verify."""
    (tmp_path / "link").symlink_to(world.workspace)
    (world.workspace / "real").mkdir()
    (world.workspace / "inner").symlink_to("real")
    monkeypatch.chdir(tmp_path)

    for workspace in (tmp_path / "link", Path("link"), Path("workspace")):
        goal = world.goal(deliverables=["a.txt", "inner/b.txt"], workspace=workspace)
        absolute = write(str(tmp_path / workspace / "a.txt"), "a")
        world.provider.script(absolute, write("inner/b.txt", "b"), complete())
        assert world.wake(goal).reason is ExitReason.CURRENT_TASK_DONE
        assert [d["verified"] for d in world.inspect(goal)["deliverables"]] == [True, True]
    assert (world.workspace / "inner").is_symlink()
