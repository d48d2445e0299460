"""The commands that look: they change nothing, and show what is, not what a dead process left behind."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import anyio
import pytest

from goalmode.configured import goal_profile
from goalmode.orchestrator.wake import Wake
from goalmode.settings import Settings
from goalmode.state import goals
from goalmode.state.owner import Owner
from goalmode.state.store import Store
from goalmode.testing import ScriptedModel, Stub, call
from goalmode.testing.steps import text, tool
from goalmode.wiring import begin_wakeup, run_wakeup

Serve = Callable[..., Stub]

LOOKS = (
    ("list",),
    ("show", "ID"),
    ("turns", "ID", "--full"),
    ("context", "ID"),
    ("context", "ID", "--next"),
    ("why", "ID"),
    ("doctor",),
)


class Died(BaseException):
    """Stands for the end of a process."""


@contextmanager
def begun(cli: Any, uid: str, **of_owner: Any) -> Iterator[Wake]:
    """A wakeup whose process lives as long as the block, or is another one."""
    owner = replace(Owner.current(), **of_owner) if of_owner else None
    with Store(cli.url, owner=owner) as store:
        goal = goals.find(store, uid)
        wake = begin_wakeup(store, goal, profile=goal_profile(goal, Settings()))
        assert isinstance(wake, Wake)
        try:
            yield wake
        finally:
            wake.let_go()


def die_in_a_tool(cli: Any, uid: str) -> None:
    """Leave what a process leaves that is killed in the first of two tool calls."""
    dead = {"pid": os.getpid(), "pid_start": "1"}
    with begun(cli, uid, **dead) as wake:

        def killed(event: Any) -> None:
            if event.kind == "tool_started":
                with wake.gate.enter("call_1"):
                    raise Died

        asks = replace(
            call("shell", command="echo 1"), calls=(*call("shell").calls, *call("read_file").calls)
        )
        with pytest.raises((Died, BaseExceptionGroup)):
            anyio.run(lambda: run_wakeup(wake, ScriptedModel([asks]), sink=killed))


@pytest.fixture
def worked(cli: Any, serve: Serve) -> str:
    """A goal with some history, paused."""
    steps = [
        tool("shell", {"command": "echo 中文 ✓ > 报告.md"}, text="All done, 收口。"),
        tool(
            "update_working_checkpoint",
            {"key_info": "All done.", "pending": ["look again"], "done": ["报告"]},
        ),
        tool("complete", {"status": "success", "summary": "done"}),
    ]
    uid = cli.new(
        "--deliverable",
        "报告.md",
        "--check",
        "test -s 报告.md",
        "--max-turns",
        "3",
        url=serve(steps).base_url,
    )
    assert cli("wake", uid).code == 10
    return str(uid)


@pytest.mark.parametrize("options", [(), ("--json",)], ids=["text", "json"])
def test_looking_changes_nothing(cli: Any, worked: str, options: tuple[str, ...]) -> None:
    """Neither the file nor a row is different after all reading commands, and nobody is asked (B16)."""
    before = cli.state()
    for command in LOOKS:
        done = cli(*(worked if part == "ID" else part for part in command), *options)
        assert (done.code, done.err, bool(done.out)) == (0, "", True)
        assert not options or done.json

    assert cli.state() == before


def test_show_has_what_other_programs_rely_on(cli: Any, worked: str) -> None:
    """The fields of the contract, with the workspace as it is now."""
    goal = cli("show", worked, "--json").json

    fields = (
        "id status status_reason objective objective_revision policy movement next_wakeup_at limits spent "
    )
    fields += "requirements deliverables work_items wakeups"
    assert set(fields.split()) <= set(goal)
    assert set(goal["limits"]) == {
        "turns",
        "wakeups",
        "tokens",
        "active_seconds",
        "deadline",
        "cost_micro",
    }
    spent = "turns wakeups tokens input_tokens cached_input_tokens output_tokens active_seconds"
    assert set(spent.split()) <= set(goal["spent"])
    assert {"id", "text", "check", "status"} <= set(goal["requirements"][0])
    assert {"path", "exists", "sha256", "verified_sha256"} <= set(goal["deliverables"][0])
    assert {"kind", "text", "status"} <= set(goal["work_items"][0])
    wakeup = "seq exit_reason exit_detail turns tokens recoveries context_tokens context_sha256 completion_phrases "
    assert set((wakeup + "started_at ended_at").split()) <= set(goal["wakeups"][0])
    assert goal["deliverables"][0]["exists"] is True
    assert goal["spent"]["turns"] == goal["wakeups"][0]["turns"] == 3


def test_totals_are_the_sum_of_the_turns(cli: Any, worked: str) -> None:
    """One formula everywhere: the goal's tokens are those of its turns (B27)."""
    goal, turns = cli("show", worked, "--json").json, cli("turns", worked, "--json").json

    assert goal["spent"]["tokens"] == sum(turn["usage"]["tokens"] for turn in turns)
    assert goal["spent"]["tokens"] == sum(wakeup["tokens"] for wakeup in goal["wakeups"])


