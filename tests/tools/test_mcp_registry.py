"""MCP servers as users install them, from the package registries: `make test-mcp` puts them into `.venv-mcp`."""

from __future__ import annotations

import base64
import os
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from goalmode.cli.main import call as goalmode
from goalmode.domain.calls import CallOutcome, Effect
from goalmode.domain.outside import Server
from goalmode.model import lint_anthropic
from goalmode.model.lint import lint
from goalmode.state.locks import LockGate, take_over
from goalmode.testing import Stub
from goalmode.testing.steps import tool
from goalmode.tools.mcp import Offer, Outside
from tests.tools.bench import Bench

HERE = Path(__file__).parents[2] / ".venv-mcp"
GIT, TIME = HERE / "bin" / "mcp-server-git", HERE / "bin" / "mcp-server-time"
FILES = HERE / "npm" / "node_modules" / ".bin" / "mcp-server-filesystem"

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.slow,
    pytest.mark.skipif(not FILES.exists(), reason="the servers are not installed: make test-mcp"),
]

OK, FAILED = CallOutcome.SUCCESS, CallOutcome.FAILED
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
TOGETHER = (
    Server("git", (str(GIT), "--repository", "."), start_seconds=120),
    Server("time", (str(TIME), "--local-timezone", "UTC"), start_seconds=120),
    Server("files", (str(FILES), "."), start_seconds=120),
)


@pytest.fixture
def repository(workspace: Path) -> Path:
    """The workspace as a git repository with one commit."""
    for command in (
        ("git", "init", "-q", "-b", "main"),
        ("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first"),
    ):
        subprocess.run(
            command, cwd=workspace, check=True, env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
        )
    return workspace


@pytest.fixture
def lock(tmp_path: Path) -> LockGate:
    return LockGate(tmp_path / "locks" / "1.1", 1, lambda: 1)


def outside(workspace: Path, *servers: Server) -> Outside:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": os.environ.get("HOME", "/"),
        "GIT_CONFIG_GLOBAL": os.devnull,
    }
    return Outside(servers, workspace, environment, lambda spec: 1, 1_000)


async def one(bench: Bench, offer: Offer, name: str, **arguments: Any) -> Any:
    done = await bench.run((name, arguments), extra=offer.tools)
    return done.records[0]


async def test_all_of_them_at_once(bench: Bench, repository: Path, lock: LockGate) -> None:
    """Three servers of two languages start at the same time; what they list is what every provider takes."""
    async with outside(repository, *TOGETHER).running(lock) as offer:
        told = [str(seen) for seen in offer.servers]
        specs = [t.spec for t in offer.tools]

    assert [line.partition(":")[0] for line in told] == [
        "MCP server git",
        "MCP server time",
        "MCP server files",
    ]
    assert {"mcp__git__git_status", "mcp__time__get_current_time", "mcp__files__read_text_file"} <= {
        spec.name for spec in specs
    }
    chat = [
        {
            "type": "function",
            "function": {"name": s.name, "description": s.description, "parameters": s.parameters},
        }
        for s in specs
    ]
    messages = [{"role": "user", "content": "x"}]
    named = [{"name": s.name, "description": s.description, "input_schema": s.parameters} for s in specs]
    assert lint(messages, chat) == []
    assert lint_anthropic.lint({"model": "m", "max_tokens": 9, "messages": messages, "tools": named}) == []


async def test_git(bench: Bench, repository: Path, lock: LockGate) -> None:
    """Its reads read, its writes write, its errors are failed calls."""
    async with outside(repository, TOGETHER[0]).running(lock) as offer:
        effects = {t.name: t.effect for t in offer.tools}
        (repository / "a.txt").write_text("hello\n")
        status = await one(bench, offer, "mcp__git__git_status", repo_path=str(repository))
        added = await one(bench, offer, "mcp__git__git_add", repo_path=str(repository), files=["a.txt"])
        staged = await one(bench, offer, "mcp__git__git_diff_staged", repo_path=str(repository))
        wrong = await one(bench, offer, "mcp__git__git_show", repo_path=str(repository), revision="no-such")
        away = await one(bench, offer, "mcp__git__git_status", repo_path="/")

    assert [r.outcome for r in (status, added, staged)] == [OK, OK, OK]
    assert "a.txt" in status.shown
    assert "hello" in staged.shown
    assert [r.outcome for r in (wrong, away)] == [FAILED, FAILED]
    assert effects["mcp__git__git_status"] is Effect.READ
    assert effects["mcp__git__git_commit"] is Effect.WRITE


