"""`edit`: what a goal asks for from now on."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from goalmode.cli.contract_options import (
    check_seconds,
    check_timeout,
    contract_options,
    in_json,
    requirements_of,
    tell,
)
from goalmode.cli.mcp_options import chosen, mcp_options
from goalmode.cli.options import UTF8, Common, common, given_text
from goalmode.cli.output import say, say_json
from goalmode.cli.sandbox_options import asked, changes, sandbox_options, usable
from goalmode.cli.stores import changing
from goalmode.domain.goal import Goal, GoalSettings
from goalmode.errors import BadInput
from goalmode.orchestrator.goals import edit_goal
from goalmode.settings import Settings, load_settings
from goalmode.state.store import Store


@click.command()
@click.argument("goal_id", metavar="ID", type=UTF8)
@click.option("--objective", metavar="TEXT|-|@FILE", type=UTF8, help="A new objective.")
@contract_options
@check_timeout
@click.option(
    "--drop",
    metavar="ID|PATH|GLOB",
    multiple=True,
    type=UTF8,
    help="A requirement (R1), deliverable or protection that is no longer wanted. Repeatable.",
)
@mcp_options
@sandbox_options
@common  # fmt: skip
def edit(goal_id: str, objective: str | None, drop: Sequence[str], common: Common, **given: Any) -> int:
    """Change what a goal asks for. A running wakeup is told; a goal that was done is open again."""
    needed = given["mcp"] or changes(given)  # What is wrong with it is the business of those edits alone.
    configured = load_settings(common.config, os.environ) if needed else Settings()
    with changing(common, goal_id) as (store, before):
        given["servers"] = chosen(given, configured, before.workspace)
        settings = _edited_settings(before.settings, given)
        if changes(given):
            usable(before.workspace, settings, configured, common)
        goal = _edited(store, before, objective, drop, given, settings)
    if common.json:
        stands = {"objective_revision": goal.revision, "status": goal.status.value}
        say_json({"id": goal.uid, **stands, **in_json(goal, before)})
    elif not common.quiet:
        say(f"{goal.uid}: changed, revision {goal.revision}, {goal.status}")
    if not common.quiet:
        tell(goal, common, before)
    return 0


def _edited(
    store: Store,
    goal: Goal,
    objective: str | None,
    drop: Sequence[str],
    given: dict[str, Any],
    settings: GoalSettings,
) -> Goal:
    paths = [d.path for d in goal.deliverables]
    protections = dict.fromkeys(name for file in goal.protected for name in (file.path, file.named_by))
    known = list(dict.fromkeys([*(r.id for r in goal.requirements), *paths, *protections]))
    unknown = [name for name in drop if name not in known]
    if unknown:
        have = ", ".join(known[:20]) + (", …" if len(known) > 20 else "") or "nothing to drop"
        raise BadInput("drop", unknown[0], f"one of the contract's: {have}")
    requirements = [*(r for r in goal.requirements if r.id not in drop), *requirements_of(given)]
    deliverables = [*(p for p in paths if p not in drop), *given["deliverables"]]
    return edit_goal(
        store,
        goal,
        objective=None if objective is None else given_text(objective, "objective"),
        requirements=requirements if requirements != list(goal.requirements) else None,
        deliverables=deliverables if deliverables != paths else None,
        protect=given["protect"],
        unprotect=drop,
        settings=settings,
    )


def _edited_settings(before: GoalSettings, given: dict[str, Any]) -> GoalSettings:
    return replace(
        before,
        check_seconds=check_seconds(given, before),
        mcp=before.mcp if given["servers"] is None else given["servers"],
        **asked(given, before),
    )
