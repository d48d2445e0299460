"""`list`, `show` and `why`: they read, and write nothing."""

from __future__ import annotations

import click

from goalmode.cli import pages
from goalmode.cli.options import UTF8, Common, common
from goalmode.cli.output import say, say_json
from goalmode.cli.stores import looking, reading
from goalmode.domain.clock import SystemClock
from goalmode.inspection import listing
from goalmode.inspection import show as shows
from goalmode.inspection import why as reasons
from goalmode.state import reading as rows


@click.command("list")
@click.option("--limit", metavar="N", type=click.IntRange(1), default=50, show_default=True)
@click.option("--offset", metavar="N", type=click.IntRange(0), default=0, show_default=True)
@common
def list_goals(limit: int, offset: int, common: Common) -> int:
    """List the goals, newest first."""
    found = []
    if rows.exists(common.store):
        with looking(common) as store:
            found = listing.listing(store, limit=limit, offset=offset)
    if common.json:
        say_json(found)
    elif found:
        pages.goals(found, SystemClock().now())
    elif not common.quiet:
        say("There are no goals yet." if offset == 0 else "There are no further goals.")
    return 0


@click.command()
@click.argument("goal_id", metavar="ID", type=UTF8)
@common
def show(goal_id: str, common: Common) -> int:
    """Show a goal: contract, limits, state, wakeups."""
    with reading(common, goal_id) as (store, goal):
        found = shows.show(store, goal.id)
    if common.json:
        say_json(found)
    else:
        pages.goal(found)
    return 0


@click.command()
@click.argument("goal_id", metavar="ID", type=UTF8)
@click.option(
    "--wakeup", metavar="N", type=click.IntRange(1), help="Why this wakeup ended, not the last one."
)
@common
def why(goal_id: str, wakeup: int | None, common: Common) -> int:
    """Say why a goal is where it is, and what makes it go on."""
    with reading(common, goal_id) as (store, goal):
        found = reasons.why(store, goal.id, wakeup=wakeup)
    if common.json:
        say_json(found)
    else:
        pages.why(found, common)
    return 0