async def test_time(bench: Bench, workspace: Path, lock: LockGate) -> None:
    """Its results are JSON, told once; a zone that does not exist is a failed call."""
    async with outside(workspace, TOGETHER[1]).running(lock) as offer:
        now = await one(bench, offer, "mcp__time__get_current_time", timezone="Asia/Tokyo")
        wrong = await one(bench, offer, "mcp__time__get_current_time", timezone="Moon/Sea")
        missing = await one(bench, offer, "mcp__time__get_current_time")

    assert (now.outcome, now.shown.count('"timezone": "Asia/Tokyo"')) == (OK, 1)
    assert (wrong.outcome, missing.outcome) == (FAILED, FAILED)


async def test_filesystem(bench: Bench, workspace: Path, lock: LockGate) -> None:
    """It writes in the workspace and nowhere else; a picture is a reference, its bytes stay out of the context."""
    (workspace / "pixel.png").write_bytes(PIXEL)
    async with outside(workspace, TOGETHER[2]).running(lock) as offer:
        effects = {t.name: t.effect for t in offer.tools}
        written = await one(
            bench, offer, "mcp__files__write_file", path=str(workspace / "b.txt"), content="written"
        )
        read = await one(bench, offer, "mcp__files__read_text_file", path=str(workspace / "b.txt"))
        picture = await one(bench, offer, "mcp__files__read_media_file", path=str(workspace / "pixel.png"))
        away = await one(bench, offer, "mcp__files__read_text_file", path="/etc/passwd")

    assert (workspace / "b.txt").read_text() == "written"
    assert (written.outcome, read.outcome, read.shown) == (OK, OK, "written")
    assert picture.shown.startswith(f"[image: image/png, {len(PIXEL)} bytes, sha256 ")
    assert base64.b64encode(PIXEL).decode() not in picture.shown + picture.body
    assert away.outcome is FAILED
    assert effects["mcp__files__read_text_file"] is Effect.READ
    assert effects["mcp__files__write_file"] is Effect.WRITE


async def test_none_of_them_outlives_the_wakeup(repository: Path, lock: LockGate, tmp_path: Path) -> None:
    """Ended, nothing holds the wakeup's lock any more: whoever comes next takes it at once."""
    async with outside(repository, *TOGETHER).running(lock) as offer:
        assert not offer.missing

    with take_over(tmp_path / "locks" / "1.1") as calls:
        assert calls == {"mcp:git", "mcp:time", "mcp:files"}


async def test_a_new_owner_ends_them(repository: Path, lock: LockGate, tmp_path: Path) -> None:
    """They hold the lock that whoever takes the goal over needs: it ends them, and has it."""
    made = outside(repository, *TOGETHER)
    async with made.running(lock):
        with take_over(tmp_path / "locks" / "1.1", os.getpid()) as calls:
            assert calls == {"mcp:git", "mcp:time", "mcp:files"}


def test_a_goal_from_the_command_line(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`new --mcp` and `run` against a strict provider: three servers, a call of each, a checked end."""
    monkeypatch.setenv("GOALMODE_STORE", str(tmp_path / "store" / "goals.sqlite"))
    steps = [
        tool("mcp__time__get_current_time", {"timezone": "UTC"}),
        tool("mcp__files__write_file", {"path": str(repository / "a.txt"), "content": "hello\n"}),
        tool("mcp__git__git_add", {"repo_path": str(repository), "files": ["a.txt"]}),
        tool("complete", {"status": "success", "summary": "a.txt is staged"}),
    ]
    with Stub(steps) as stub:
        mcp = [
            option
            for server in TOGETHER
            for option in ("--mcp", f"{server.name}={shlex.join(server.command)}")
        ]
        new = ["new", "Stage a.txt.", "--workspace", str(repository), "--deliverable", "a.txt", "-q"]
        assert goalmode([*new, "--model", "openai:m", "--base-url", stub.base_url, *mcp]) == 0
        uid = capsys.readouterr().out.strip()
        code = goalmode(["run", uid])
        said = capsys.readouterr()

        assert (code, said.err, stub.rejected) == (0, "", [])
    staged = subprocess.run(
        ("git", "diff", "--cached", "--name-only"), cwd=repository, capture_output=True, text=True, check=True
    )
    assert staged.stdout == "a.txt\n"
    assert [line for line in said.out.splitlines() if line.startswith("MCP server ")]
