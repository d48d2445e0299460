"""`new` and `edit`: what a goal asks for."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from goalmode.cli.options import (
    UTF8,
    Common,
    common,
    given_text,
    model_options,
    refuse_credentials,
    together,
)
from goalmode.cli.output import remark, say, say_json
from goalmode.cli.stores import changing, command_here, writing
from goalmode.domain.budget import Limits
from goalmode.domain.clock import SystemClock
from goalmode.domain.contract import Requirement
from goalmode.domain.goal import ContextPolicy, Goal, GoalSettings, GoalSpec
from goalmode.domain.workflow import Known, Workflow
from goalmode.errors import BadInput
from goalmode.orchestrator.goals import (
    LANGUAGES,
    checked,
    create_goal,
    edit_goal,
    parse_count,
    parse_deadline,
    parse_seconds,
)
from goalmode.settings import Settings, load_settings, resolve_profile
from goalmode.state.store import Store
from goalmode.tools.builtin import builtin_tools
from goalmode.workflows.load import SHIPPED, load_workflow, shipped

_contract = together(
    click.option("--deliverable", "deliverables", metavar="PATH", multiple=True, type=UTF8,
                 help="A file of the workspace that must be there at the end, and not be empty. Repeatable."),
    click.option("--check", "checks", metavar="CMD", multiple=True, type=UTF8,
                 help="A shell command that must exit 0 at the end. Repeatable."),
    click.option("--require", "requirements", metavar="TEXT", multiple=True, type=UTF8,
                 help="A requirement in words, for which evidence must be cited. Repeatable."),
)  # fmt: skip


@click.command()
@click.argument("objective", type=UTF8)
@click.option("--workspace", metavar="DIR", required=True, type=UTF8, help="The directory to work in.")
@_contract
@model_options
@click.option("--max-turns", metavar="N", default="180", help="Turns of one wakeup. [default: 180]")
@click.option("--turn-budget", metavar="N", help="Turns of the whole goal.")
@click.option("--wakeup-budget", metavar="N", help="Wakeups of the goal.")
@click.option(
    "--token-budget", metavar="N", help="Tokens of the goal, such as 500k: input - cached + output."
)
@click.option(
    "--time-budget", metavar="SPAN", help="Working time, such as 3h; waiting and sleep do not count."
)
@click.option("--deadline", metavar="ISO", help="A time after which no call is made.")
@click.option("--until-budget", is_flag=True, help="Go on improving until a limit is reached.")
@click.option(
    "--workflow",
    metavar="NAME|FILE",
    default="pursue",
    type=UTF8,
    help="pursue, polish (create, then verify and improve in turn), or a TOML file. [default: pursue]",
)
@click.option(
    "--early-turns",
    metavar="N",
    default="3",
    help="Turns in which a reply without a tool call is an early stop. [default: 3]",
)
@click.option(
    "--max-recoveries", metavar="N", default="2", help="Recovery prompts of one wakeup. [default: 2]"
)
@click.option("--lang", metavar="en|zh", default="en", help="Language of the prompts. [default: en]")
@click.option(
    "--context-policy",
    metavar="rebuild|replay",
    default="rebuild",
    help="replay is for comparison only. [default: rebuild]",
)
@click.option("--context-tokens", metavar="N", help="Bound on a wakeup's first request.")
@click.option(
    "--work-window",
    metavar="N",
    help="Tokens a conversation grows to before it begins anew. [default: 70 % of the model's window, at most 64000]",
)
@click.option(
    "--tools", metavar="A,B", type=UTF8, help="The only tools allowed beside those that save state."
)
@click.option("--no-shell", is_flag=True, help="Every tool but the shell.")
@common  # fmt: skip
def new(objective: str, workspace: str, common: Common, **given: Any) -> int:
    """Create a goal and print its id. OBJECTIVE is a text, - for standard input, or @FILE.

    Nothing runs yet: `goalmode run ID` wakes it.
    """
    now = SystemClock().now()
    configured = load_settings(common.config, os.environ)
    spec = GoalSpec(
        given_text(objective, "objective"),
        workspace,
        _requirements(given),
        tuple(given["deliverables"]),
        _limits(given, now),
        _settings(given, configured),
    )
    profile = resolve_profile(
        configured, spec.settings.model, spec.settings.base_url, spec.settings.api_key_env
    )
    checked(spec, now)  # Before a store is made: what is refused leaves nothing behind.
    with writing(common) as store:
        goal = create_goal(store, spec)
    if common.json:
        say_json({"id": goal.uid}, indent=None)
    else:
        say(goal.uid)
    if not common.quiet:
        _explain(goal, profile.api_key_env, common)
    return 0


@click.command()
@click.argument("goal_id", metavar="ID", type=UTF8)
@click.option("--objective", metavar="TEXT|-|@FILE", type=UTF8, help="A new objective.")
@_contract
@click.option(
    "--drop",
    metavar="ID|PATH",
    multiple=True,
    type=UTF8,
    help="A requirement (R1) or a deliverable that is no longer wanted. Repeatable.",
)
@common  # fmt: skip
def edit(goal_id: str, objective: str | None, drop: Sequence[str], common: Common, **given: Any) -> int:
    """Change what a goal asks for. A running wakeup is told; a goal that was done is open again."""
    with changing(common, goal_id) as (store, goal):
        goal = _edited(store, goal, objective, drop, given)
    if common.json:
        say_json({"id": goal.uid, "objective_revision": goal.revision, "status": goal.status.value})
    elif not common.quiet:
        say(f"{goal.uid}: changed, revision {goal.revision}, {goal.status}")
    return 0


def _edited(
    store: Store, goal: Goal, objective: str | None, drop: Sequence[str], given: dict[str, Any]
) -> Goal:
    paths = [d.path for d in goal.deliverables]
    unknown = [name for name in drop if name not in paths and name not in [r.id for r in goal.requirements]]
    if unknown:
        have = ", ".join([r.id for r in goal.requirements] + paths) or "nothing to drop"
        raise BadInput("drop", unknown[0], f"one of the contract's: {have}")
    requirements = [*(r for r in goal.requirements if r.id not in drop), *_requirements(given)]
    deliverables = [*(p for p in paths if p not in drop), *given["deliverables"]]
    return edit_goal(
        store,
        goal,
        objective=None if objective is None else given_text(objective, "objective"),
        requirements=requirements if requirements != list(goal.requirements) else None,
        deliverables=deliverables if deliverables != paths else None,
    )


def _requirements(given: dict[str, Any]) -> tuple[Requirement, ...]:
    words = [Requirement("", text) for text in given["requirements"]]
    return (*words, *(Requirement("", command, command) for command in given["checks"]))


def _limits(given: dict[str, Any], now: datetime) -> Limits:
    def count(name: str) -> int | None:
        return None if given[name] is None else parse_count(given[name], name.replace("_", "-"))

    time, deadline = given["time_budget"], given["deadline"]
    return Limits(
        turns=count("turn_budget"),
        wakeups=count("wakeup_budget"),
        tokens=count("token_budget"),
        active_seconds=None if time is None else parse_seconds(time, "time-budget"),
        deadline=None if deadline is None else parse_deadline(deadline, "deadline", now),
    )


def _settings(given: dict[str, Any], configured: Settings) -> GoalSettings:
    refuse_credentials(given["base_url"] or "")
    policies = [policy.value for policy in ContextPolicy]
    if given["context_policy"] not in policies:
        raise BadInput("context-policy", given["context_policy"], " or ".join(policies))
    bounds = {
        name: None if given[name] is None else parse_count(given[name], name.replace("_", "-"))
        for name in ("context_tokens", "work_window")
    }
    return GoalSettings(
        model=given["model"] or "",
        base_url=given["base_url"] or "",
        api_key_env=given["api_key_env"] or "",
        max_turns=parse_count(given["max_turns"], "max-turns"),
        early_turns=parse_count(given["early_turns"], "early-turns"),
        max_recoveries=parse_count(given["max_recoveries"], "max-recoveries"),
        lang=given["lang"],
        policy=ContextPolicy(given["context_policy"]),
        tools=_tools(given["tools"], given["no_shell"]),
        context_tokens=bounds["context_tokens"],
        work_window=bounds["work_window"],
        until_budget=given["until_budget"],
        workflow=_workflow(given, configured),
    )


def _workflow(given: dict[str, Any], configured: Settings) -> Workflow:
    """The workflow, its movements held to the tools and the templates that there are."""
    if given["workflow"] in SHIPPED:
        return shipped(given["workflow"])
    from goalmode.wiring import user_prompts

    templates = user_prompts(configured).movements(given["lang"]) if given["lang"] in LANGUAGES else None
    return load_workflow(given["workflow"], Known([tool.name for tool in builtin_tools()], templates))


def _tools(listed: str | None, no_shell: bool) -> tuple[str, ...] | None:
    """The names allowed, each known; None for all."""
    known = [tool.name for tool in builtin_tools()]
    if listed is None:
        return tuple(name for name in known if name != "shell") if no_shell else None
    names = [name.strip() for name in listed.split(",") if name.strip()]
    unknown = [name for name in names if name not in known]
    if unknown or not names:
        raise BadInput("tools", unknown[0] if unknown else listed, f"names out of: {', '.join(known)}")
    return tuple(name for name in names if not (no_shell and name == "shell"))


def _explain(goal: Goal, key_name: str, common: Common) -> None:
    """Say what completion will rest on, and what an unattended goal may do."""
    checks = sum(r.check is not None for r in goal.requirements)
    words = len(goal.requirements) - checks
    rests = [
        *(
            [_many(len(goal.deliverables), "file that must be there and not be empty")]
            * bool(goal.deliverables)
        ),
        *([_many(checks, "command that must exit 0")] * bool(checks)),
        *([_many(words, "requirement in words, for which evidence must be cited")] * bool(words)),
    ]
    if goal.settings.until_budget:
        remark("It ends only by a limit or by you.")
    elif rests:
        remark(f"Completion rests on: {'; '.join(rests)}.")
    else:
        remark(
            "Nothing can be checked: a claim of completion needs only to cite a command that was run or a file "
            "that is there. --deliverable and --check say more."
        )
    if goal.settings.tools is None or "shell" in goal.settings.tools:
        remark(
            f"Its shell runs as you in {Path(goal.workspace)}, unattended and without a sandbox: it can do what you "
            "can, and nothing protects the contract from it. --no-shell leaves it out."
        )
    if key_name and not os.environ.get(key_name):
        remark(f"${key_name} is not set; it is needed to run.")
    remark(f"To run it: {command_here(common, f'goalmode run {goal.uid}')}")


def _many(count: int, what: str) -> str:
    noun, rest = what.split(" ", 1)
    return f"{count} {noun if count == 1 else noun + 's'} {rest}"
