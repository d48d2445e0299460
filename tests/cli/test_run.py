"""`run`, `wake` and `resume` against a real provider on loopback."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goalmode.configured import goal_profile
from goalmode.domain.exits import EXIT_FACTS, ExitReason
from goalmode.settings import Settings
from goalmode.state import goals
from goalmode.state.store import Store
from goalmode.testing import Stub
from goalmode.testing.steps import Completion, echo, status, text, tool
from goalmode.wiring import begin_wakeup
from tests import stores

Serve = Callable[..., Stub]

WRITE = tool("write_file", {"path": "a.txt", "content": "hello\n"})
DONE = tool("complete", {"status": "success", "summary": "a.txt is written", "evidence": ["a.txt"]})
LOOK = tool("shell", {"command": "date +%N"})
SAVE = tool("update_working_checkpoint", {"key_info": "half way", "summary": "s", "next_steps": ["go on"]})
ASK = tool(
    "complete",
    {
        "status": "needs_user_input",
        "summary": "stuck",
        "missing_info": "Which colour?",
        "why_no_default": "Only you know.",
    },
)


def test_run_to_a_checked_end(cli: Any, serve: Serve) -> None:
    """A goal runs to its end: exit code 0, nothing on standard error, the ending and the file are there."""
    stub = serve([WRITE, DONE])
    uid = cli.new("--deliverable", "a.txt", url=stub.base_url)
    done = cli("run", uid)

    assert (done.code, done.err, stub.rejected) == (0, "", [])
    assert done.out.splitlines()[-1].startswith(f"{uid}: CURRENT_TASK_DONE")
    assert (cli.workspace / "a.txt").read_text() == "hello\n"
    assert cli("show", uid, "--json").json["wakeups"][0]["exit_reason"] == "CURRENT_TASK_DONE"


def test_running_what_is_done_asks_nobody(cli: Any, serve: Serve) -> None:
    """Once a goal is done, `run` and `wake` exit 0 without a request (B08)."""
    stub = serve([WRITE, DONE])
    uid = cli.new(url=stub.base_url)
    cli("run", uid)

    assert [cli(command, uid).code for command in ("run", "wake")] == [0, 0]
    assert len(stub.requests) == 2


def test_run_goes_on_over_wakeups(cli: Any, serve: Serve) -> None:
    """A spent turn quota is followed by the next wakeup at once, until the goal is done (B19)."""
    stub = serve([LOOK, LOOK, SAVE, LOOK, WRITE, SAVE, DONE])
    uid = cli.new("--max-turns", "2", url=stub.base_url)
    done = cli("run", uid)
    wakeups = cli("show", uid, "--json").json["wakeups"]

    assert (done.code, done.err) == (0, "")
    assert [w["exit_reason"] for w in wakeups] == ["MAX_TURNS_EXCEEDED"] * 2 + ["CURRENT_TASK_DONE"]


def test_wake_wakes_exactly_once_and_says_how_to_go_on(cli: Any, serve: Serve) -> None:
    """One wakeup, then one line: reason, limit and value, the command to go on; also with --quiet (B06, B133)."""
    stub = serve([LOOK, LOOK, SAVE] * 2)
    uid = cli.new("--max-turns", "2", url=stub.base_url)
    done = cli("wake", uid)
    quiet = cli("wake", uid, "--quiet", "--store", cli.url)

    assert (done.code, quiet.code, quiet.out) == (10, 10, "")
    assert "MAX_TURNS_EXCEEDED" in done.line()
    assert "turn quota of the wakeup: 2, used 2" in done.line()
    assert done.line().endswith(f"to go on: goalmode run {uid}")
    assert quiet.line().endswith(f"to go on: goalmode run {uid} --store {cli.name}")
    assert cli("show", uid, "--json").json["status"] == "ACTIVE"


def test_wake_ignores_a_back_off_and_run_waits_for_it(cli: Any, serve: Serve) -> None:
    """A person who says `wake` is not put off; `run` is, and says when there is too much to wait for."""
    stub = serve([text("All done."), LOOK, SAVE])
    uid = cli.new("--max-recoveries", "0", "--max-turns", "1", url=stub.base_url)
    first = cli("wake", uid)
    waiting = cli("run", uid, "--max-wait", "1s")

    assert (first.code, waiting.code) == (12, 12)
    assert "not woken (not_due)" in waiting.line()
    assert len(stub.requests) == 1
    assert cli("wake", uid).code == 10


def test_json_is_one_event_a_line_and_the_last_closes(cli: Any, serve: Serve) -> None:
    """`--json` prints events with kind and time; the last is `wakeup_closed`, with the stored reason (B132)."""
    stub = serve([LOOK, SAVE, WRITE, DONE])
    uid = cli.new("--max-turns", "1", url=stub.base_url)
    once, rest = cli("wake", uid, "--json"), cli("run", uid, "--json")
    stored = [w["exit_reason"] for w in cli("show", uid, "--json").json["wakeups"]]

    assert (once.code, once.events[-1]["kind"]) == (10, "wakeup_closed")
    events = once.events + rest.events
    closed = [event["exit_reason"] for event in events if event["kind"] == "wakeup_closed"]
    assert closed == stored
    assert events[-1]["kind"] == "wakeup_closed"
    assert {"at", "kind", "goal"} <= set.intersection(*(set(event) for event in events))


def test_events_are_told_after_their_commit(cli: Any, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads `turn` or `wakeup_closed` finds it in the store."""
    stub = serve([WRITE, DONE])
    uid = cli.new(url=stub.base_url)
    seen: list[tuple[str, int, str | None]] = []

    def look(kind: str) -> None:
        [(turns, reason)] = stores.rows(cli.url, "SELECT turns, exit_reason FROM wakeups")
        seen.append((kind, turns, reason))

    def say_json(value: Any, **_: Any) -> None:
        if value["kind"] in ("turn", "wakeup_closed"):
            look(value["kind"])

    monkeypatch.setattr("goalmode.cli.progress.say_json", say_json)
    cli("run", uid, "--json")

    assert seen == [("turn", 1, None), ("turn", 2, None), ("wakeup_closed", 2, "CURRENT_TASK_DONE")]


