"""`timeline` and `turns`: a goal over time, in pages, and as it happens."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from goalmode.cli.spark import spark
from goalmode.inspection import follow
from goalmode.state import goals, reading_turns
from goalmode.state.store import Store
from goalmode.testing import ManualClock, Stub
from goalmode.testing.steps import tool
from tests import stores
from tests.cli.test_looking import begun
from tests.orchestrator.builders import GO_ON, finish, intend

Serve = Callable[..., Stub]

ASKS = tool(
    "complete",
    {
        "status": "needs_user_input",
        "summary": "?",
        "missing_info": "Which colour?",
        "why_no_default": "it is printed",
    },
)


@pytest.fixture
def worked(cli: Any, serve: Serve) -> str:
    """Two wakeups with a note between them; the second one asks."""
    looks = [tool("shell", {"command": f"echo {n} > {n}.txt"}) for n in range(3)]
    saves = tool("update_working_checkpoint", {"key_info": "three files"})
    uid = cli.new("--max-turns", "2", url=serve([*looks[:2], saves, looks[2], ASKS]).base_url)
    assert cli("wake", uid).code == 10
    assert cli("note", uid, "a note\nfor you").code == 0
    assert cli("wake", uid).code == 30
    return str(uid)


def test_wakeups_and_what_happened_beside_them(cli: Any, worked: str) -> None:
    """Each wakeup with movement, exit, tokens, cost and progress; the note and the question in their places."""
    found = cli("timeline", worked, "--json").json
    first, second = found["wakeups"]

    assert (found["status"], found["wakeups_in_all"]) == ("WAITING_USER", 2)
    assert (first["seq"], first["movements"], first["turns"], first["calls"]) == (1, ["pursue"], 2, 3)
    assert (first["exit_reason"], second["exit_reason"]) == ("MAX_TURNS_EXCEEDED", "NEEDS_USER_INPUT")
    assert first["tokens"] == sum(
        t["usage"]["tokens"] for t in cli("turns", worked, "--wakeup", "1", "--json").json
    )
    assert first["progress"] > 0
    kinds = [(one["kind"], one["wakeup"], one["text"]) for one in found["happenings"]]
    assert ("note", None, "a note\nfor you") in kinds
    assert ("asked", 2, "Q1: Which colour?") in kinds


def test_the_page_is_in_order_with_curves(cli: Any, worked: str) -> None:
    """One line an event, oldest first, and a line of marks each for turns and tokens."""
    lines = cli("timeline", worked).out.splitlines()
    told = "\n".join(lines)

    assert lines[1].split()[:2] == ["turns", "██"]
    assert lines[2].startswith("tokens")
    places = [
        told.index(part) for part in ("created", "MAX_TURNS_EXCEEDED", "note: a note\\nfor you", "asked: Q1")
    ]
    assert places == sorted(places)


def test_pages_of_a_timeline_meet(cli: Any, worked: str) -> None:
    """What happened between two wakeups is on the page of the older one, once."""
    whole = cli("timeline", worked, "--json").json
    newer = cli("timeline", worked, "--limit", "1", "--json").json
    older = cli("timeline", worked, "--limit", "1", "--offset", "1", "--json").json

    assert [w["seq"] for page in (older, newer) for w in page["wakeups"]] == [1, 2]
    assert older["happenings"] + newer["happenings"] == whole["happenings"]
    assert "created" in cli("timeline", worked, "--limit", "1", "--offset", "1").out
    assert cli("timeline", worked, "--offset", "2", "--json").json["wakeups"] == []


def test_a_goal_that_never_ran_has_a_timeline(cli: Any) -> None:
    """Its creation, and nothing else."""
    told = cli("timeline", cli.new()).out

    assert "created" in told
    assert "turns " not in told


@pytest.mark.parametrize(
    ("values", "blocks", "width", "shown"),
    [
        ([], True, 10, ""),
        ([0, 0], True, 10, "▁▁"),
        ([0, 1, 1000], True, 10, "▁▂█"),
        ([1, 2, 3, 8], False, 10, ".:-#"),
        (list(range(1, 101)), True, 5, "▂▄▅▇█"),
    ],
)
def test_a_spark_line(values: list[int], blocks: bool, width: int, shown: str) -> None:
    """Nothing but 0 is drawn like 0; what does not fit is drawn by its largest; ASCII where there is nothing better."""
    assert spark(values, blocks=blocks, width=width) == shown


def test_plain_marks_where_the_encoding_has_no_blocks(cli: Any, worked: str, spawn: Any) -> None:
    """B134: an ASCII terminal gets marks that it has."""
    done = spawn("timeline", worked, PYTHONIOENCODING="ascii:strict").done()

    assert (done.code, done.err, done.out.isascii()) == (0, "", True)
    assert "turns   ##" in done.out


def test_pages_of_turns_are_all_turns(cli: Any, worked: str) -> None:
    """`--limit` and `--offset` walk through them from the oldest, `--last` gives the newest; counts of repeats stay."""
    whole = cli("turns", worked, "--json").json
    pages = [cli("turns", worked, "--json", "--limit", "2", "--offset", str(n)).json for n in (0, 2, 4)]

    assert len(whole) == 5
    assert [turn for page in pages for turn in page] == whole
    assert cli("turns", worked, "--json", "--last", "3").json == whole[2:]
    assert cli("turns", worked, "--json", "--last", "0").json == []
    assert cli("turns", worked, "--json", "--wakeup", "2", "--limit", "1").json == whole[3:4]
    assert "no further turns" in cli("turns", worked, "--limit", "1", "--offset", "9").out
    assert cli("turns", worked, "--limit", "1", "--last", "1").code == 2
    assert cli("turns", worked, "--limit", "1", "--follow").code == 2


def test_a_repeat_is_counted_across_pages(cli: Any, serve: Serve) -> None:
    """The page that begins with the third equal call says that it is the third."""
    same = tool("shell", {"command": "echo 1"})
    uid = cli.new("--max-turns", "4", url=serve([same] * 5).base_url)
    cli("wake", uid)

    pages = [cli("turns", uid, "--json", "--limit", "2", "--offset", str(n)).json for n in (0, 2)]

    assert [call["in_a_row"] for page in pages for turn in page for call in turn["calls"]] == [1, 2, 3, 4]


def test_following_ends_where_nothing_is_due(cli: Any, worked: str) -> None:
    """The newest turns, one JSON object a line, and the end: the goal waits for an answer."""
    done = cli("turns", worked, "--follow", "--last", "2", "--json")

    assert done.code == 0
    assert [(turn["wakeup"], turn["seq"]) for turn in done.events] == [(2, 1), (2, 2)]
    assert "none is due" in done.err
    assert cli("turns", worked, "--follow", "--wakeup", "1", "-q").out.count("\n1.") == 2


def test_ctrl_c_ends_the_following(cli: Any, worked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the ordinary way to end it, and no error."""
    cli("answer", worked, "Red")

    def interrupted(*_: Any, **named: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(follow, "expects", interrupted)
    done = cli("turns", worked, "-f")

    assert (done.code, done.err) == (0, "")


@pytest.mark.sqlite
def test_a_page_costs_the_same_after_ten_thousand_turns(
    cli: Any, worked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the rows of the page are read, by their indexes, and nothing is sorted."""
    columns = "wakeup, seq, purpose, state, stop_reason, stop_detail, provider, model, movement, started_at"
    numbers = "input, cached, cache_write, output, estimated"
    values = "2, i, 'work', 'done', 'END_TURN', '', '', '', '', '2030-01-01', 1, 0, 0, 1, 0"
    series = "WITH RECURSIVE n(i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < 10000)"
    cli.sql(f"INSERT INTO turns ({columns}, {numbers}) {series} SELECT {values} FROM n")
    read: list[Any] = []
    made = reading_turns._turn
    monkeypatch.setattr(reading_turns, "_turn", lambda row, calls: read.append(row.id) or made(row, calls))
    for window in (("--last", "5"), ("--limit", "5", "--offset", "9000"), ("--limit", "5")):
        read.clear()
        assert len(cli("turns", worked, "--json", *window).json) == 5
        assert len(read) <= 25
    order = "ORDER BY wakeups.seq DESC, turns.seq DESC LIMIT 5"
    plan = stores.rows(
        cli.url,
        "EXPLAIN QUERY PLAN SELECT turns.id FROM turns JOIN wakeups ON wakeups.id = turns.wakeup"
        f" WHERE wakeups.goal = 1 {order}",
    )
    assert "TEMP B-TREE" not in json.dumps(plan)


def test_a_running_goal_is_followed(cli: Any, serve: Serve) -> None:
    """What another process commits comes as it does, an open turn only when it is over."""
    uid = cli.new()
    seen: list[tuple[int, str]] = []
    with begun(cli, uid) as wake:

        class Clock(ManualClock):
            """Each sleep lets the other process go one step further."""

            steps = iter(
                [lambda: intend(wake, "shell"), lambda: finish(wake), lambda: None, lambda: wake.close(GO_ON),
                 lambda: cli("pause", uid)]
            )  # fmt: skip

            def lease_ms(self) -> int:
                return 0

            async def sleep(self, seconds: float) -> None:
                next(self.steps)()
                await super().sleep(seconds)

        async def tail() -> None:
            with Store(str(cli.url), readonly=True, clock=Clock()) as store:
                async for turn in follow.follow(store, goals.find(store, uid)):
                    seen.append((turn["seq"], turn["calls"][0]["outcome"]))

        anyio.run(tail)

    assert seen == [(1, "success")]
