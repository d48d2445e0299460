"""`serve`: what it prints, what it may be told, and goals of several models in one process."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from goalmode.cli import doctor, serving
from goalmode.state import reading
from goalmode.testing import Stub
from goalmode.testing.steps import tool
from tests.cli.conftest import CLI

Serve = Callable[..., Stub]

WRITE = tool("write_file", {"path": "a.txt", "content": "hello\n"})
DONE = tool("complete", {"status": "success", "summary": "a.txt is written", "evidence": ["a.txt"]})


@pytest.fixture(autouse=True)
def _fixed_sqlite(monkeypatch: pytest.MonkeyPatch) -> None:
    """A version without the bug that is warned about."""
    monkeypatch.setattr(reading, "SQLITE_VERSION", (3, 51, 3))


def said(out: str) -> list[str]:
    """The lines without their times."""
    return [line.split("  ", 1)[1] for line in out.splitlines()]


def test_what_is_due_is_woken_once(cli: CLI, serve: Serve) -> None:
    """One line an event, each with its time; exit code 0."""
    stub = serve([WRITE, DONE])
    goal, later = cli.new(url=stub.base_url), cli.new()
    cli("schedule", later, "--every", "1h")

    done = cli("serve", "--once")

    assert (done.code, done.err, stub.rejected) == (0, "", [])
    first, *lines, last = said(done.out)
    assert first.startswith("serving the goals of ")
    assert first.endswith(", up to 4 at once")
    assert lines[0] == f"{goal}: wakeup 1 begins (created)"
    assert lines[1].startswith(f"{goal}: wakeup 1 ended after 2 turns: CURRENT_TASK_DONE (a.txt is written")
    assert len(lines) == 2
    assert last == "stopped"
    assert done.out[:4].isdigit()


def test_events_for_machines(cli: CLI, serve: Serve) -> None:
    """Each line is one JSON value with its kind and its time."""
    stub = serve([WRITE, DONE])
    goal = cli.new(url=stub.base_url)

    events = cli("serve", "--once", "--json", "--concurrency", "2").events

    assert [event["kind"] for event in events] == ["serving", "claimed", "ended", "stopped"]
    assert all(event["at"][-6] in "+-" for event in events)
    assert events[0]["concurrency"] == 2
    assert (events[1]["goal"], events[1]["wakeup"]) == (goal, 1)
    assert (events[2]["exit_reason"], events[2]["turns"]) == ("CURRENT_TASK_DONE", 2)


def test_it_can_be_told_to_stop_as_soon_as_it_says_that_it_serves(
    cli: CLI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits for its first line and then sends SIGTERM finds a server that ends by itself, not a dead process."""
    before, handled, say = signal.getsignal(signal.SIGTERM), [], serving.say

    def says(line: str) -> None:
        handled.append(signal.getsignal(signal.SIGTERM) is not before)
        say(line)

    monkeypatch.setattr(serving, "say", says)

    assert cli("serve", "--once").code == 0
    assert handled[0]


def test_quiet_prints_nothing(cli: CLI, serve: Serve) -> None:
    """The work is done all the same."""
    goal = cli.new(url=serve([WRITE, DONE]).base_url)

    done = cli("serve", "--once", "--quiet")

    assert (done.code, done.out, done.err) == (0, "", "")
    assert cli("show", goal, "--json").json["status"] == "DONE"


def test_a_store_that_is_not_there_yet_is_made(cli: CLI) -> None:
    """A service may be started before the first goal."""
    done = cli("serve", "--once")

    assert done.code == 0
    assert cli("list").out == "There are no goals yet.\n"