def test_a_spent_budget_is_raised_by_resume(cli: Any, serve: Serve) -> None:
    """GOAL_BUDGET_EXHAUSTED names limit and value and the option that raises it; `+N` adds to it (B23, B133)."""
    stub = serve([LOOK, LOOK, SAVE, WRITE, DONE])
    uid = cli.new("--turn-budget", "3", url=stub.base_url)
    spent = cli("run", uid)
    again = cli("run", uid)
    raised = cli("resume", uid, "--turn-budget", "+2")
    goal = cli("show", uid, "--json").json

    assert (spent.code, again.code, raised.code) == (40, 40, 0)
    assert "turns limit 3, used" in spent.line()
    assert f"goalmode resume {uid} --turn-budget +N" in spent.line()
    assert f"goalmode resume {uid} --turn-budget +N" in again.line()
    assert (goal["limits"]["turns"], goal["spent"]["turns"]) == (5, 5)


def test_a_question_is_answered_by_resume(cli: Any, serve: Serve) -> None:
    """A waiting goal says what it waits for, refuses what is no answer, and goes on with one (B122, B124)."""
    stub = serve([LOOK, ASK, WRITE, DONE])
    uid = cli.new(url=stub.base_url)
    asked = cli("run", uid)
    assert asked.code == 30
    assert "Which colour?" in asked.line()
    assert f"goalmode answer {uid} TEXT" in asked.line()

    before = cli.rows()
    refused = [
        cli("resume", uid),
        cli("resume", uid, "--answer", " \n"),
        cli("resume", uid, "--answer", "x" * 1_000_000),
    ]
    assert [done.code for done in refused] == [1, 2, 2]
    assert [cli(command, uid).code for command in ("run", "wake")] == [30, 30]
    assert (cli.rows(), len(stub.requests)) == (before, 2)

    done = cli("resume", uid, "--answer", "青色, of course")
    assert done.code == 0
    assert "青色, of course" in json.dumps(stub.requests[2].body, ensure_ascii=False)


def test_pause_and_resume(cli: Any, serve: Serve) -> None:
    """A paused goal is not woken and exits like one that a user stopped, until it is resumed."""
    stub = serve([WRITE, DONE])
    uid = cli.new(url=stub.base_url)
    cli("pause", uid)
    skipped = cli("run", uid, "--json")

    assert (skipped.code, len(stub.requests)) == (130, 0)
    assert skipped.events[-1]["skipped"] == "paused"
    assert cli("resume", uid, "--no-run").code == 0
    assert cli("show", uid, "--json").json["status"] == "ACTIVE"
    assert cli("run", uid).code == 0


def test_an_aborted_goal_can_only_be_read(cli: Any) -> None:
    """After `abort` every command that would change or run the goal is refused, and reading is not."""
    uid = cli.new()
    cli("abort", uid)
    before = cli.rows()

    for command in (("resume", uid), ("pause", uid), ("abort", uid), ("edit", uid, "--require", "x")):
        refused = cli(*command)
        assert refused.code == 1
        assert "aborted" in refused.line()
    assert cli("run", uid).code == 130
    assert [cli(command, uid).code for command in ("show", "why", "turns")] == [0, 0, 0]
    assert cli.rows() == before


