"""`timeline`: a goal over time. It reads, and writes nothing."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import click

from goalmode.cli.columns import width_of
from goalmode.cli.options import UTF8, Common, common
from goalmode.cli.output import has_blocks, say, say_json, table
from goalmode.cli.spark import spark
from goalmode.cli.stores import reading
from goalmode.domain.cost import dollars
from goalmode.domain.text import one_line
from goalmode.inspection import timeline as timelines

Row = Mapping[str, Any]

MAX_WAKEUPS = 1_000
_HEAD = ["AT", "WAKEUP", "TURNS", "TOKENS", "COST", "WHAT", "MOVEMENT", "PROGRESS"]
"""A narrow terminal cuts lines at their ends: how a wakeup ended is still to be seen in 80 columns."""


@click.command()
@click.argument("goal_id", metavar="ID", type=UTF8)
@click.option("--limit", metavar="N", type=click.IntRange(1, MAX_WAKEUPS), default=timelines.WAKEUPS,
              show_default=True, help="So many wakeups, the newest.")  # fmt: skip
@click.option("--offset", metavar="N", type=click.IntRange(0), default=0, show_default=True,
              help="Leave out so many of the newest.")  # fmt: skip
@common
def timeline(goal_id: str, limit: int, offset: int, common: Common) -> int:
    """Show a goal over time: its wakeups, what they used up and came to, and what happened beside them."""
    with reading(common, goal_id) as (store, goal):
        found = timelines.timeline(store, goal.id, limit=limit, offset=offset)
    if common.json:
        say_json(found)
    else:
        _page(found)
    return 0


def _page(found: Row) -> None:
    wakeups = found["wakeups"]
    shown = (
        f", wakeups {wakeups[0]['seq']} to {wakeups[-1]['seq']} of {found['wakeups_in_all']}"
        if wakeups
        else ""
    )
    state = "running" if found["running"] else found["status"]
    say(f"Goal {found['id']}: {state}{shown}", strong=True)
    _curves(wakeups)
    table(_HEAD, [cells for _, cells in sorted(_lines(found), key=lambda line: line[0])])


def _curves(wakeups: list[Row]) -> None:
    """Turns and tokens per wakeup, on one line each."""
    blocks, columns = has_blocks(), shutil.get_terminal_size().columns if sys.stdout.isatty() else 80
    for name in ("turns", "tokens"):
        values = [w[name] for w in wakeups]
        if values:
            head, top = f"{name:<8}", f"  at most {max(values):,} a wakeup"
            say(head + spark(values, blocks=blocks, width=columns - width_of(head + top)) + top)


def _lines(found: Row) -> Iterator[tuple[datetime, list[str]]]:
    """The rows of the table, each with its time."""
    if found["wakeups_in_all"] == 0 or (found["wakeups"] and found["wakeups"][0]["seq"] == 1):
        yield _at(found["created_at"]), [_time(found["created_at"]), "", "", "", "", "created", "", ""]
    for w in found["wakeups"]:
        cost = dollars(w["cost_micro"]) if w["cost_micro"] else "-"
        spent = [str(w["turns"]), f"{w['tokens']:,}", cost]
        came_to = [_ending(w), " > ".join(w["movements"]) or "-", _progress(w)]
        yield _at(w["started_at"]), [_time(w["started_at"]), str(w["seq"]), *spent, *came_to]
    for one in found["happenings"]:
        inside = "" if one["wakeup"] is None else f"({one['wakeup']})"
        text = f"{one['kind'].replace('_', ' ')}: {one['text']}" if one["text"] else one["kind"]
        yield _at(one["at"]), [_time(one["at"]), inside, "", "", "", one_line(text, 200), "", ""]


def _progress(wakeup: Row) -> str:
    of = ", ".join(f"{kind} {marks}" for kind, marks in wakeup["progress_by"].items() if marks)
    return f"{wakeup['progress']}" + (f" ({of})" if of else "")


def _ending(wakeup: Row) -> str:
    if wakeup["exit_reason"] is None:
        return "running"
    detail = f": {one_line(wakeup['exit_detail'], 120)}" if wakeup["exit_detail"] else ""
    return f"{wakeup['exit_reason']}{detail}"


def _at(iso: str) -> datetime:
    return datetime.fromisoformat(iso)


def _time(iso: str) -> str:
    """A stored time in this machine's zone."""
    return _at(iso).astimezone().isoformat(sep=" ", timespec="seconds")[:19]