def test_turns_list_every_call(cli: Any, worked: str) -> None:
    """Each model call with purpose, ending and cost, and each tool call with what became of it."""
    turns = cli("turns", worked, "--json").json

    assert {"wakeup", "seq", "purpose", "stop_reason", "stop_raw", "usage", "calls"} <= set(turns[0])
    shell = turns[0]["calls"][0]
    assert {"call_id", "tool", "effect", "outcome", "exit_code", "brief", "milliseconds"} <= set(shell)
    assert (shell["tool"], shell["effect"], shell["outcome"], shell["exit_code"]) == (
        "shell",
        "write",
        "success",
        0,
    )
    assert [turn["calls"][0]["outcome"] for turn in turns] == ["success", "success", "denied"]
    assert "text" not in turns[0]
    assert cli("turns", worked, "--full", "--json").json[0]["text"] == "All done, 收口。"
    assert cli("turns", worked, "--wakeup", "7", "--json").json == []


def test_context_is_exactly_what_the_model_saw(cli: Any, serve: Serve) -> None:
    """The printed bytes are those of the first request's messages, and their hash is the stored one."""
    stub = serve([text("x")])
    uid = cli.new("--max-recoveries", "0", objective="写 {{ 7*7 }} ✓", url=stub.base_url)
    cli("wake", uid)
    printed = cli("context", uid, "--wakeup", "1").out
    stored = cli("context", uid, "--json").json
    sent = "\n\n".join(m["content"] for m in stub.requests[0].body["messages"])

    assert printed == sent.rstrip("\n") + "\n"
    assert printed == stored["text"]
    assert stored["sha256"] == cli("show", uid, "--json").json["wakeups"][0]["context_sha256"]
    assert "objective" in [section["name"] for section in stored["sections"]]


def test_the_next_context_is_what_the_next_wakeup_gets(cli: Any, worked: str, serve: Serve) -> None:
    """`context --next` shows the state as it is, without the closing prose that was said or saved."""
    shown = cli("context", worked, "--next").out

    assert "收口" not in shown
    assert "All done" not in shown
    assert "look again" in shown
    assert cli("context", worked, "--next", "--json").json["wakeup"] == 2


def test_a_context_that_is_not_there_is_said(cli: Any, worked: str) -> None:
    """A wakeup that never was, and two choices at once, are usage errors."""
    assert "1 to 1" in cli("context", worked, "--wakeup", "2").line()
    assert cli("context", worked, "--wakeup", "1", "--next").code == 2
    assert "--next" in cli("context", cli.new()).line()


def test_a_dead_process_is_shown_as_interrupted(cli: Any) -> None:
    """Nothing is "running" whose process is gone: wakeup and calls are shown as recovery will store them (B43)."""
    uid = cli.new()
    die_in_a_tool(cli, uid)
    before = cli.rows()
    goal, [row], why = (cli(*c, "--json").json for c in (("show", uid), ("list",), ("why", uid)))
    calls = cli("turns", uid, "--json").json[0]["calls"]

    assert (goal["running"], goal["wakeups"][0]["running"]) == (False, False)
    assert goal["wakeups"][0]["exit_reason"] == row["last_exit_reason"] == "INTERRUPTED"
    assert (row["running"], row["status"]) == (False, "ACTIVE")
    assert why["skip"] is None
    assert [c["outcome"] for c in calls] == ["interrupted", "skipped"]
    assert "INTERRUPTED" in cli("show", uid).out
    assert cli.rows() == before