def test_a_goal_without_a_key_is_passed_over(cli: CLI, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line says what is missing; others are woken; nothing of it is stored."""
    stub = serve([WRITE, DONE])
    keyless = cli.new(url="https://models.example/v1")
    goal = cli.new(url=stub.base_url)

    done = cli("serve", "--once", "--concurrency", "1")

    assert done.code == 0
    lines = said(done.out)
    assert (
        sum(f"{keyless}: not woken (BadInput): api-key-env: 'OPENAI_API_KEY'" in line for line in lines) == 1
    )
    assert cli("show", goal, "--json").json["status"] == "DONE"
    assert cli("show", keyless, "--json").json["wakeups"] == []


def test_a_broken_configuration_is_every_goals_trouble(cli: CLI) -> None:
    """It is told of each goal, and the server does not fall over it."""
    goals = [cli.new(), cli.new()]
    Path("broken.toml").write_text("[models\n")

    done = cli("serve", "--once", "--config", "broken.toml")

    assert done.code == 0
    for goal in goals:
        assert f"{goal}: not woken (ConfigError): broken.toml: not valid TOML" in done.out


def test_each_goal_has_its_own_model_and_no_key_leaks(
    cli: CLI, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two profiles with keys of their own: neither is stored, printed, or seen by the other server or by tools."""
    keys = {"ONE_KEY": "canary-one-1234567", "TWO_KEY": "canary-two-1234567"}
    for name, value in keys.items():
        monkeypatch.setenv(name, value)
    peek = tool("shell", {"command": "env; echo $ONE_KEY $TWO_KEY"})
    stubs = {name: serve([peek, WRITE, DONE], key=value) for name, value in keys.items()}
    profiles = "\n".join(
        f'[models.{name}]\nbase_url = "{stub.base_url}"\nname = "m"\napi_key_env = "{name}"'
        for name, stub in stubs.items()
    )
    Path("goalmode.toml").write_text(profiles)
    for name in stubs:
        made = cli("new", "x", "--workspace", "workspace", "--model", name, "--config", "goalmode.toml", "-q")
        assert made.code == 0, made.err

    done = cli("serve", "--once", "--concurrency", "1", "--config", "goalmode.toml", "--json")

    assert [event["exit_reason"] for event in done.events if event["kind"] == "ended"] == [
        "CURRENT_TASK_DONE"
    ] * 2
    everything = cli.rows() + done.out + done.err
    for stub in stubs.values():
        assert stub.rejected == []
        everything += "".join(json.dumps(json.loads(seen.raw)) for seen in stub.requests)
    for key in keys.values():
        assert key not in everything


def test_only_the_labels_it_serves(cli: CLI, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default this host's; with --label those alone, as many as are given."""
    stub = serve([WRITE, DONE])
    monkeypatch.setenv("GOALMODE_HOST_LABEL", "farm")
    goal = cli.new(url=stub.base_url)
    monkeypatch.delenv("GOALMODE_HOST_LABEL")

    cli("serve", "--once")
    cli("serve", "--once", "--label", "barn")
    assert cli("show", goal, "--json").json["wakeups"] == []
    done = cli("serve", "--once", "--label", "barn", "--label", "farm")

    assert "serving the goals of barn, farm as " in done.out
    assert cli("show", goal, "--json").json["status"] == "DONE"


@pytest.mark.sqlite
def test_sqlite_with_its_bug_is_warned_about(cli: CLI, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several writers are what a server is for."""
    monkeypatch.setattr(reading, "SQLITE_VERSION", (3, 40, 1))

    done = cli("serve", "--once")

    assert done.err.startswith("sqlite 3.40.1: has a rare bug")
    assert doctor.WAL_RESET_BUG[1] == (3, 51, 3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--poll", "0"], "poll: '0' is not valid: a time span from 0.1 to 3600 s"),
        (["--poll", "2h"], "poll: '2h' is not valid: a time span from 0.1 to 3600 s"),
        (["--grace", "-1"], "grace: '-1' is not valid"),
        (["--grace", "2d"], "grace: '2d' is not valid: a time span from 0 to 86400 s"),
        (["--concurrency", "0"], "Invalid value for '--concurrency'"),
        (["--concurrency", "1000"], "Invalid value for '--concurrency'"),
        (["--label", " "], "label: '' is not valid"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_bad_input_is_one_line(cli: CLI, options: list[str], said: str) -> None:
    """And no store is made."""
    done = cli("serve", "--once", *options)

    assert done.code == 2
    assert done.line().startswith(f"goalmode: {said}")
    assert cli.rows() == ""
