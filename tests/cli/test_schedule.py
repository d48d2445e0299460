"""`schedule` and `new --after`: what a user types, what is stored, what is shown, and one clear line for the rest."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from goalmode.cli.zone import local_zone
from tests.cli.conftest import CLI


@contextmanager
def in_zone(zone: str) -> Iterator[None]:
    """This process runs in another time zone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        yield
    time.tzset()


def test_a_schedule_is_said_stored_and_shown(cli: CLI) -> None:
    """By `schedule`, `schedule --list`, `show` and `why`; the goal is not due before."""
    goal = cli.new()

    made = cli("schedule", goal, "--cron", "0 9 * * 1-5", "--zone", "Europe/Berlin")

    assert (made.code, made.err) == (0, "")
    assert made.out.startswith(f"{goal}: S1  cron 0 9 * * 1-5 (Europe/Berlin): due 20")
    line = made.out.strip().removeprefix(f"{goal}: ")
    assert cli("schedule", goal, "--list").out.strip() == line
    assert cli("schedule", goal).out.strip() == line
    assert f"\nWake sources\n  {line}\n" in cli("show", goal).out
    assert f"\nWake sources\n  {line}\n" in cli("why", goal).out
    assert "not_due" in cli("why", goal).out


def test_a_cron_line_is_meant_in_the_zone_of_whoever_gives_it(cli: CLI) -> None:
    """B35: the zone is stored, and whoever looks elsewhere sees the same moment, with its offset."""
    goal = cli.new()
    with in_zone("Europe/Warsaw"):
        made = cli("schedule", goal, "--cron", "30 6 * * *", "--json").json["wake_source"]
    assert (made["zone"], made["due_at"][11:19]) == ("Europe/Warsaw", "06:30:00")
    assert made["due_at"][-6:] in ("+01:00", "+02:00")

    with in_zone("Asia/Shanghai"):
        [shown] = cli("show", goal, "--json").json["wake_sources"]
        assert shown == made
        assert made["due_at"] in cli("schedule", goal).out


def test_every_kind_is_shown_in_json(cli: CLI) -> None:
    """With its own fields, by which a program knows it, and times with offsets."""
    goal, other = cli.new(), cli.new()
    for option in (
        ["--at", "2033-01-01T09:00+05:30"],
        ["--every", "2h"],
        ["--file", "data/in.csv", "--ceiling", "1d"],
        ["--pid", str(os.getpid())],
        ["--after", other],
    ):
        assert cli("schedule", goal, *option, "-q").code == 0

    found = cli("schedule", goal, "--list", "--json").json

    assert [(one["id"], one["kind"], one["by"], one["status"]) for one in found] == [
        (f"S{number}", kind, "user", "open")
        for number, kind in enumerate(("at", "every", "file", "process", "goal"), 1)
    ]
    at, every, file, process, after = found
    assert at["due_at"] == at["time"] == "2033-01-01T09:00:00+05:30"
    assert (every["seconds"], every["ceiling_at"]) == (7200, None)
    assert every["due_at"].endswith("+00:00")
    assert (file["path"], file["seen"], file["due_at"]) == ("data/in.csv", None, None)
    assert file["ceiling_at"].endswith("+00:00")
    assert process["pid"] == os.getpid()
    assert after["goal"] == other
    assert cli("show", goal, "--json").json["wake_sources"] == found


def test_what_follows_from_an_ending_is_shown_beside(cli: CLI) -> None:
    """A new goal is due now by itself; nothing is stored of that."""
    [shown] = cli("schedule", cli.new(), "--json").json

    assert (shown["id"], shown["kind"], shown["what"]) == (None, "now", "created")


@pytest.mark.parametrize(
    ("reason", "kind", "by"),
    [("asked time", "at", "model"), ("quota reset", "quota", "provider"), ("back-off", "back-off", "rule")],
)
def test_a_wait_and_a_reset_are_sources_too(cli: CLI, reason: str, kind: str, by: str) -> None:
    """As their endings left them: the model's wait is an "at" of the model's."""
    goal = cli.new()
    cli.sql(f"UPDATE goals SET wake_reason = '{reason}', next_wakeup_at = '2033-01-01 00:00:00.000000'")

    [shown] = cli("show", goal, "--json").json["wake_sources"]

    assert (shown["kind"], shown["by"], shown["due_at"]) == (kind, by, "2033-01-01T00:00:00+00:00")


def test_a_source_is_removed_by_its_number(cli: CLI) -> None:
    """It is told, stays in JSON as what it was, and is gone from the page."""
    goal = cli.new()
    cli("schedule", goal, "--every", "2h")

    removed = cli("schedule", goal, "--remove", "S1")

    assert removed.out.strip() == f"{goal}: S1  every 2 h: removed"
    assert [one["status"] for one in cli("schedule", goal, "--json").json] == ["removed", "open"]
    assert "Wake sources" not in cli("show", goal).out
    assert cli("why", goal).out.count("It would be woken now.") == 1


def test_a_goal_that_is_not_active_says_so(cli: CLI) -> None:
    """The schedule is kept for when it is resumed."""
    goal = cli.new()
    cli("pause", goal)

    made = cli("schedule", goal, "--every", "2h")

    assert made.out.splitlines()[1] == f"{goal}: is PAUSED, so nothing wakes it until it is active again"


def test_a_new_goal_after_another(cli: CLI) -> None:
    """It is not due, and says why."""
    first = cli.new()

    second = cli.new("--after", first[:6])

    [shown] = cli("show", second, "--json").json["wake_sources"]
    assert (shown["kind"], shown["goal"], shown["status"]) == ("goal", first, "open")
    assert "not_due" in cli("why", second).out


