"""`new`: what a goal asks for."""

from __future__ import annotations

import os
from datetime import datetime
from typing import Any

import click

from goalmode.cli.contract_options import (
    check_seconds,
    check_timeout,
    contract_options,
    in_json,
    requirements_of,
    resting,
    tell,
)
from goalmode.cli.mcp_options import chosen, may_be_named, mcp_options, tell_servers
from goalmode.cli.options import (
    UTF8,
    Common,
    common,
    given_text,
    model_options,
    refuse_credentials,
)
from goalmode.cli.output import remark, say, say_json
from goalmode.cli.sandbox_options import asked, sandbox_options, told, usable
from goalmode.cli.stores import command_here, reading, writing
from goalmode.domain.budget import Limits
from goalmode.domain.clock import SystemClock
from goalmode.domain.goal import ContextPolicy, Goal, GoalSettings, GoalSpec
from goalmode.domain.outside import PREFIX
from goalmode.domain.profile import ModelProfile
from goalmode.domain.wake import Planned
from goalmode.domain.workflow import Known, Workflow
from goalmode.errors import BadInput
from goalmode.orchestrator.costs import parse_dollars, refuse_unpriced
from goalmode.orchestrator.goals import (
    LANGUAGES,
    checked,
    create_goal,
    parse_count,
    parse_deadline,
    parse_seconds,
)
from goalmode.orchestrator.schedule import on_goal
from goalmode.settings import Settings, api_key, load_settings, resolve_profile
from goalmode.state.store import Store
from goalmode.tools.builtin import builtin_tools
from goalmode.workflows.load import SHIPPED, load_workflow, shipped


@click.command()
@click.argument("objective", type=UTF8)
@click.option("--workspace", metavar="DIR", required=True, type=UTF8, help="The directory to work in.")
@contract_options
@check_timeout
@model_options
@click.option("--max-turns", metavar="N", default="180", help="Turns of one wakeup. [default: 180]")
@click.option("--turn-budget", metavar="N", help="Turns of the whole goal.")
@click.option("--wakeup-budget", metavar="N", help="Wakeups of the goal.")
@click.option(
    "--token-budget", metavar="N", help="Tokens of the goal, such as 500k: input - cached + output."
)
@click.option("--cost-budget", metavar="DOLLARS", help="What the goal's model calls may cost, such as 2.50.")
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
@mcp_options
@sandbox_options
@click.option("--no-user-tools", is_flag=True, help="No long-term memory, and no settlement into it.")
@click.option("--autonomous", is_flag=True, help="An unattended flow: it does not settle when it ends.")
@click.option(
    "--after", metavar="ID", type=UTF8, help="Not due before that goal is over; `schedule` says more."
)
@common  # fmt: skip
def new(objective: str, common: Common, **given: Any) -> int:
    """Create a goal and print its id. OBJECTIVE is a text, - for standard input, or @FILE.

    Nothing runs yet: `goalmode run ID` wakes it.
    """
    now = SystemClock().now()
    configured = load_settings(common.config, os.environ)
    spec = GoalSpec(
        given_text(objective, "objective"),
        given["workspace"],
        requirements_of(given),
        tuple(given["deliverables"]),
        _limits(given, now),
        _settings(given, configured),
        tuple(given["protect"]),
    )
    profile = resolve_profile(
        configured, spec.settings.model, spec.settings.base_url, spec.settings.api_key_env
    )
    refuse_unpriced(spec.limits, profile)
    # Before a store is made: what is refused leaves nothing behind.
    sandbox = usable(checked(spec, now).workspace, spec.settings, configured, common)
    if given["after"] is not None:
        with reading(common, given["after"]):
            pass
    with writing(common) as store:
        goal = create_goal(store, spec, waits_for=_waits_for(store, given["after"]))
    if common.json:
        say_json({"id": goal.uid, **in_json(goal)}, indent=None)
    else:
        say(goal.uid)
    if not common.quiet:
        _explain(goal, configured, common, _key_told(profile), told(goal, sandbox, configured))
    return 0


def _waits_for(store: Store, after: str | None) -> tuple[Planned, ...]:
    return () if after is None else (on_goal(store, after),)


def _limits(given: dict[str, Any], now: datetime) -> Limits:
    def count(name: str) -> int | None:
        return None if given[name] is None else parse_count(given[name], name.replace("_", "-"))

    time, deadline, cost = given["time_budget"], given["deadline"], given["cost_budget"]
    return Limits(
        turns=count("turn_budget"),
        wakeups=count("wakeup_budget"),
        tokens=count("token_budget"),
        active_seconds=None if time is None else parse_seconds(time, "time-budget"),
        deadline=None if deadline is None else parse_deadline(deadline, "deadline", now),
        cost_micro=None if cost is None else parse_dollars(cost, "cost-budget"),
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
        user_tools=not given["no_user_tools"],
        autonomous=given["autonomous"],
        check_seconds=check_seconds(given, GoalSettings()),
        mcp=chosen(given, configured, given["workspace"]),
        **asked(given, GoalSettings()),
    )


def _workflow(given: dict[str, Any], configured: Settings) -> Workflow:
    """The workflow, its movements held to the tools and the templates that there are."""
    if given["workflow"] in SHIPPED:
        return shipped(given["workflow"])
    from goalmode.configured import user_prompts

    templates = user_prompts(configured).movements(given["lang"]) if given["lang"] in LANGUAGES else None
    return load_workflow(given["workflow"], Known([tool.name for tool in builtin_tools()], templates))


def _tools(listed: str | None, no_shell: bool) -> tuple[str, ...] | None:
    """The names allowed, each known; None for all."""
    known = [tool.name for tool in builtin_tools()]
    if listed is None:
        return (*(name for name in known if name != "shell"), f"{PREFIX}*") if no_shell else None
    names = [name.strip() for name in listed.split(",") if name.strip()]
    unknown = may_be_named(names, known)
    if unknown or not names:
        have = f"names out of: {', '.join(known)}; or those of MCP servers, such as {PREFIX}git__*"
        raise BadInput("tools", unknown or listed, have)
    if no_shell and "shell" in names:
        raise BadInput("no-shell", "set", f"left out where --tools names the shell ({listed})")
    return tuple(names)


def _explain(goal: Goal, configured: Settings, common: Common, key: str, shell: str) -> None:
    """Say what completion will rest on, and what an unattended goal may do."""
    remark("It ends only by a limit or by you." if goal.settings.until_budget else resting(goal))
    tell(goal, common)
    tell_servers(goal, configured)
    if goal.settings.tools is None or "shell" in goal.settings.tools:
        remark(shell)
    if key:
        remark(key)
    remark(f"To run it: {command_here(common, f'goalmode run {goal.uid}')}")


def _key_told(profile: ModelProfile) -> str:
    """What is to be said of the model's key where it is not set; empty if it is, or if none was asked for."""
    name = profile.api_key_env
    if not name or os.environ.get(name):
        return ""
    try:
        api_key(profile, os.environ)
    except BadInput:
        return f"${name} is not set; it is needed to run."
    return f"${name} is not set; the model is asked without a key."
