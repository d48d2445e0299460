"""`--mcp` and `[mcp.NAME]`: which servers a goal has, what is said of them, and goals that are run with them."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goalmode.cli import mcp_options
from goalmode.testing import Stub
from goalmode.testing.steps import tool
from tests.mcp_servers import script

Serve = Callable[..., Stub]

WRITE = tool("write_file", {"path": "a.txt", "content": "hello\n"})
DONE = tool("complete", {"status": "success", "summary": "a.txt is written", "evidence": ["a.txt"]})

HAND_OVER = """
declared = {"type": "object", "properties": {"status": {}, "session_id": {}}}
def answer(id, tool, arguments):
    told = {"status": "waiting_human", "action": "sign the lease", "wait_reason": "it is yours", "session_id": "s-9"}
    send(id, result={"content": [], "structuredContent": told})
old = send
def send(id, **reply):
    for one in reply.get("result", {}).get("tools", []):
        one["outputSchema"] = declared
    old(id, **reply)
"""


def said(stub: Stub, number: int) -> str:
    """The texts of one request, one a line."""
    return "\n".join(str(message.get("content")) for message in stub.requests[number].body["messages"])


def command(own: str = "") -> str:
    return shlex.join(script(own))


@pytest.fixture
def configured(cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Writes the user's goalmode.toml."""
    file = tmp_path / "goalmode.toml"
    monkeypatch.setenv("GOALMODE_CONFIG", str(file))
    file.write_text("")

    def write(text: str) -> None:
        file.write_text(text)

    return write


def test_a_goal_runs_with_the_tools_of_a_server(cli: Any, serve: Serve) -> None:
    """The server's tool is called, its result is told, and every request is one that a strict provider takes."""
    stub = serve([tool("mcp__script__do", {"n": 1}), WRITE, DONE])
    uid = cli.new("--deliverable", "a.txt", "--mcp", f"script={command()}", url=stub.base_url)

    done = cli("run", uid)

    assert (done.code, done.err, stub.rejected) == (0, "", [])
    assert "MCP server script: 1 tool\n" in done.out
    assert "mcp__script__do: success" in done.out
    assert "Its MCP servers ran as you, in no sandbox" in cli("why", uid).out
    assert 'do {"n": 1}' in said(stub, 1)


def test_a_tool_of_a_server_hands_over_to_a_person(cli: Any, serve: Serve) -> None:
    """The ending is WAITING_HUMAN, its exit code 31; the answer lets the goal go on."""
    stub = serve([tool("mcp__desk__do", {}), WRITE, DONE])
    uid = cli.new("--deliverable", "a.txt", "--mcp", f"desk={command(HAND_OVER)}", url=stub.base_url)

    done = cli("run", uid)

    assert done.code == 31
    assert "WAITING_HUMAN" in done.err
    [question] = cli("questions", "--json").json
    assert (question["text"], question["session_id"]) == ("sign the lease", "s-9")
    assert cli("answer", uid, "signed").code == 0
    assert cli("run", uid).code == 0


def test_a_server_that_is_not_there_ends_no_goal(cli: Any, serve: Serve, tmp_path: Path) -> None:
    """It was there when the goal was made: the run says what is missing, the model is told, and `why` says it too."""
    program = tmp_path / "server"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o755)
    stub = serve([WRITE, DONE])
    uid = cli.new("--deliverable", "a.txt", "--mcp", f"lost={program}", url=stub.base_url)
    program.unlink()

    done = cli("run", uid)

    line = f"MCP server lost: {program} cannot be started: No such file or directory"
    assert (done.code, stub.rejected) == (0, [])
    assert f"{line}; the wakeup goes on without its tools" in done.out
    assert line in said(stub, 0)
    assert line in cli("why", uid).out


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ("no such=x", "mcp: 'no such=x' is not valid: NAME=COMMAND, NAME=URL or NAME"),
        ("a__b=x", "letters, digits and single - or _ between them"),
        ("x" * 25 + "=cat", "at most 24"),
        (
            "git",
            "mcp: 'git' is not valid: NAME=COMMAND, or the name of a server of goalmode.toml; there is none",
        ),
        ("git=", "NAME=COMMAND or NAME=URL"),
        ("git='open", "a command line whose quotes are closed"),
        ("git=ftp://x/y", "an http or https address"),
        ("git=https://me:secret@x/y", "write one that has them into goalmode.toml"),
        ("git=no-such-program --flag", "a program that is there; no-such-program is not"),
        ("git=./no-such-program", "a program that is there"),
    ],
)
def test_what_is_no_server_is_refused_in_one_line(cli: Any, given: str, line: str) -> None:
    """Nothing is stored, the line names the option and what would be right, and the exit code is 2."""
    done = cli("new", "x", "--workspace", str(cli.workspace), "--model", "openai:m", "--mcp", given)

    assert done.code == 2
    assert line in done.line()
    assert cli.rows() == ""