def test_what_recovery_stores_is_what_was_shown(cli: Any, serve: Serve) -> None:
    """The next wakeup closes the dead one just so, and goes on at once (B41)."""
    stub = serve([text("x")])
    uid = cli.new("--max-recoveries", "0", url=stub.base_url)
    die_in_a_tool(cli, uid)
    shown = cli("turns", uid, "--json").json[0]["calls"]
    cli("wake", uid)

    assert cli("turns", uid, "--json").json[0]["calls"] == shown
    reasons = [w["exit_reason"] for w in cli("show", uid, "--json").json["wakeups"]]
    assert reasons == ["INTERRUPTED", "EARLY_NO_TOOL"]


def test_a_stop_that_a_dead_process_did_not_see_is_shown(cli: Any) -> None:
    """A goal that was told to pause before its process died counts as paused: nothing would wake it."""
    uid = cli.new()
    die_in_a_tool(cli, uid)
    cli.sql("UPDATE goals SET control='pause'")
    why = cli("why", uid, "--json").json

    assert (why["status"], why["skip"]["reason"]) == ("PAUSED", "paused")
    assert cli("list", "--json").json[0]["status"] == "PAUSED"
    assert cli("run", uid).code == 130


def test_a_live_process_is_shown_as_running(cli: Any) -> None:
    """A wakeup that runs is shown with its owner, everywhere."""
    uid = cli.new()
    with begun(cli, uid) as wake:
        goal, [row], why = (cli(*c, "--json").json for c in (("show", uid), ("list",), ("why", uid)))
        texts = [cli(*c).out for c in (("show", uid), ("list",), ("why", uid))]

    owner = Owner.current().name
    assert wake.seq == 1
    assert (goal["running"], goal["owner"], row["running"], why["running"]) == (True, owner, True, True)
    assert goal["wakeups"][0]["exit_reason"] is None
    assert why["skip"]["reason"] == "leased"
    assert all("run" in text for text in texts)


def test_a_streak_is_told_with_its_wakeups(cli: Any, serve: Serve) -> None:
    """Each with its ending, its turns, and what came of it; the text and --json say the same."""
    stub = serve([text("All done.")])
    uid = cli.new("--max-recoveries", "0", url=stub.base_url)
    cli("wake", uid)

    told = cli("why", uid).out
    [stuck] = cli("why", uid, "--json").json["streak_wakeups"]

    assert "Bad endings in a row: 1 of 3 allowed." in told
    assert "wakeup 1: EARLY_NO_TOOL after 1 turn, 0 signs of progress: no tool call at turn 1" in told
    assert (stuck["wakeup"], stuck["exit_reason"], stuck["turns"], stuck["progress"]) == (
        1,
        "EARLY_NO_TOOL",
        1,
        0,
    )


def test_obstacles_are_shown_with_the_wakeups_that_met_them(cli: Any, serve: Serve) -> None:
    """Under the ids that the model sees, and what they stand in the way of."""
    claim = {"status": "blocked", "summary": "No way.", "obstacle": "no\nnetwork", "requirement": "R1"}
    stub = serve([tool("shell", {"command": "date"}), *[tool("complete", claim)] * 2])
    uid = cli.new("--require", "true", url=stub.base_url)
    cli("wake", uid)

    assert cli("show", uid, "--json").json["obstacles"] == [
        {"id": "O1", "text": "no network", "requirement": "R1", "wakeups": [1]}
    ]
    assert "O1, in the way of R1: no network (met in wakeups: 1)" in cli("show", uid).out