def test_a_new_goal_after_none_leaves_nothing(cli: CLI) -> None:
    """Neither a goal nor a store."""
    workspace = (
        "--workspace",
        str(cli.workspace),
        "--model",
        "openai:m",
        "--base-url",
        "http://127.0.0.1:9/v1",
    )

    refused = cli("new", "x", *workspace, "--after", "abcdef")

    assert refused.code == 1
    assert refused.line().startswith("goalmode: no goal 'abcdef'")
    assert cli.rows() == ""


BAD = {
    "a cron line that never fires": (
        ["--cron", "0 0 30 2 *"],
        "cron: '0 0 30 2 *' is not valid: a line that fires",
    ),
    "no cron line": (["--cron", "9am"], "cron: '9am' is not valid: five fields"),
    "an unknown zone": (
        ["--cron", "0 9 * * *", "--zone", "Mars/X"],
        "zone: 'Mars/X' is not valid: an IANA time zone",
    ),
    "an interval of nothing": (["--every", "0"], "every: '0' is not valid: a time span from 30 s"),
    "a negative interval": (["--every=-5m"], "every: '-5m' is not valid: a time span from 30 s"),
    "an interval too short": (["--every", "29s"], "every: '29s' is not valid: a time span from 30 s"),
    "an interval of a hundred years": (["--every", "36525d"], "every: '36525d' is not valid: a time span"),
    "a time that has passed": (["--at", "2001-01-01"], "at: '2001-01-01' is not valid: a time in the future"),
    "a time in a hundred years": (
        ["--at", "2199-01-01"],
        "at: '2199-01-01' is not valid: a time within 10 years",
    ),
    "no time": (["--at", "noon"], "at: 'noon' is not valid: an ISO time"),
    "a file outside": (["--file", "../x"], "file: '../x' is not valid: a file inside the workspace"),
    "a process that is none": (["--pid", "4194999"], "pid: '4194999' is not valid: the number of a process"),
    "no process number": (["--pid", "make"], "pid: 'make' is not valid: the number of a process"),
    "an unknown goal": (["--after", "zzz"], "no goal 'zzz'"),
    "a ceiling of nothing": (["--file", "x", "--ceiling", "0"], "ceiling: '0' is not valid: a time span"),
    "a ceiling of a clock": (
        ["--every", "1h", "--ceiling", "1d"],
        "--ceiling is of --file, --pid and --after",
    ),
    "a zone of nothing": (["--every", "1h", "--zone", "UTC"], "--zone is of --cron"),
    "two at once": (["--every", "1h", "--file", "x"], "Only one of --at, --every"),
    "a list of one": (["--every", "1h", "--list"], "Only one of --at, --every"),
    "a source that is none": (
        ["--remove", "S7"],
        "remove: 'S7' is not valid: the number of an open wake source",
    ),
}


@pytest.mark.parametrize(("options", "said"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_one_line_and_changes_nothing(cli: CLI, options: list[str], said: str) -> None:
    """It names the field, the value and what would be right."""
    goal = cli.new()
    before = cli.rows()

    done = cli("schedule", goal, *options)

    assert done.code != 0
    assert done.line().startswith(f"goalmode: {said}")
    assert (done.out, cli.rows()) == ("", before)


def test_a_chain_that_loops_is_one_line(cli: CLI) -> None:
    """With the chain in it."""
    first = cli.new()
    second = cli.new("--after", first)
    before = cli.rows()

    done = cli("schedule", first, "--after", second)

    assert done.code == 2
    assert done.line() == (
        f"goalmode: after: '{second}' is not valid: a goal that does not wait for goal {first}; "
        f"this is one that does: {second} waits for {first}"
    )
    assert cli.rows() == before


@pytest.mark.parametrize("rule", ["CET-1CEST", "<+03>-3", "Nowhere/Land"])
def test_a_zone_without_a_name_is_asked_for(cli: CLI, monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    """A rule of offsets cannot say what Berlin will do in ten years."""
    goal = cli.new()
    monkeypatch.setenv("TZ", rule)

    done = cli("schedule", goal, "--cron", "0 9 * * *")

    assert done.code == 2
    assert "zone: " in done.line()
    assert "--zone Europe/Berlin" in done.line()


def test_the_machines_zone_is_read_where_it_is_set(tmp_path: Path) -> None:
    """TZ first; then the link, or the file, of the system; UTC where nothing is set at all."""
    zones = Path("/usr/share/zoneinfo")
    linked, written, nothing = tmp_path / "linked", tmp_path / "written", tmp_path / "nothing"
    for etc in (linked, written, nothing):
        etc.mkdir()
    (linked / "localtime").symlink_to(zones / "Europe" / "Berlin")
    (written / "localtime").write_bytes(b"TZif2")
    (written / "timezone").write_text("Asia/Tokyo\n")

    assert local_zone({"TZ": "America/Toronto"}, linked) == "America/Toronto"
    assert local_zone({"TZ": ":America/Toronto"}, linked) == "America/Toronto"
    assert local_zone({"TZ": f"{zones}/America/Toronto"}, linked) == "America/Toronto"
    assert local_zone({"TZ": ""}, linked) == "UTC"
    assert local_zone({"TZ": "CET-1CEST"}, linked) is None
    assert local_zone({}, linked) == "Europe/Berlin"
    assert local_zone({}, written) == "Asia/Tokyo"
    assert local_zone({}, nothing) == "UTC"
    (written / "timezone").unlink()
    assert local_zone({}, written) is None