def test_without_the_extra_the_option_says_how_to_install_it(
    cli: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line."""
    monkeypatch.setattr(mcp_options, "installed", lambda: False)
    done = cli("new", "x", "--workspace", str(cli.workspace), "--model", "openai:m", "--mcp", "a=cat")

    assert done.code == 2
    assert "pip install 'goalmode[mcp]'" in done.line()


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], ["one", "two"]),
        (["--mcp", "two"], ["two"]),
        (["--mcp", "two", "--mcp", f"three={command()}"], ["two", "three"]),
        (["--no-mcp"], []),
        (["--tools", "write_file,mcp__one__*"], ["one"]),
        (["--tools", "write_file"], []),
        (["--no-shell"], ["one", "two"]),
    ],
)
def test_a_goal_has_the_configured_servers_unless_it_says_otherwise(
    cli: Any, serve: Serve, configured: Callable[[str], None], options: list[str], expected: list[str]
) -> None:
    """`--mcp` names the only ones, `--no-mcp` none; a server none of whose tools is allowed is not started."""
    configured("".join(f"[mcp.{name}]\ncommand = {json.dumps(list(script()))}\n" for name in ("one", "two")))
    stub = serve([WRITE, DONE])
    uid = cli.new("--deliverable", "a.txt", *options, url=stub.base_url)

    done = cli("run", uid, "--json")

    assert (done.code, stub.rejected) == (0, [])
    assert [e["server"] for e in done.events if e["kind"] == "server"] == expected


def test_a_secret_of_a_servers_configuration_is_struck_out(
    cli: Any, serve: Serve, configured: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token comes out of the environment, reaches the server, and nothing else: no screen, no store, no model."""
    monkeypatch.setenv("TRACKER", "t0ps3cret-value")
    own = "def answer(id, tool, arguments):\n    send(id, result={'content': [{'type': 'text', 'text': TOKEN}]})"
    own = f"TOKEN = os.environ['TOKEN']\n{own}"
    configured(f"[mcp.own]\ncommand = {json.dumps(list(script(own)))}\nenv = {{ TOKEN = '${{TRACKER}}' }}\n")
    stub = serve([tool("mcp__own__do", {}), WRITE, DONE])
    uid = cli.new("--deliverable", "a.txt", url=stub.base_url)

    done = cli("run", uid)

    assert done.code == 0
    assert "[redacted]" in said(stub, 1)
    assert "t0ps3cret" not in done.out + done.err + cli.rows() + said(stub, 0) + said(stub, 1)


def test_a_variable_that_is_not_set_is_told(
    cli: Any, serve: Serve, configured: Callable[[str], None]
) -> None:
    """By the run and by `doctor`: the server is left out, the goal goes on."""
    configured(f"[mcp.own]\ncommand = {json.dumps(list(script()))}\nenv = {{ TOKEN = '${{NOWHERE}}' }}\n")
    stub = serve([WRITE, DONE])
    uid = cli.new("--deliverable", "a.txt", url=stub.base_url)

    done = cli("run", uid)

    assert done.code == 0
    assert "MCP server own: $NOWHERE is not set; its configuration needs it" in done.out
    assert "$NOWHERE is not set" in cli("doctor").out


def test_show_and_new_name_the_servers(cli: Any) -> None:
    """A goal's own are shown with their command; `new` says as whom they run."""
    done = cli(
        *("new", "x", "--workspace", str(cli.workspace), "--model", "openai:m"),
        *(
            "--base-url",
            "http://127.0.0.1:9/v1",
            "--mcp",
            "echo=cat -u",
            "--mcp",
            "far=https://x.example/mcp",
        ),
    )

    uid = done.out.strip()
    assert "Its MCP servers run as you while it is awake, in no sandbox: echo (cat -u)." in done.err
    shown = cli("show", uid).out
    assert "echo: cat -u" in shown
    assert "far: https://x.example/mcp" in shown


@pytest.mark.parametrize(
    ("name", "code"), [("mcp__git__*", 0), ("mcp__git__git_status", 0), ("mpc__git__git_status", 2)]
)
def test_movements_and_tools_may_name_tools_of_servers(cli: Any, name: str, code: int) -> None:
    """What servers will list is not known yet, so only what can be no tool's name is refused."""
    flow = Path("flow.toml")
    flow.write_text(f'[[movement]]\nname = "go"\ninstruction = "Go."\ntools = ["shell", "{name}"]\n')
    goal = ("new", "x", "--workspace", str(cli.workspace), "--model", "openai:m", "-q")
    address = ("--base-url", "http://127.0.0.1:9/v1")

    assert cli(*goal, *address, "--workflow", "flow.toml").code == code
    assert cli(*goal, *address, "--tools", f"shell,{name}").code == code


def test_edit_gives_a_goal_other_servers(cli: Any) -> None:
    """`edit --mcp` names the only ones from now on, `--no-mcp` none; other edits leave them alone."""
    uid = cli.new("--mcp", "echo=cat")

    def servers() -> Any:
        return cli("show", uid, "--json").json["settings"]["mcp"]

    assert cli("edit", uid, "--mcp", "other=cat -u").code == 0
    assert servers() == [{"name": "other", "address": "cat -u"}]
    assert cli("edit", uid, "--objective", "Else.").code == 0
    assert servers() == [{"name": "other", "address": "cat -u"}]
    assert cli("edit", uid, "--no-mcp").code == 0
    assert servers() == []
    assert cli("edit", uid, "--mcp", "a=nowhere-at-all").code == 2
    assert servers() == []


def test_a_workspaces_own_configuration_is_not_read(cli: Any, serve: Serve) -> None:
    """A file that the work could have written starts nothing."""
    planted = f"[mcp.planted]\ncommand = {json.dumps(['touch', str(cli.workspace / 'started')])}\n"
    for name in ("goalmode.toml", ".mcp.json", "mcp.json"):
        (cli.workspace / name).write_text(planted)
    stub = serve([WRITE, DONE])
    uid = cli.new("--deliverable", "a.txt", url=stub.base_url)

    assert cli("run", uid).code == 0
    assert not (cli.workspace / "started").exists()


@pytest.mark.parametrize("name", ["cat", "far"])
def test_doctor_looks_at_each_configured_server_and_starts_none(
    cli: Any, configured: Callable[[str], None], name: str
) -> None:
    """Its program is there or not; an address is shown by its host alone."""
    configured(
        '[mcp.cat]\ncommand = "cat"\n[mcp.gone]\ncommand = "no-such-program"\n'
        '[mcp.far]\nurl = "https://x.example/mcp?key=abcdefgh"\n'
    )
    told = cli("doctor").out

    assert f"mcp {name}" in told
    assert "no-such-program: there is no such program" in told
    assert "abcdefgh" not in told


def test_a_server_that_does_not_start_is_waited_for_in_vain_no_longer_than_configured(
    cli: Any, serve: Serve, configured: Callable[[str], None]
) -> None:
    """A server that answers nothing holds a wakeup up for its time limit, and no longer."""
    configured(f"[mcp.slow]\ncommand = {json.dumps(list(script('time.sleep(3600)')))}\nstart_seconds = 0.2\n")
    stub = serve([WRITE, DONE])
    uid = cli.new("--deliverable", "a.txt", url=stub.base_url)

    started = time.monotonic()
    done = cli("run", uid)

    assert done.code == 0
    assert "MCP server slow: did not answer within 0.2 s" in done.out
    assert time.monotonic() - started < 10
