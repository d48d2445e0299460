"""`export` and `import`: a goal, whole, out of one store and into another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from goalmode.cli.files import read_whole, write_new
from goalmode.cli.options import UTF8, Common, common
from goalmode.cli.output import complain, json_text, remark, say, say_json
from goalmode.cli.secrets import learn_goal
from goalmode.cli.stores import command_here, reading, writing
from goalmode.domain.contract import CheckKind
from goalmode.domain.goal import Goal
from goalmode.domain.text import counted
from goalmode.errors import BadDocument
from goalmode.inspection import export as exports
from goalmode.inspection.show import public
from goalmode.orchestrator.goals import named_place
from goalmode.orchestrator.transfer import checked_document, document_of, import_goal


@click.command()
@click.argument("goal_id", metavar="ID", type=UTF8)
@click.option("--output", metavar="FILE", type=click.Path(path_type=Path),
              help="A new file, for its user alone. [default: standard output]")  # fmt: skip
@common
def export(goal_id: str, output: Path | None, common: Common) -> int:
    """Write a goal with its whole history as one JSON value, which `import` stores elsewhere.

    Its workspace and its long-term memories are not in it. Keys and what goalmode.toml says to redact are struck out.
    """
    with reading(common, goal_id) as (store, goal):
        found, struck = exports.export(store, goal.id)
    if output is None:
        say_json(found)
    else:
        write_new(output, json_text(found) + "\n")
    if not common.quiet:
        if struck:
            remark(f"{goal.uid}: {counted(struck, 'text')} held a secret, which is struck out")
        if output is not None:
            remark(f"{goal.uid}: exported to {output}")
    return 0


@click.command("import")
@click.argument("file", metavar="FILE", type=UTF8)
@click.option("--new-id", is_flag=True, help="Store it under a new id, not under its own.")
@click.option("--workspace", metavar="DIR", type=click.Path(path_type=Path, exists=True, file_okay=False),
              help="Where its files are on this machine, if not where they were.")  # fmt: skip
@common
def import_command(file: str, new_id: bool, workspace: Path | None, common: Common) -> int:
    """Store an exported goal, paused: have a look at it, then resume it. FILE may be - for standard input.

    Its checks are commands that will run on this machine, and its model is asked with your key: import what you trust.
    """
    document = document_of(read_whole(file, "file"), "file")
    place = None if workspace is None else str(named_place(str(workspace)))
    try:
        document = checked_document(document, workspace=place)  # Before there is a store to put it into.
        with writing(common) as store:
            goal = import_goal(store, document, new_id=new_id)
    except BadDocument as error:
        for fault in error.faults:
            complain(f"{file}: {fault}")
        return error.exit_code
    learn_goal(goal)
    if common.json:
        say_json({"id": goal.uid, "status": goal.status.value})
    elif common.quiet:
        say(goal.uid)
    else:
        say(f"{goal.uid}: imported, {goal.status}")
        for line in _worth_knowing(goal):
            say(f"  {line}")
        say(f"  look at it first: {command_here(common, f'goalmode show {goal.uid}')}")
    return 0


def _worth_knowing(goal: Goal) -> Sequence[str]:
    """What will happen on this machine once it is resumed."""
    settings, checks = goal.settings, [r for r in goal.requirements if r.kind is CheckKind.COMMAND]
    model = settings.model or "the configured default"
    at = f" at {public(settings.base_url)}" if settings.base_url else ""
    key = f", with the key in {settings.api_key_env}" if settings.api_key_env else ""
    found = [f"its model: {model}{at}{key}"]
    if checks:
        found.append(f"its checks run {counted(len(checks), 'command')} of it here")
    if not Path(goal.workspace).is_dir():
        found.append(f"its workspace {goal.workspace} is not on this machine")
    return found
