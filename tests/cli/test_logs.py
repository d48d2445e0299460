"""`--log-level` and `--log-json`: whose everything is that is logged, on standard error, without secrets."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest

from goalmode.cli.logs import to_stderr
from goalmode.loop.logs import logging_for
from goalmode.testing import Stub, steps
from goalmode.testing.steps import tool

Serve = Callable[..., Stub]

KEY = "canary-K3y-0123456789"


@pytest.fixture
def goal(cli: Any, serve: Serve) -> str:
    looks = [tool("shell", {"command": f"echo {n}"}) for n in range(4)]
    return str(cli.new("--max-turns", "1", url=serve(looks).base_url))


def records(err: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in err.splitlines() if line.startswith("{")]


def test_nothing_is_logged_unless_it_is_asked_for(cli: Any, goal: str) -> None:
    """Standard error has the one line about the ending."""
    cli("wake", goal).line()


def test_json_records_have_goal_and_wakeup(cli: Any, goal: str) -> None:
    """One object a line; at `info` the beginning and the end of a wakeup."""
    done = cli("wake", goal, "--log-json")
    found = records(done.err)

    assert [(r["message"], r["goal"], r["wakeup"], r["level"]) for r in found] == [
        ("wakeup_started", goal, 1, "info"),
        ("wakeup_closed", goal, 1, "info"),
    ]
    assert found[-1]["data"]["exit_reason"] == "MAX_TURNS_EXCEEDED"
    assert set(found[0]) == {"at", "level", "logger", "goal", "wakeup", "message", "data"}
    assert done.err.count("\n") == len(found) + 1


def test_debug_has_every_event_and_error_none(cli: Any, goal: str) -> None:
    """The level that is asked for, no more; the next command logs nothing again."""
    debug = [r["message"] for r in records(cli("wake", goal, "--log-json", "--log-level", "debug").err)]
    error = records(cli("wake", goal, "--log-json", "--log-level", "error").err)

    assert {"asking", "reply", "tool"} < set(debug)
    assert error == []
    cli("wake", goal).line()
    assert cli("wake", goal, "--log-level", "loud").code == 2


def test_text_is_one_line_a_record(cli: Any, goal: str) -> None:
    """Time, level, logger, goal and wakeup, message, data."""
    line = cli("wake", goal, "--log-level", "info").err.splitlines()[0]

    assert f" INFO    goalmode.wakeup {goal}.1: wakeup_started context_tokens=" in line


@pytest.mark.usefixtures("no_retries")
def test_a_bad_ending_is_a_warning(cli: Any, serve: Serve) -> None:
    """What needs somebody's eyes is above `info`."""
    uid = cli.new(url=serve([steps.status(500, {"error": {"message": "no"}})]).base_url)

    [closed] = records(cli("wake", uid, "--log-json", "--log-level", "warning").err)

    assert (closed["level"], closed["data"]["exit_reason"]) == ("warning", "BACKEND_ERROR")


def test_serve_logs_too(cli: Any, goal: str) -> None:
    """What the server says, and what its wakeups do."""
    found = records(cli("serve", "--once", "-q", "--log-json").err)

    assert {("goalmode.serve", "serving"), ("goalmode.wakeup", "wakeup_closed")} <= {
        (r["logger"], r["message"]) for r in found
    }
    assert {r["goal"] for r in found if r["logger"] == "goalmode.wakeup"} == {goal}


def test_secrets_and_control_characters_are_not_logged(
    cli: Any, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B115: not the key, not in what a tool printed, not in a traceback; nothing that a terminal obeys."""
    monkeypatch.setenv("MY_KEY", KEY)
    monkeypatch.setattr("goalmode.orchestrator.wake.Wake.outcome", lambda *_: 1 / 0 if KEY else None)
    look = tool("shell", {"command": f"echo {KEY} \x1b[31m\u202e; exit 1"})
    uid = cli.new("--api-key-env", "MY_KEY", url=serve([look, look], key=KEY).base_url)
    for options in (("--log-json",), ()):
        err = cli("wake", uid, "--log-level", "debug", *options, traceback=True).err
        cli("resume", uid, "--no-run")
        assert "goalmode.wakeup" in err
        assert KEY not in err
        assert not {"\x1b", "\u202e"} & set(err)


def test_libraries_are_logged_with_the_wakeup_they_work_for(capsys: pytest.CaptureFixture[str]) -> None:
    """Their warnings, with goal and wakeup; a traceback without the values of variables; not their chatter."""
    log = logging.getLogger("some.library")
    with to_stderr("debug", json=True):
        with logging_for("abc", 3):
            log.info("chatter")
            log.warning("slow: %s", "https://user:canary-pw@host/")
        try:
            secret = KEY
            raise ValueError("broken")
        except ValueError:
            log.exception("failed")
        del secret
    log.warning("afterwards")
    first, second = records(capsys.readouterr().err)

    assert (first["goal"], first["wakeup"], first["message"]) == ("abc", 3, "slow: https://[redacted]@host/")
    assert (second["goal"], second["wakeup"]) == (None, None)
    assert "ValueError: broken" in second["exception"]
    assert KEY not in second["exception"].replace("secret = KEY", "")


def test_a_log_that_nobody_reads_changes_no_run(cli: Any, goal: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed pipe loses the log, not the work."""

    def closed(*_: Any) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("goalmode.cli.logs.remark_json", closed)

    assert cli("wake", goal, "--log-json").code == 10
