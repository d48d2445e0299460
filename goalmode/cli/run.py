"""`run`, `wake` and `resume`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import click

from goalmode.cli.logs import log_options
from goalmode.cli.options import UTF8, Common, common, model_options, refuse_credentials
from goalmode.cli.output import complain, say, say_json
from goalmode.cli.running import Runner, configured_for, must_be_known
from goalmode.cli.stores import changing, command_here
from goalmode.domain.exits import EXIT_FACTS, Exit, ExitReason, GoalStatus, SkipReason
from goalmode.domain.goal import Goal, GoalSettings
from goalmode.inspection.endings import exit_code, remedy, told
from goalmode.inspection.seen import known_reason, shown
from goalmode.orchestrator.goals import parse_count, parse_deadline, parse_seconds, raised, resume_goal
from goalmode.orchestrator.run import Ending
from goalmode.orchestrator.skip import Skip, facts_of, refusal
from goalmode.state import goals, reading
from goalmode.state.store import Store

MAX_WAIT = "1h"

_GOAL = click.argument("goal_id", metavar="ID", type=UTF8)
_ON_ENDING = click.option(
    "--on-ending", metavar="CMD", type=UTF8,
    help="Run a shell command after each ending; it finds GOALMODE_GOAL, GOALMODE_WAKEUP, GOALMODE_EXIT_REASON, "
    "GOALMODE_EXIT_DETAIL and GOALMODE_STATUS in its environment.",
)  # fmt: skip
_MAX_WAIT = click.option(
    "--max-wait", metavar="SPAN", default=MAX_WAIT,
    help="Wait at most so long for the next wakeup, such as 10m. [default: 1h]",
)  # fmt: skip

_BUDGETS = {
    "turns": "turn_budget",
    "wakeups": "wakeup_budget",
    "tokens": "token_budget",
    "cost_micro": "cost_budget",
    "active_seconds": "time_budget",
}
"""Limits and the options that set them."""

_MODEL = ("model", "base_url", "api_key_env")
"""Settings, and options, that say which model is asked."""

_STATUS_SKIPS = {
    SkipReason.WAITING, SkipReason.PAUSED, SkipReason.BLOCKED, SkipReason.EXHAUSTED, SkipReason.DONE,
    SkipReason.ABORTED,
}  # fmt: skip
"""Skips because of the goal's status: they have the exit code of what brought it there."""


@click.command()
@_GOAL
@_MAX_WAIT
@_ON_ENDING
@log_options
@common
def run(goal_id: str, max_wait: str, on_ending: str | None, common: Common) -> int:
    """Wake a goal until it is done, waiting, blocked or spent. Back-offs are waited out."""
    seconds = parse_seconds(max_wait, "max-wait")
    return _with_runner(goal_id, common, on_ending, lambda runner: runner.run(seconds))


@click.command()
@_GOAL
@_ON_ENDING
@log_options
@common
def wake(goal_id: str, on_ending: str | None, common: Common) -> int:
    """Wake a goal exactly once, now, whenever it is due."""
    return _with_runner(goal_id, common, on_ending, Runner.wake_once)


@click.command()
@_GOAL
@click.option("--turn-budget", metavar="N|+N", help="Set the limit, or add to it.")
@click.option("--wakeup-budget", metavar="N|+N", help="Set the limit, or add to it.")
@click.option("--token-budget", metavar="N|+N", help="Set the limit, or add to it.")
@click.option("--cost-budget", metavar="N|+N", help="Set the limit in dollars, or add to it.")
@click.option("--time-budget", metavar="SPAN|+SPAN", help="Set the limit of working time, or add to it.")
@click.option("--deadline", metavar="ISO", help="Set the deadline.")
@click.option("--max-turns", metavar="N", help="Set the turns of one wakeup.")
@model_options
@click.option("--answer", metavar="TEXT", type=UTF8, help="Answer what the goal waits for.")
@click.option("--no-run", is_flag=True, help="Make it due only; something else wakes it.")
@_MAX_WAIT
@_ON_ENDING
@log_options
@common
def resume(
    goal_id: str, max_wait: str, on_ending: str | None, no_run: bool, common: Common, **given: Any
) -> int:
    """Let a stopped goal go on: with new limits, with an answer, or just again. Then run it."""
    seconds = parse_seconds(max_wait, "max-wait")
    if not no_run:
        return _with_runner(goal_id, common, on_ending, lambda runner: runner.run(seconds), given)
    with changing(common, goal_id) as (store, goal):
        changed = _changed(goal, given, store.clock.now())
        must_be_known(changed, common, chosen=any(given[name] is not None for name in _MODEL))
        goal = _resumed(store, goal, changed, given)
    if common.json:
        say_json({"id": goal.uid, "status": goal.status.value})
    elif not common.quiet:
        say(f"{goal.uid}: due now")
    return 0


