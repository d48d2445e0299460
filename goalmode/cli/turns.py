"""`turns`: a goal's model calls and tool calls, all of them, a page of them, or as they happen."""

from __future__ import annotations

import click

from goalmode.cli import pages
from goalmode.cli.options import UTF8, Common, common
from goalmode.cli.output import remark, say, say_json, say_json_list
from goalmode.cli.stores import reading
from goalmode.domain.goal import Goal
from goalmode.inspection import follow as following
from goalmode.inspection import turns as turn_lists
from goalmode.state.store import Store


@click.command()
@click.argument("goal_id", metavar="ID", type=UTF8)
@click.option("--wakeup", metavar="N", type=click.IntRange(1), help="Only those of one wakeup.")
@click.option("--full", is_flag=True, help="With texts, arguments and results, whole.")
@click.option("--limit", metavar="N", type=click.IntRange(1), help="At most so many.")
@click.option("--offset", metavar="N", type=click.IntRange(0), default=0, help="Leave out the first so many.")
@click.option("--last", metavar="N", type=click.IntRange(0), help="Only the newest so many.")
@click.option("--follow", "-f", is_flag=True,
              help="And those that come, until no wakeup runs or is due. First the newest 10, or --last.")  # fmt: skip
@common
def turns(
    goal_id: str,
    wakeup: int | None,
    full: bool,
    limit: int | None,
    offset: int,
    last: int | None,
    follow: bool,
    common: Common,
) -> int:
    """Show a goal's model calls and tool calls, oldest first."""
    if (limit is not None or offset) and (follow or last is not None):
        raise click.UsageError("--limit and --offset go with neither --last nor --follow.")
    with reading(common, goal_id) as (store, goal):
        if follow:
            return _follow(store, goal, wakeup, full, following.BEGIN_WITH if last is None else last, common)
        if last is not None:
            found = iter(turn_lists.turns(store, goal, wakeup=wakeup, full=full, limit=last, newest=True))
        else:
            found = turn_lists.each(store, goal, wakeup=wakeup, full=full, limit=limit, offset=offset)
        if common.json:
            say_json_list(found)
            return 0
        shown = False
        for turn in found:
            pages.turns([turn])
            shown = True
    if not shown and not common.quiet:
        say(
            "There are no further turns."
            if offset
            else "There are no turns yet."
            if wakeup is None
            else f"There are no turns of a wakeup {wakeup}."
        )
    return 0


def _follow(store: Store, goal: Goal, wakeup: int | None, full: bool, last: int, common: Common) -> int:
    """Print the turns as they come, in JSON one a line. Ctrl-C is the ordinary way to end it."""
    import anyio

    async def tail() -> None:
        async for turn in following.follow(store, goal, wakeup=wakeup, full=full, last=last):
            if common.json:
                say_json(turn, indent=None)
            else:
                pages.turns([turn])

    try:
        anyio.run(tail)
    except KeyboardInterrupt:
        return 0
    if not common.quiet:
        remark(f"{goal.uid}: no wakeup runs, and none is due")
    return 0
