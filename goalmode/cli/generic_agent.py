"""`generic-agent`: goals that GenericAgent wakes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import click

from goalmode.cli import findings
from goalmode.cli.interrupts import Interrupts
from goalmode.cli.options import UTF8, Common, common
from goalmode.cli.output import complain, remark, say, say_json
from goalmode.cli.progress import Progress, display
from goalmode.cli.stores import changing, reading, writing
from goalmode.domain.clock import SystemClock
from goalmode.domain.exits import EXIT_FACTS, Exit, GoalStatus
from goalmode.domain.goal import Goal
from goalmode.domain.redact import Redactor
from goalmode.domain.text import counted
from goalmode.inspection.endings import told
from goalmode.orchestrator.goals import create_goal, parse_seconds
from goalmode.orchestrator.run import Ending, run_goal
from goalmode.reflect import checkout, statefile
from goalmode.settings import load_settings
from goalmode.state.store import Store
from goalmode.tools.capabilities import hide_memory


@click.group("generic-agent")
def generic_agent() -> None:
    """Goals that GenericAgent wakes.

    In a checkout: python agentmain.py --reflect "$(goalmode generic-agent path)" --goal ID
    """


@generic_agent.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def path(as_json: bool) -> int:
    """Print the file for `agentmain.py --reflect`."""
    import goalmode.reflect

    # Not by importing it: it is GenericAgent's to run.
    file = str(Path(goalmode.reflect.__file__).with_name("module.py"))
    if as_json:
        say_json({"path": file}, indent=None)
    else:
        say(file)
    return 0


@generic_agent.command("import")
@click.argument("file", metavar="STATE.json", type=click.Path(path_type=Path))
@click.option(
    "--workspace", metavar="DIR", type=UTF8,
    help="The directory to work in; what is there is listed in the first context. [default: the file's own]",
)  # fmt: skip
@common
def import_(file: Path, workspace: str | None, common: Common) -> int:
    """Make a goal of a Goal Mode state file, and print its id. The file is not changed."""
    lang = "en" if os.environ.get("GA_LANG") == "en" else "zh"
    found = statefile.read(file, now=SystemClock().now(), lang=lang, workspace=workspace)
    with writing(common) as store:
        goal = create_goal(store, found.spec, earlier=found.earlier)
    if common.json:
        say_json({"id": goal.uid}, indent=None)
    else:
        say(goal.uid)
    if not common.quiet:
        _explain(goal)
    return 0


@generic_agent.command(short_help="Write a goal as a Goal Mode state file.")
@click.argument("goal_id", metavar="ID", type=UTF8)
@click.argument("file", metavar="[STATE.json]", required=False, type=click.Path(path_type=Path))
@common
def export(goal_id: str, file: Path | None, common: Common) -> int:
    """Write a goal as a Goal Mode state file, on standard output if no file is named. The goal stays as it is."""
    with reading(common, goal_id) as (_, goal):
        state = statefile.state_of(goal)
    if file is None:
        say_json(state)
        return 0
    statefile.write(file, state)
    if not common.quiet:
        awake = goal.status in (GoalStatus.ACTIVE, GoalStatus.WAITING_USER)
        first = (
            f"; pause it here before Goal Mode goes on with it: goalmode pause {goal.uid}" if awake else ""
        )
        remark(f"{goal.uid}: written{first}")
    return 0


@generic_agent.command()
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@common
def doctor(directory: Path, common: Common) -> int:
    """Check a checkout of GenericAgent, and say what will not work. Nothing of it is run."""
    return findings.told(list(checkout.findings(directory, os.environ)), common)


@generic_agent.command(short_help="Wake a goal with the package genericagent from PyPI.")
@click.argument("goal_id", metavar="ID", type=UTF8)
@click.option(
    "--llm-no",
    metavar="N",
    type=click.IntRange(0),
    default=0,
    help="Which model of its mykey.py. [default: 0]",
)
@click.option(
    "--max-wait", metavar="SPAN", default="1h", help="Wait at most so long for the next wakeup. [default: 1h]"
)
@common
def run(goal_id: str, llm_no: int, max_wait: str, common: Common) -> int:
    """Wake a goal with the package genericagent from PyPI, until it is done, waiting, blocked or spent."""
    from goalmode.reflect.installed import Driver, load

    seconds = parse_seconds(max_wait, "max-wait")
    with changing(common, goal_id) as (store, goal):
        hide_memory()
        driver = Driver(load(), store, goal, load_settings(common.config, os.environ), llm_no)
        return _ended(goal, _run(store, goal, driver.wake, seconds, common))


def _run(store: Store, goal: Goal, wake: Callable[..., Any], seconds: float, common: Common) -> Ending:
    progress = Progress(display(json=common.json, quiet=common.quiet, now=store.clock.now), Redactor())
    interrupts = Interrupts(lambda: None)

    def stop() -> Exit | None:
        return interrupts.asked

    async def once() -> Ending:
        ending: Ending = await wake(only_if_due=True, sink=progress, stop=stop)
        return ending

    async def until_over() -> Ending:
        return await run_goal(store, goal.id, once, max_wait_seconds=seconds, sink=progress, stop=stop)

    with interrupts:
        try:
            return anyio.run(until_over)
        finally:
            progress.close()


def _ended(goal: Goal, ending: Ending) -> int:
    if isinstance(ending, Exit):
        code = EXIT_FACTS[ending.reason].exit_code
        line = f"{goal.uid}: {told(ending.reason, ending.detail)}"
        say(line) if code == 0 else complain(line)
        return code
    complain(f"{goal.uid}: not woken ({ending.reason}): {ending.detail}")
    return 1


def _explain(goal: Goal) -> None:
    deadline = goal.limits.deadline
    assert deadline is not None
    left = counted((goal.limits.wakeups or 0) - goal.spent.wakeups, "more wakeup")
    remark(
        f"It goes on until {deadline.isoformat(timespec='seconds')} or for {left}, in {goal.workspace}. "
        "Stop the process that runs the file before you wake it:"
    )
    remark(f'python agentmain.py --reflect "$(goalmode generic-agent path)" --goal {goal.uid}')