def test_why_gives_the_evidence_and_the_way_on(cli: Any, worked: str) -> None:
    """The last ending as a sentence, its facts, its checks, and the command."""
    why = cli("why", worked, "--json").json
    told = cli("why", worked).out

    assert why["ending"]["exit_reason"] == "MAX_TURNS_EXCEEDED"
    assert why["ending"]["facts"] == {"limit": "max_turns", "value": 3, "used": 3}
    assert {c["subject"]: c["passed"] for c in why["ending"]["checks"]} == {"报告.md": True, "R1": True}
    assert why["remedy"] == f"goalmode run {worked}"
    for part in (
        "the wakeup's turn quota is spent",
        "1 rejected claim, ",
        f"goalmode run {worked}",
        "without a sandbox",
    ):
        assert part in told
    assert "has not been woken yet" in cli("why", cli.new()).out
    assert "1 to 1" in cli("why", worked, "--wakeup", "9").line()


def test_list_is_newest_first_and_in_pages(cli: Any) -> None:
    """`--limit` and `--offset` walk through all goals."""
    made = [cli.new() for _ in range(3)]

    assert [g["id"] for g in cli("list", "--json").json] == made[::-1]
    assert [g["id"] for g in cli("list", "--json", "--limit", "1", "--offset", "1").json] == [made[1]]
    assert "no further goals" in cli("list", "--offset", "3").out


def test_a_store_that_is_not_there_holds_no_goals(cli: Any) -> None:
    """Listing an empty world is no error, and makes nothing."""
    assert "no goals yet" in cli("list").out
    assert cli("list", "--json").json == []
    assert not cli.store.exists()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("""UPDATE goals SET limits='{"v": 1, "turns": "many"}' WHERE uid='UID'""", "limits.turns"),
        pytest.param("UPDATE goals SET status='NAPPING' WHERE uid='UID'", "status", marks=pytest.mark.sqlite),
        pytest.param(
            "UPDATE goals SET spent_turns='few' WHERE uid='UID'", "spent_turns", marks=pytest.mark.sqlite
        ),
    ],
    ids=["limit", "status", "count"],
)
def test_one_unreadable_goal_hides_no_other(cli: Any, change: str, named: str) -> None:
    """A row of unknown shape is marked with the field's name; the others are listed as usual (B144)."""
    good, bad = cli.new(), cli.new()
    cli.sql(change.replace("UID", bad))
    rows = {row["id"]: row for row in cli("list", "--json").json}

    assert rows[bad]["status"] == "UNREADABLE"
    assert named in rows[bad]["problem"]
    assert rows[good]["status"] == "ACTIVE"
    assert "UNREADABLE" in cli("list").out
    assert all(named in cli(command, bad).line() for command in ("show", "run", "why"))
    assert cli("doctor").code == 1


@pytest.mark.sqlite
def test_an_unknown_exit_reason_is_named(cli: Any, worked: str) -> None:
    """A word from the future is shown as it is, and `why` says that it does not know it (B144)."""
    cli.sql("UPDATE wakeups SET exit_reason='ASCENDED'")

    assert cli("show", worked, "--json").json["wakeups"][0]["exit_reason"] == "ASCENDED"
    assert "ASCENDED" in cli("why", worked).line()


def test_hostile_names_are_shown_escaped_and_round_trip(cli: Any, serve: Serve) -> None:
    """A file name with a newline and an escape starts no line of its own; JSON gives the real name (B73)."""
    name = "a\n## Objective\x1b[31m\rb.txt"
    stub = serve([tool("write_file", {"path": name, "content": "x"}), text("x")])
    uid = cli.new("--deliverable", name, url=stub.base_url)
    cli("wake", uid)

    assert cli("show", uid, "--json").json["deliverables"][0]["path"] == name
    for command in (("show", uid), ("turns", uid), ("why", uid), ("context", uid, "--next")):
        assert "## Objective" not in [line.strip()[:12] for line in cli(*command).out.split("\n")]


def test_json_of_results_is_whole(cli: Any, serve: Serve) -> None:
    """A result with NUL and odd bytes is shown whole, not cut at the first NUL (B65)."""
    steps = [tool("shell", {"command": r"printf 'a\000b\377c\n'"}), text("x")]
    uid = cli.new("--max-recoveries", "0", url=serve(steps).base_url)
    cli("wake", uid)
    [shell] = cli("turns", uid, "--full", "--json").json[0]["calls"]

    assert "a␀b\ufffdc" in shell["result"]
    assert json.loads(shell["arguments"]) == {"command": r"printf 'a\000b\377c\n'"}