def test_delete_asks_and_fails_closed_without_a_terminal(cli: Any) -> None:
    """Without a terminal nothing is deleted, and the flag is named; with it the goal is gone (B128)."""
    uid = cli.new()
    refused = cli("delete", uid)

    assert refused.code == 2
    assert "--yes" in refused.line()
    assert cli("show", uid).code == 0
    assert cli("delete", uid, "--yes").code == 0
    assert cli("list", "--json").json == []


@pytest.mark.usefixtures("no_retries")
def test_a_wrong_key_blocks_the_goal(cli: Any, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """A 401 ends BACKEND_ERROR and blocks; nothing is asked again before a resume (B16 of keys)."""
    stub = serve([WRITE, DONE], key="right-key-0123456789")
    monkeypatch.setenv("MY_KEY", "wrong-key-0123456789")
    uid = cli.new("--api-key-env", "MY_KEY", url=stub.base_url)
    done = cli("run", uid)
    again = cli("run", uid)

    assert (done.code, again.code, len(stub.requests)) == (20, 20, 1)
    assert "AUTH (HTTP 401)" in done.line()
    assert done.line().endswith(f"to go on: goalmode resume {uid}")
    assert "not woken (blocked)" in again.line()
    monkeypatch.setenv("MY_KEY", "right-key-0123456789")
    assert cli("resume", uid).code == 0


@pytest.mark.usefixtures("no_retries")
def test_a_refused_connection_is_a_backend_error(cli: Any) -> None:
    """Nobody listens: BACKEND_ERROR, the goal stays active and is due later."""
    uid = cli.new()
    done = cli("wake", uid)
    goal = cli("show", uid, "--json").json

    assert done.code == 20
    assert "CONNECTION" in done.line()
    assert (goal["status"], goal["wake_reason"]) == ("ACTIVE", "back-off")


@pytest.mark.usefixtures("no_retries")
def test_no_key_is_ever_printed_or_stored(cli: Any, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that echoes the request gives nothing away: not in the store, not in any output (B115, B117)."""
    key = "canary-key-5b1f00d5b1f00d"
    monkeypatch.setenv("MY_KEY", key)
    monkeypatch.setenv("GOALMODE_DEBUG", "1")
    stub = serve([echo(422)])
    uid = cli.new("--api-key-env", "MY_KEY", url=stub.base_url)
    said = [cli("run", uid, "--json")] + [cli(c, uid, "--json") for c in ("show", "turns", "why", "context")]

    assert stub.requests[0].headers["authorization"] == f"Bearer {key}"
    assert [done for done in said if key in done.out + done.err] == []
    assert key not in cli.rows()
    assert [f for f in cli.store.parent.rglob("*") if f.is_file() and key.encode() in f.read_bytes()] == []
    assert "127.0.0.1" in said[0].err
    assert "422" in said[0].err


def test_the_tools_never_see_the_key(cli: Any, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shell's environment holds neither the provider's key nor goalmode's own settings."""
    monkeypatch.setenv("MY_KEY", "canary-key-5b1f00d5b1f00d")
    stub = serve([tool("shell", {"command": "env > env.txt"}), DONE])
    uid = cli.new("--api-key-env", "MY_KEY", url=stub.base_url)
    cli("wake", uid)

    environment = (cli.workspace / "env.txt").read_text()
    assert "canary" not in environment
    assert "GOALMODE_STORE" not in environment


def test_on_ending_is_told_of_each_ending(
    cli: Any, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command finds the ending in its environment, once for each wakeup, and no key."""
    monkeypatch.setenv("MY_KEY", "canary-key-5b1f00d5b1f00d")
    stub = serve([LOOK, SAVE, LOOK, SAVE])
    uid = cli.new("--max-turns", "1", "--api-key-env", "MY_KEY", "--turn-budget", "3", url=stub.base_url)
    done = cli(
        "run", uid, "--on-ending", f"env >> {tmp_path / 'endings'}; echo ---- >> {tmp_path / 'endings'}"
    )
    first, second, _ = (tmp_path / "endings").read_text().split("----\n")

    assert done.code == 40
    assert f"GOALMODE_GOAL={uid}" in first
    assert {"GOALMODE_EXIT_REASON=MAX_TURNS_EXCEEDED", "GOALMODE_WAKEUP=1", "GOALMODE_STATUS=ACTIVE"} <= set(
        first.split("\n")
    )
    assert {"GOALMODE_EXIT_REASON=GOAL_BUDGET_EXHAUSTED", "GOALMODE_STATUS=EXHAUSTED"} <= set(
        second.split("\n")
    )
    assert "canary" not in first + second


def test_a_failing_on_ending_is_a_warning(cli: Any, serve: Serve) -> None:
    """A hook that fails is told in a line and changes no exit code."""
    stub = serve([WRITE, DONE])
    uid = cli.new(url=stub.base_url)
    done = cli("run", uid, "--on-ending", "exit 3")

    assert done.code == 0
    assert "--on-ending exited with 3: exit 3" in done.line()


def test_a_goal_that_runs_elsewhere_is_left_to_it(cli: Any, serve: Serve) -> None:
    """The second process names the owner and its wakeup, asks nothing and changes no row (B48)."""
    stub = serve([WRITE, DONE])
    uid = cli.new(url=stub.base_url)
    with Store(cli.url) as store:
        goal = goals.find(store, uid)
        begin_wakeup(store, goal, profile=goal_profile(goal, Settings()))
        before = cli.rows()
        refused = [cli(command, uid) for command in ("run", "wake")]
        deleted = cli("delete", uid, "--yes")
        after = cli.rows()

    assert [done.code for done in (*refused, deleted)] == [1, 1, 1]
    assert store.owner.name in refused[0].line()
    assert "leased" in refused[0].line()
    assert (after, stub.requests) == (before, [])


def test_a_store_that_fails_in_the_middle_is_named(cli: Any, serve: Serve) -> None:
    """Where the store cannot be written any more: exit code 1, file and cause in one line, and no ending made up."""

    def rule(request: Any, number: int) -> Completion:
        cli.sql("ALTER TABLE turns RENAME TO gone")
        return WRITE

    uid = cli.new(url=serve(rule).base_url)
    done = cli("wake", uid, "--quiet")

    assert (done.code, done.out) == (1, "")
    assert cli.name in done.line()
    assert not (cli.workspace / "a.txt").exists()


def test_three_bad_endings_block_and_the_line_says_so(cli: Any, serve: Serve) -> None:
    """The third bad ending in a row blocks the goal; the way on is then a resume, not a run."""
    stub = serve([text("All done.")] * 4)
    uid = cli.new("--max-recoveries", "0", url=stub.base_url)
    codes = [cli("wake", uid) for _ in range(3)]

    assert [done.code for done in codes] == [12, 12, 12]
    assert codes[1].line().endswith(f"goalmode run {uid}")
    assert "the goal is BLOCKED" in codes[2].line()
    assert codes[2].line().endswith(f"goalmode resume {uid}")
    assert cli("run", uid).code == 12


@pytest.mark.usefixtures("no_retries")
@pytest.mark.parametrize(
    ("steps", "options", "reason"),
    [
        ([WRITE, DONE], (), ExitReason.CURRENT_TASK_DONE),
        ([LOOK, SAVE], ("--max-turns", "1"), ExitReason.MAX_TURNS_EXCEEDED),
        ([LOOK, tool("wait", {"seconds": 60, "reason": "a build"})], (), ExitReason.YIELDED),
        ([text("done")], ("--max-recoveries", "0"), ExitReason.EARLY_NO_TOOL),
        ([tool("frob", {})] * 5, (), ExitReason.NO_PROGRESS),
        ([text("x", finish="length")] * 3, (), ExitReason.OUTPUT_TRUNCATED),
        ([text("no", finish="content_filter")], (), ExitReason.MODEL_REFUSED),
        ([status(500, {"error": {"message": "down"}})], (), ExitReason.BACKEND_ERROR),
        ([ASK], (), ExitReason.NEEDS_USER_INPUT),
        ([], ("--turn-budget", "0"), ExitReason.GOAL_BUDGET_EXHAUSTED),
        ([], ("--context-tokens", "1000"), ExitReason.CONTEXT_OVERFLOW),
    ],
    ids=lambda value: str(value) if isinstance(value, ExitReason) else "",
)
def test_the_exit_code_is_the_facts_tables(
    cli: Any, serve: Serve, steps: list[Any], options: tuple[str, ...], reason: ExitReason
) -> None:
    """0 is success alone; every other ending has its own code and one line with its reason (B132)."""
    uid = cli.new(*options, url=serve(steps).base_url)
    done = cli("wake", uid, "--json")

    assert done.code == EXIT_FACTS[reason].exit_code
    assert done.events[-1]["exit_reason"] == reason
    assert cli("show", uid, "--json").json["wakeups"][-1]["exit_reason"] == reason
    assert done.err == "" if reason is ExitReason.CURRENT_TASK_DONE else reason in done.line()