def _with_runner(
    goal_id: str,
    common: Common,
    on_ending: str | None,
    body: Callable[[Runner], Ending],
    changes: dict[str, Any] | None = None,
) -> int:
    """Run a goal, resumed with `changes` first. What is wrong with its model is said before anything is changed."""
    with changing(common, goal_id) as (store, goal):
        ending: Ending | None = None
        if changes is None and goal.status is not GoalStatus.ACTIVE:
            ending = refusal(store, goal)  # Which takes no key to say.
            if ending is not None and ending.due_at is not None:
                ending = None  # It goes on by itself, and the runner knows how long to wait.
        if ending is None:
            changed = goal if changes is None else _changed(goal, changes, store.clock.now())
            configured = configured_for(changed, common)
            goal = goal if changes is None else _resumed(store, goal, changed, changes)
            ending = body(Runner(store, goal, configured, common, on_ending))
        goal = goals.get(store, goal.id)
        return (
            _ended(goal, ending, common)
            if isinstance(ending, Exit)
            else _skipped(store, goal, ending, common)
        )


def _changed(goal: Goal, given: dict[str, Any], now: datetime) -> Goal:
    """The goal with the limits and settings that are asked for. Nothing is stored."""
    changes = {limit: given[option] for limit, option in _BUDGETS.items() if given[option] is not None}
    limits = raised(goal.limits, changes)
    if given["deadline"] is not None:
        limits = replace(limits, deadline=parse_deadline(given["deadline"], "deadline", now))
    return replace(goal, limits=limits, settings=_settings(goal.settings, given))


def _resumed(store: Store, goal: Goal, changed: Goal, given: dict[str, Any]) -> Goal:
    answer = given["answer"]
    return resume_goal(store, goal, limits=changed.limits, settings=changed.settings, answer=answer)


def _settings(settings: GoalSettings, given: dict[str, Any]) -> GoalSettings:
    changes: dict[str, Any] = {name: given[name] for name in _MODEL if given.get(name) is not None}
    refuse_credentials(changes.get("base_url", ""))
    if given.get("max_turns") is not None:
        changes["max_turns"] = parse_count(given["max_turns"], "max-turns")
    return replace(settings, **changes)


def _ended(goal: Goal, ending: Exit, common: Common) -> int:
    """One line about the command's last ending: how to go on, on standard error; success on standard output."""
    facts = EXIT_FACTS[ending.reason]
    line = f"{goal.uid}: {told(ending.reason, ending.detail)}"
    if ending.reason is ExitReason.CURRENT_TASK_DONE:
        if not common.json:
            say(line)
        return facts.exit_code
    if goal.status is not facts.status:
        line += f"; the goal is {goal.status}"
        line += f": {goal.status_detail}" if goal.status_detail != ending.detail else ""
    complain(line + _go_on(goal, ending, common))
    return facts.exit_code


def _go_on(goal: Goal, ending: Exit | None, common: Common) -> str:
    reason, facts = (None, {}) if ending is None else (ending.reason, ending.facts)
    command = command_here(common, remedy(goal.uid, goal.status, reason, facts))
    return f"; to go on: {command}" if command else ""


def _skipped(store: Store, goal: Goal, skip: Skip, common: Common) -> int:
    """One line about why nothing ran. The exit code is that of the goal's last ending where the status says it all."""
    with store.reading() as connection:
        last = reading.last_wakeup(connection, goal.id)
    word = None if last is None else shown(store, last).exit_reason
    reason = None if last is None or word is None else known_reason(goal, last, word)
    if common.json:
        at = store.clock.now().isoformat()
        say_json({"kind": "skipped", "at": at, "goal": goal.uid, **facts_of(skip)}, indent=None)
    if skip.reason is SkipReason.DONE:
        if not common.json:
            say(f"{goal.uid}: is done: {skip.detail}; `goalmode edit` reopens it")
        return 0
    ending = None if last is None or reason is None else Exit(reason, last.exit_detail, last.exit_facts)
    line = f"{goal.uid}: not woken ({skip.reason}): {skip.detail}"
    if skip.reason in (*_STATUS_SKIPS, SkipReason.NOT_DUE):
        line += _go_on(goal, ending, common)
    complain(line)
    if skip.reason in _STATUS_SKIPS:
        return exit_code(goal.status, reason)
    return EXIT_FACTS[reason].exit_code if skip.reason is SkipReason.NOT_DUE and reason else 1
