"""`list`, `show`, `turns`, `context` and `why`: they read, and write nothing."""

from __future__ import annotations

import os
from dataclasses import replace

import click

from goalmode.cli import pages
from goalmode.cli.options import UTF8, Common, common
from goalmode.cli.output import exactly, say, say_json
from goalmode.cli.stores import reading
from goalmode.domain.clock import SystemClock
from goalmode.domain.goal import Goal
from goalmode.inspection import contexts, listing
from goalmode.inspection import show as shows
from goalmode.inspection import turns as turn_lists
from goalmode.inspection import why as reasons
from goalmode.settings import load_settings
from goalmode.state import reading as rows
from goalmode.state import snapshot
from goalmode.state.reading import ContextSeen
from goalmode.state.store import Store
from goalmode.wiring import goal_profile, user_prompts, workshop


@click.command("list")
@click.option("--limit", metavar="N", type=click.IntRange(1), default=50, show_default=True)
@click.option("--offset", metavar="N", type=click.IntRange(0), default=0, show_default=True)
@common
def list_goals(limit: int, offset: int, common: Common) -> int:
    """List the goals, newest first."""
    found = []
    if rows.exists(common.store):
        with Store(common.store, readonly=True) as store:
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
@click.option("--wakeup", metavar="N", type=click.IntRange(1), help="Only those of one wakeup.")
@click.option("--full", is_flag=True, help="With texts, arguments and results, whole.")
@common
def turns(goal_id: str, wakeup: int | None, full: bool, common: Common) -> int:
    """Show a goal's model calls and tool calls, oldest first."""
    with reading(common, goal_id) as (store, goal):
        found = turn_lists.turns(store, goal, wakeup=wakeup, full=full)
    if common.json:
        say_json(found)
    elif found:
        pages.turns(found)
    elif not common.quiet:
        say("There are no turns yet.")
    return 0


@click.command()
@click.argument("goal_id", metavar="ID", type=UTF8)
@click.option("--wakeup", metavar="N", type=click.IntRange(1), help="Of this wakeup, not the last one.")
@click.option("--next", "next_", is_flag=True, help="What the next wakeup would see, as things stand.")
@common
def context(goal_id: str, wakeup: int | None, next_: bool, common: Common) -> int:
    """Print exactly what the model saw at the start of a wakeup.

    With --json also what it saw each time that the conversation had filled its work window and began anew.
    """
    if next_ and wakeup is not None:
        raise click.UsageError("--wakeup and --next exclude each other.")
    with reading(common, goal_id) as (store, goal):
        if next_:
            number, found = _next(store, goal, common)
        else:
            number, found = contexts.stored_contexts(store, goal, wakeup, later=common.json)
    if common.json:
        say_json(contexts.described(number, found))
    else:
        exactly(found[0].text)
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


def _next(store: Store, goal: Goal, common: Common) -> tuple[int, list[ContextSeen]]:
    """What the next wakeup would see. Its model must be known, its key need not."""
    settings = load_settings(common.config, os.environ)
    shop = workshop(goal, goal_profile(goal, settings), prompts=user_prompts(settings))
    seen = snapshot.snapshot(store, goal.id, now=store.clock.now())
    seen = replace(seen, observed=shop.observe(goal))
    return seen.wakeup, [contexts.as_seen(shop.render(seen).stored())]
