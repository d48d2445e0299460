"""What MCP servers are given to identify themselves with: theirs alone, and nowhere to be seen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goalmode.inspection.show import show
from goalmode.inspection.turns import turns
from goalmode.inspection.why import why
from goalmode.state import goals
from goalmode.state.store import Store
from goalmode.testing import Stub
from goalmode.testing.steps import tool
from tests.mcp_servers import script

Serve = Callable[..., Stub]

CANARY = "t0ps3cret-value"
WRITE = tool("write_file", {"path": "a.txt", "content": "hello\n"})
DONE = tool("complete", {"status": "success", "summary": "a.txt is written", "evidence": ["a.txt"]})

TELLS = """
def answer(id, tool, arguments):
    told = json.dumps({name: os.environ.get(name) for name in ("TOKEN", "TRACKER")})
    send(id, result={"content": [{"type": "text", "text": told}]})
"""


@pytest.fixture(autouse=True)
def configured(cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two servers, one of which is given a token; and a model without a key, as local ones are."""
    command = json.dumps(list(script(TELLS)))
    file = tmp_path / "goalmode.toml"
    file.write_text(
        f"[mcp.own]\ncommand = {command}\nenv = {{ TOKEN = '${{TRACKER}}' }}\n"
        f"[mcp.other]\ncommand = {command}\n"
        '[models.local]\nbase_url = "http://127.0.0.1:9/v1"\nname = "m"\n'
    )
    monkeypatch.setenv("GOALMODE_CONFIG", str(file))
    monkeypatch.setenv("TRACKER", CANARY)
    return file


def stored(cli: Any, uid: str) -> str:
    """All that is kept of a goal, read by somebody who knows of no secret: much of it is compressed."""
    with Store(cli.url, readonly=True) as store:
        goal = goals.find(store, uid)
        return str([show(store, goal.id), turns(store, goal, full=True), why(store, goal.id)])


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("--token=abc123", "the value of --token is one"),
        ("--token abc123", "the value of --token is one"),
        ("TRACKER_TOKEN=abc123", "the value of TRACKER_TOKEN is one"),
        ("sh -c 'exec API_KEY=abc123 server'", "the value of API_KEY is one"),
        ("postgresql://me:abc123@host/db", "an argument is one"),
        ("--header 'Authorization: Bearer abc123'", "an argument is one"),
        ("--name sk-abc1230123456789", "an argument is one"),
        (f"--name {CANARY}", "an argument is one"),
    ],
)
def test_a_credential_in_a_command_is_refused_unseen(cli: Any, arguments: str, named: str) -> None:
    """A command is stored as it is written: the line says where a credential belongs, for `edit` as for `new`."""
    choice = f"tracker=cat {arguments}"

    done = cli("new", "x", "--workspace", str(cli.workspace), "--model", "openai:m", "--mcp", choice)
    assert done.code == 2
    assert "mcp: 'tracker' is not valid: a command without credentials" in done.line()
    assert (
        f'{named}; write [mcp.tracker] into goalmode.toml, with env = {{ NAME = "${{NAME}}" }}' in done.line()
    )
    assert "abc123" not in done.err
    assert CANARY not in done.err
    assert cli.rows() == ""

    uid = cli.new()
    assert cli("edit", uid, "--mcp", choice).code == 2
    assert "abc123" not in stored(cli, uid)


@pytest.mark.parametrize(
    "arguments",
    [
        "--token=short",
        "--token=",
        "--max-tokens=abc123",
        "--token-limit=100000",
        "--token-env=TRACKER_TOKEN",
        "--key-file=server.pem",
        "--credentials ./me.json",
        "--token --verbose",
        "--token=${TRACKER}",
        "--repository ~/secrets/abc123",
        "KEYBOARD=abc123",
    ],
)
def test_what_only_sounds_like_one_is_taken(cli: Any, arguments: str) -> None:
    """A number, a path, a variable's name, a short word."""
    assert cli.new("--mcp", f"tracker=cat {arguments}")


def told(stub: Stub, number: int) -> str:
    """The result of the call before a request, as the model sees it."""
    return str(stub.requests[number].body["messages"][-1]["content"])


@pytest.mark.parametrize("command", [["run"], ["serve", "--once"]], ids=lambda command: command[0])
def test_a_token_is_struck_out_whoever_wakes_the_goal(cli: Any, serve: Serve, command: list[str]) -> None:
    """What the server itself says of it reaches no store, no screen and no model; a server forgets nothing either."""
    said = tool("shell", {"command": f"cat log # {CANARY}"})  # What a model says itself is stored too.
    stub = serve([tool("mcp__own__do", {}), said, WRITE, DONE])
    (cli.workspace / "log").write_text(f"the token is {CANARY}\n")
    uid = cli.new("--deliverable", "a.txt", url=stub.base_url)

    done = cli(*command, *([uid] if command == ["run"] else []))

    assert done.code == 0
    assert '{"TOKEN": "[redacted]", "TRACKER": null}' in told(stub, 1)
    assert "the token is [redacted]" in told(stub, 2)
    assert CANARY not in stored(cli, uid) + done.out + done.err


def test_a_check_outside_of_a_wakeup_stores_no_token(cli: Any) -> None:
    """`goalmode check`: what a check prints is stored and shown without it."""
    (cli.workspace / "log").write_text(f"the token is {CANARY}\n")
    uid = cli.new("--check", "cat log; exit 1")

    done = cli("check", uid)

    assert done.code == 1
    assert "the token is [redacted]" in done.out
    assert CANARY not in stored(cli, uid) + done.out + done.err
    assert "the token is [redacted]" in stored(cli, uid)


def test_tools_checks_and_other_servers_are_not_given_it(cli: Any, serve: Serve) -> None:
    """As with models' keys: the variable is there for the server whose configuration names it, and for nobody else."""
    look = tool("shell", {"command": 'test -z "$TRACKER" && echo it is not here'})
    stub = serve([look, tool("mcp__other__do", {}), WRITE, DONE])
    uid = cli.new("--deliverable", "a.txt", "--check", 'test -z "$TRACKER"', url=stub.base_url)

    assert [check["holds"] for check in cli("check", uid, "--json").json["checks"]][:1] == [True]
    assert cli("run", uid).code == 0
    assert "it is not here" in told(stub, 1)
    assert '{"TOKEN": null, "TRACKER": null}' in told(stub, 2)
