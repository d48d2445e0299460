"""`export` and `import`: a goal out of one store and into another, whole or not at all."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from goalmode.testing import Stub
from goalmode.testing.steps import tool
from tests import stores
from tests.cli.test_looking import begun, die_in_a_tool

Serve = Callable[..., Stub]

PENDING = {"key_info": "k", "pending": ["看 ✓"], "done": ["a"], "next_steps": ["b"]}
CLAIM = {"status": "success", "summary": "done", "evidence": ["a.txt"]}
ASKS = {"status": "needs_user_input", "summary": "?", "missing_info": "Which?", "why_no_default": "none fits"}


@pytest.fixture
def worked(cli: Any, serve: Serve) -> str:
    """A goal with a bit of everything, paused."""
    steps = [
        tool("shell", {"command": "echo 中文 > a.txt; exit 3"}, text="好 ✓"),
        tool("update_working_checkpoint", PENDING),
        tool("complete", CLAIM),
        tool("complete", ASKS),
    ]
    options = ("--deliverable", "a.txt", "--check", "test -s b.txt", "--require", "A person\nlikes it.")
    uid = cli.new(
        *options, "--max-turns", "4", objective="写 {{ 7*7 }} ✓ \U0001f378", url=serve(steps).base_url
    )
    assert cli("schedule", uid, "--every", "1h").code == 0
    assert cli("note", uid, "one").code == cli("note", uid, "two", "--replaces", "1").code == 0
    assert cli("wake", uid).code == 30
    assert cli("answer", uid, "红").code == cli("pause", uid).code == 0
    return str(uid)


def other(cli: Any, tmp_path: Path) -> tuple[str, str]:
    """Options for another store."""
    return "--store", stores_at(tmp_path / "other" / "goals.sqlite")


def stores_at(path: Path) -> str:
    if stores.SERVER:
        pytest.skip("the other store is a file")
    return str(path)


def test_a_round_trip_is_exact(cli: Any, worked: str, tmp_path: Path) -> None:
    """B136: export, import elsewhere, export again: the same bytes; the goal is paused, its history as it was."""
    first, second, there = tmp_path / "a.json", tmp_path / "b.json", other(cli, tmp_path)
    assert cli("export", worked, "--output", str(first)).code == 0
    done = cli("import", str(first), *there)
    assert cli("export", worked, *there, "--output", str(second)).code == 0

    assert first.read_bytes() == second.read_bytes()
    assert done.out.startswith(f"{worked}: imported, PAUSED\n")
    old, new = cli("show", worked, "--json").json, cli("show", worked, "--json", *there).json
    same = (
        "objective",
        "spent",
        "limits",
        "requirements",
        "deliverables",
        "work_items",
        "checkpoint",
        "questions",
    )
    for name in (*same, "inbox", "checks", "revisions", "settings", "movement", "created_at", "wake_sources"):
        assert new[name] == old[name], name
    assert (new["status"], new["next_wakeup_at"]) == ("PAUSED", None)
    assert (
        cli("turns", worked, "--full", "--json", *there).json == cli("turns", worked, "--full", "--json").json
    )
    assert cli("context", worked, *there).out == cli("context", worked).out


def test_what_was_imported_goes_on(cli: Any, worked: str, tmp_path: Path, serve: Serve) -> None:
    """After a resume the next wakeup has the next number, and a fence above all old ones."""
    file, there = tmp_path / "a.json", other(cli, tmp_path)
    cli("export", worked, "--output", str(file))
    cli("import", str(file), *there)
    stub = serve([tool("complete", ASKS)])
    done = cli("resume", worked, "--base-url", stub.base_url, *there)

    assert done.code == 30
    assert [w["seq"] for w in cli("show", worked, "--json", *there).json["wakeups"]] == [1, 2]


def test_an_id_that_is_taken_is_refused(cli: Any, worked: str, tmp_path: Path) -> None:
    """Nothing is written over; `--new-id` stores another one beside it, which is the same but for its id."""
    file, again = tmp_path / "a.json", tmp_path / "b.json"
    cli("export", worked, "--output", str(file))
    before = cli.rows()

    assert "--new-id" in cli("import", str(file)).line()
    assert cli.rows() == before
    new = cli("import", str(file), "--new-id", "-q").out.strip()
    assert new != worked
    cli("export", new, "--output", str(again))
    assert again.read_text("utf-8").replace(new, worked) == file.read_text("utf-8")
    keys = stores.rows(
        cli.url, "SELECT idem_key FROM tool_calls WHERE idem_key LIKE ? ORDER BY id", f"{new}:%"
    )
    assert f"{new}:1:1:" in keys[0]


def test_a_file_is_new_and_for_its_user_alone(cli: Any, worked: str, tmp_path: Path) -> None:
    """0600, never over what is there, never through a link; standard output has the same bytes."""
    file, link = tmp_path / "a.json", tmp_path / "link.json"
    link.symlink_to(tmp_path / "elsewhere.json")
    cli("export", worked, "--output", str(file))

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for place in (file, link, tmp_path / "no" / "such.json"):
        assert "output" in cli("export", worked, "--output", str(place)).line()
    assert not (tmp_path / "elsewhere.json").exists()
    assert cli("export", worked).out == file.read_text("utf-8")


def test_a_goal_that_is_over_stays_over(cli: Any, tmp_path: Path) -> None:
    """An aborted goal cannot be brought back to life by an import."""
    uid, file, there = cli.new(), tmp_path / "a.json", other(cli, tmp_path)
    cli("abort", uid)
    cli("export", uid, "--output", str(file))
    cli("import", str(file), *there)

    assert cli("show", uid, "--json", *there).json["status"] == "ABORTED"
    assert "aborted" in cli("resume", uid, *there).line()


@pytest.mark.parametrize("how", ["running", "dead"])
def test_an_open_wakeup_is_exported_as_interrupted(cli: Any, how: str, tmp_path: Path) -> None:
    """B43: one that runs, and one whose process died, are INTERRUPTED in the file, and so are their calls."""
    uid, file, there = cli.new(), tmp_path / "a.json", other(cli, tmp_path)
    if how == "dead":
        die_in_a_tool(cli, uid)
        before = cli.rows()
        cli("export", uid, "--output", str(file))
        assert cli.rows() == before
    else:
        with begun(cli, uid):
            cli("export", uid, "--output", str(file))
    [wakeup] = json.loads(file.read_text("utf-8"))["wakeups"]
    calls = [call["outcome"] for turn in wakeup["model_calls"] for call in turn["tool_calls"]]

    assert (wakeup["exit_reason"], calls) == (
        "INTERRUPTED",
        ["interrupted", "skipped"] if how == "dead" else [],
    )
    assert cli("import", str(file), *there).code == 0
    assert cli("why", uid, *there, "--json").json["ending"]["exit_reason"] == "INTERRUPTED"


def test_a_goal_that_is_waited_for_is_known_by_its_name(cli: Any, tmp_path: Path) -> None:
    """Numbers of rows mean nothing elsewhere: there the goal of that name is meant, or none."""
    target = cli.new()
    uid, file, there = cli.new("--after", target), tmp_path / "a.json", other(cli, tmp_path)
    cli("export", uid, "--output", str(file))

    [source] = json.loads(file.read_text("utf-8"))["wake_sources"]
    assert (source["spec"]["uid"], "goal" in source["spec"]) == (target, False)
    assert cli("import", str(file), *there).code == 0
    assert stores.rows(there[1], "SELECT target FROM wake_sources") == [0]


FAULTS: list[tuple[Callable[[Any], Any], list[str]]] = [
    (lambda d: [], ["file: [] is not valid: a JSON object"]),
    (lambda d: {**d, "format": "x"}, ["format: 'x' is not valid: 'goalmode goal'"]),
    (lambda d: {**d, "version": 2}, ["version: 2 is not valid: 1; upgrade goalmode to read it"]),
    (lambda d: {**d, "id": "../../etc"}, ["id: '../../etc' is not valid: twelve letters and digits"]),
    (lambda d: {**d, "over": {"status": "ACTIVE", "detail": ""}}, ["over: "]),
    (lambda d: {**d, "objective": " "}, ["objective: "]),
    (lambda d: {**d, "objective": "x" * 200_001}, ["objective: '200,001 characters'"]),
    (lambda d: {**d, "workspace": "here"}, ["workspace: 'here' is not valid: an absolute path"]),
    (lambda d: {**d, "streak": -1, "fence": "1"}, ["fence: '1' is not valid", "streak: -1 is not valid"]),
    (lambda d: {**d, "spent_turns": True}, ["spent_turns: True is not valid: a whole number from 0"]),
    (lambda d: {**d, "surprise": 1}, ["surprise: 1 is not valid: no such field"]),
    (lambda d: {k: v for k, v in d.items() if k != "inbox"}, ["inbox: is missing"]),
    (lambda d: {**d, "inbox": {}}, ["inbox: {} is not valid: a list"]),
    (lambda d: {**d, "created_at": "2030-01-01"}, ["created_at: '2030-01-01' is not valid: a time with its offset"]),
    (lambda d: {**d, "created_at": "9999-12-31T23:59:59-05:00"}, ["created_at: '9999-12-31T23:59:59-05:00' is not"]),
    (lambda d: {**d, "created_at": "0001-01-01T00:00:00+05:00"}, ["created_at: '0001-01-01T00:00:00+05:00' is not"]),
    (lambda d: {**d, "limits": {"v": 1, "deadline": "9999-12-31T23:59-05:00"}}, ["limits.deadline is '9999-12"]),
    (lambda d: at(d, "wakeups", exit_reason="ASCENDED"), ["wakeups[0].exit_reason: 'ASCENDED' is not valid: one of"]),
    (lambda d: at(d, "wakeups", exit_reason=None), ["wakeups[0].exit_reason: None is not valid"]),
    (lambda d: at(d, "wakeups", inbox_seen=99), ["wakeups[0].inbox_seen: 99 is not valid"]),
    (lambda d: at(d, "wakeups", fence=99), ["wakeups[0].fence: 99 is not valid"]),
    (lambda d: {**d, "wakeups": d["wakeups"] * 2}, ["wakeups[1].seq: 1 is not valid"]),
    (lambda d: at(d, "checks", wakeup=7), ["checks[0].wakeup: 7 is not valid"]),
    (lambda d: at(d, "inbox", superseded_by=99), ["inbox[0].superseded_by: 99 is not valid"]),
    (lambda d: {**d, "limits": {"v": 1, "turns": "many"}}, ["limits.turns is 'many'"]),
    (lambda d: {**d, "movement": "nowhere"}, ["movement is 'nowhere'"]),
    (lambda d: at(d, "questions", status="asked"), ["questions[0].status: 'asked' is not valid: one of"]),
    (lambda d: at(d, "questions", answered_by="cat"), ["question.answered_by is 'cat'"]),
    (lambda d: at(d, "wake_sources", spec={}), ["wake source S1"]),
    (lambda d: {**d, "wakeups": [None] * 30}, ["wakeups[0]: None is not valid: an object", "there are more faults"]),
]  # fmt: skip


def at(document: Any, part: str, **changes: Any) -> Any:
    """The document with its first row of one part changed."""
    first, *others = document[part]
    return {**document, part: [{**first, **changes}, *others]}


def test_every_fault_is_one_line_and_nothing_is_stored(cli: Any, worked: str, tmp_path: Path) -> None:
    """Place, value and what would be right; all of them at once; no row, and no store where there was none."""
    file = tmp_path / "a.json"
    cli("export", worked, "--output", str(file))
    document, before = json.loads(file.read_text("utf-8")), cli.rows()
    for change, expected in FAULTS:
        broken = tmp_path / "broken.json"
        broken.write_text(json.dumps(change(document)), "utf-8")
        done = cli("import", str(broken), "--new-id")
        lines = done.err.splitlines()

        assert (done.code, done.out) == (2, ""), expected
        assert all(line.startswith(f"goalmode: {broken}: ") for line in lines)
        assert all(any(part in line for line in lines) for part in expected), (expected, lines)
        assert len(lines) <= 21
        assert len(lines) == len(expected) or expected[-1] == "there are more faults", lines
        assert cli.rows() == before, expected

    assert cli("import", str(broken), "--store", str(tmp_path / "new" / "g.sqlite")).code == 2
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "data",
    [b"", b"\xff{}", b"{", b'{"a": NaN}', b"[" * 100_000, b'{"a": ' + b"9" * 5_000 + b"}"],
    ids=["empty", "no UTF-8", "cut", "NaN", "deep", "huge number"],
)
def test_what_is_no_json_is_said(cli: Any, tmp_path: Path, data: bytes) -> None:
    """One line, and nothing is made."""
    file = tmp_path / "a.json"
    file.write_bytes(data)

    assert "file: " in cli("import", str(file)).line()
    assert "file: " in cli("import", "-", stdin=data).line()
    assert "file that can be read" in cli("import", str(tmp_path / "none.json")).line()
    assert not cli.store.exists()


def test_an_import_says_what_will_run_here(cli: Any, worked: str, tmp_path: Path) -> None:
    """The model's address and the variable of its key, the number of commands, a workspace that is not there."""
    file, moved = tmp_path / "a.json", tmp_path / "moved"
    moved.mkdir()
    cli("export", worked, "--output", str(file))
    document = json.loads(file.read_text("utf-8"))
    document["workspace"] = "/nowhere/at/all"
    file.write_text(json.dumps(document), "utf-8")

    said = cli("import", str(file), "--new-id").out
    assert "http://127.0.0.1" in said
    assert "run 1 command of it here" in said
    assert "/nowhere/at/all is not on this machine" in said
    new = cli("import", str(file), "--new-id", "--workspace", str(moved), "--json").json["id"]
    assert cli("show", new, "--json").json["workspace"] == str(moved)
    assert cli("import", str(file), "--workspace", "/nowhere/at/all").code == 2


def test_a_killed_import_leaves_nothing(
    cli: Any, worked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crash in the middle of the rows: no goal, no body, no row at all."""
    from goalmode.state import transfer

    file = tmp_path / "a.json"
    cli("export", worked, "--output", str(file))
    before = cli.rows()

    def dies(*_: Any, **named: Any) -> Any:
        raise RuntimeError("in the middle")

    monkeypatch.setattr(transfer._Writer, "_wakeup", dies)

    assert "in the middle" in cli("import", str(file), "--new-id").line()
    assert cli.rows() == before


@pytest.mark.long
def test_any_encoding_carries_an_export(cli: Any, worked: str, spawn: Any, tmp_path: Path) -> None:
    """B136: under LC_ALL=C and an ASCII output the JSON has escapes, and the goal that comes out of it is the same."""
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii:strict"}
    file, again, there = tmp_path / "a.json", tmp_path / "b.json", other(cli, tmp_path)
    done = spawn("export", worked, **plain).done()
    file.write_text(done.out, "ascii")

    assert (done.code, done.err) == (0, "")
    assert cli("import", str(file), *there).code == 0
    assert cli("export", worked, *there, "--output", str(again)).code == 0
    assert again.read_text("utf-8") == cli("export", worked).out
