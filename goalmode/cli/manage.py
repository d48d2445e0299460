"""`pause`, `abort` and `delete`."""

from __future__ import annotations

import sys

import click

from goalmode.cli.options import UTF8, Common, common
from goalmode.cli.output import say, say_json
from goalmode.cli.stores import changing
from goalmode.domain.goal import Control
from goalmode.domain.text import one_line
from goalmode.orchestrator.goals import delete_goal, stop_goal


@click.command()
@click.argument("goal_id", metavar="ID", type=UTF8)
@common
def pause(goal_id: str, common: Common) -> int:
    """Stop a goal until it is resumed. A running wakeup ends within a second."""
    return _stop(goal_id, Control.PAUSE, common)


@click.command()
@click.argument("goal_id", metavar="ID", type=UTF8)
@common
def abort(goal_id: str, common: Common) -> int:
    """Stop a goal for good: from then on it can only be read."""
    return _stop(goal_id, Control.ABORT, common)


@click.command()
@click.argument("goal_id", metavar="ID", type=UTF8)
@click.option("--yes", is_flag=True, help="Do not ask.")
@common
def delete(goal_id: str, yes: bool, common: Common) -> int:
    """Remove a goal and all that is stored of it. Its workspace is not touched."""
    with changing(common, goal_id) as (store, goal):
        if not yes and not sys.stdin.isatty():
            raise click.UsageError("delete asks first, and there is no terminal to ask on: add --yes.")
        title = one_line(goal.objective, 60)
        if not yes and not click.confirm(f"Delete goal {goal.uid} ({title}) and its history?", err=True):
            return 1
        delete_goal(store, goal)
    if common.json:
        say_json({"id": goal.uid, "deleted": True})
    elif not common.quiet:
        say(f"{goal.uid}: deleted")
    return 0


def _stop(goal_id: str, control: Control, common: Common) -> int:
    with changing(common, goal_id) as (store, goal):
        goal, running = stop_goal(store, goal, control)
    if common.json:
        say_json({"id": goal.uid, "status": goal.status.value, "control": goal.control.value})
    elif not common.quiet:
        state = f"the running wakeup ends within a second ({control})" if running else str(goal.status)
        say(f"{goal.uid}: {state}")
    return 0
