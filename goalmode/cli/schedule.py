"""`schedule`: when a goal is woken, beside the rules of its endings."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import click

from goalmode.cli import sources
from goalmode.cli.options import UTF8, Common, common
from goalmode.cli.output import say, say_json
from goalmode.cli.stores import changing, reading
from goalmode.cli.zone import local_zone
from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Goal
from goalmode.domain.wake import CEILING, Planned
from goalmode.errors import BadInput
from goalmode.inspection import wake_sources
from goalmode.orchestrator import schedule as schedules
from goalmode.state import goals
from goalmode.state.store import Store

_WHAT = ("at", "every", "cron", "file", "pid", "after")
_WATCHED = ("file", "pid", "after")


@click.command()
@click.argument("goal_id", metavar="ID", type=UTF8)
@click.option("--at", metavar="ISO", type=UTF8, help="Once, at this time; without an offset in local time.")
@click.option(
    "--every", metavar="SPAN", type=UTF8, help="Again and again, such as 2h: elapsed time, 30s or more."
)
@click.option("--cron", metavar="LINE", type=UTF8, help="Again and again, such as '0 9 * * 1-5'.")
@click.option(
    "--zone", metavar="ZONE", type=UTF8, help="Of --cron, such as Europe/Berlin. [default: this machine's]"
)
@click.option(
    "--file", metavar="PATH", type=UTF8, help="When this file of the workspace is created or changed."
)
@click.option("--pid", metavar="N", type=UTF8, help="When this process has ended.")
@click.option("--after", metavar="ID2", type=UTF8, help="When that goal is over: done, aborted or deleted.")
@click.option(
    "--ceiling",
    metavar="SPAN",
    type=UTF8,
    help="Wake it anyway after so long, with --file, --pid and --after. [default: 7d]",
)
@click.option("--remove", metavar="N", type=UTF8, help="Wait for this one no longer.")
@click.option("--list", "list_", is_flag=True, help="Only show what it waits for.")
@common  # fmt: skip
def schedule(goal_id: str, common: Common, **given: Any) -> int:
    """Say what wakes a goal. Until the first of its wake sources comes it is not due; several may be open.

    A schedule wakes active goals only. A tick that is missed, because nothing ran or because the goal was still
    running, is made up for once. A wakeup that was cut off (BACKEND_ERROR, INTERRUPTED) is retried all the same.
    """
    chosen = [name for name in (*_WHAT, "remove") if given[name] is not None]
    if len(chosen) + given["list_"] > 1:
        names = ", ".join(f"--{name}" for name in (*_WHAT, "remove"))
        raise click.UsageError(f"Only one of {names} or --list can be given at a time.")
    if given["zone"] is not None and given["cron"] is None:
        raise click.UsageError("--zone is of --cron.")
    if given["ceiling"] is not None and not any(given[name] is not None for name in _WATCHED):
        raise click.UsageError("--ceiling is of --file, --pid and --after: the others come by the clock.")
    if not chosen:
        return _list(goal_id, common)
    with changing(common, goal_id) as (store, goal):
        if given["remove"] is not None:
            source = schedules.unschedule(store, goal, given["remove"])
        else:
            source = schedules.schedule(store, goal, _planned(store, goal, given))
        goal = goals.get(store, goal.id)
    found = wake_sources.described(source)
    if common.json:
        say_json({"id": goal.uid, "status": goal.status.value, "wake_source": found})
    elif not common.quiet:
        say(f"{goal.uid}: {sources.line(found)}")
        if goal.status is not GoalStatus.ACTIVE and given["remove"] is None:
            say(f"{goal.uid}: is {goal.status}, so nothing wakes it until it is active again")
    return 0


def _list(goal_id: str, common: Common) -> int:
    with reading(common, goal_id) as (store, goal):
        found = wake_sources.of_goal(store, goal)
    if common.json:
        say_json(found)
    elif found:
        for source in found:
            say(sources.line(source))
    elif not common.quiet:
        say(f"{goal.uid}: is {goal.status}, and waits for nothing")
    return 0


def _planned(store: Store, goal: Goal, given: dict[str, Any]) -> Planned:
    now = store.clock.now()
    if given["at"] is not None:
        return schedules.at_time(given["at"], now)
    if given["every"] is not None:
        return schedules.every(given["every"], now)
    if given["cron"] is not None:
        return schedules.by_cron(given["cron"], _zone(given["zone"]), now)
    ceiling = CEILING if given["ceiling"] is None else schedules.parse_ceiling(given["ceiling"])
    return _watched(store, goal, given, ceiling)


def _watched(store: Store, goal: Goal, given: dict[str, Any], ceiling: timedelta) -> Planned:
    if given["file"] is not None:
        return schedules.on_file(store, goal, given["file"], ceiling)
    if given["pid"] is not None:
        return schedules.on_process(store, goal, _pid(given["pid"]), ceiling)
    return schedules.on_goal(store, given["after"], ceiling)


def _pid(text: str) -> int:
    plain = text.strip()
    if not (plain.isascii() and plain.isdigit() and len(plain) < 10):
        raise BadInput("pid", text, "the number of a process that runs on this machine")
    return int(plain)


def _zone(given: str | None) -> str:
    """The zone that a cron line is meant in, by name."""
    found = given if given is not None else local_zone(os.environ)
    if found is None:
        expected = "a zone with a name, such as --zone Europe/Berlin; this machine's cannot be told"
        raise BadInput("zone", os.environ.get("TZ", ""), expected)
    return found
