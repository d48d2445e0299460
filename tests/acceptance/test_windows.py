"""Rows B69, B134, B136: no encoding of a console or a locale stops a command or spoils what is stored."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from goalmode.testing import steps
from tests.acceptance.cli import Command
from tests.acceptance.processes import Children
from tests.acceptance.test_output_format import MANY, reading
from tests.acceptance.world import Provider, complete, mark

TEXT = "Prüfe ✓ 报告 😀 and Ωmega"
C_LOCALE = {"LC_ALL": "C", "LANG": "C"}
NO_UTF8 = {**C_LOCALE, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["cp1252", "ascii"])
def test_a_console_that_lacks_the_letters(
    goalmode: Command, workspace: Path, provider: Provider, children: Children, tmp_path: Path, encoding: str
) -> None:
    """B134: every command and every help works on a strict legacy console; text degrades, codes are as usual."""
    goal = goalmode.new(TEXT, workspace, provider.url, "--deliverable", "报告.md", "--max-turns", "2")
    provider.script(mark(TEXT, word="✓"), mark(TEXT, word="😀"), then=mark())
    goalmode("wake", goal)
    provider.script(steps.text("好的"), complete(TEXT), then=mark())
    run = [
        ["wake", goal],
        ["wake", goal, "--json"],
        ["edit", goal, "--objective", f"{TEXT} neu"],
        ["pause", goal],
    ]
    lines = [
        line if "--help" in line else [line[0], "--store", goalmode.url, *line[1:]]
        for line in [*reading(goal), *run, ["show", "没有"], ["delete", goal]]
    ]
    (tmp_path / "many.json").write_text(json.dumps([({}, line) for line in lines]))
    child = children.start(
        [sys.executable, str(MANY), str(tmp_path / "many.json")],
        **C_LOCALE,
        PYTHONIOENCODING=f"{encoding}:strict",
    )

    assert child.ended() == 0
    codes = [int(code) for code in re.findall(r"^=== \d+ (\d+) ===$", child.out, re.MULTILINE)]
    assert len(codes) == len(lines)
    assert "codec can't" not in child.out + child.err
    assert "Traceback" not in child.err
    count = len(reading(goal))
    assert set(codes[:count]) == {0}
    assert codes[count:] == [10, 10, 0, 0, 1, 2]
    texts = re.split(r"\n=== \d+ \d+ ===\n", child.out)
    told = [line for line, text in zip(lines, texts, strict=False) if not text.isascii()]
    if encoding == "ascii":
        # `context` prints exactly the bytes that the model saw, whatever the console.
        assert {line[0] for line in told} == {"context"}


def test_a_locale_without_letters(goalmode: Command, workspace: Path, provider: Provider) -> None:
    """B136: under a plain C locale what tools print and the model saves is stored and shown exactly."""
    goal = goalmode.new(TEXT, workspace, provider.url, "--deliverable", "报告.md")
    write = steps.tool("shell", {"command": f"echo '{TEXT}' | tee 报告.md"})
    note = steps.tool("update_working_checkpoint", {"key_info": TEXT, "done": [TEXT]})
    provider.script(write, note, complete(TEXT))

    done = goalmode.process("run", goal, **NO_UTF8)

    assert done.code == 0, done.err
    assert (workspace / "报告.md").read_text("utf-8") == f"{TEXT}\n"
    seen = goalmode.show(goal)
    assert seen["objective"] == seen["checkpoint"]["key_info"] == seen["work_items"][0]["text"] == TEXT
    assert TEXT in provider.told(2)


@pytest.mark.parametrize("way", ["argument", "file", "stdin"])
def test_bytes_that_are_no_text(goalmode: Command, workspace: Path, tmp_path: Path, way: str) -> None:
    """B69: an objective with invalid UTF-8 is refused in one line, in any locale, before any row is written."""
    raw = b"Write \xff\xfe the report."
    (tmp_path / "brief.txt").write_bytes(raw)
    options = ["--workspace", str(workspace), "--model", "openai:stub"]
    if way == "argument":
        made = goalmode.process("new", raw, *options, **C_LOCALE)
    else:
        made = goalmode("new", f"@{tmp_path / 'brief.txt'}" if way == "file" else "-", *options, stdin=raw)

    assert made.code == 2
    assert "UTF-8" in made.line
    assert not goalmode.store.exists()
