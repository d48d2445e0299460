"""The options that choose a goal's MCP servers, and what a user is told of them."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import click

from goalmode.cli import secrets
from goalmode.cli.options import UTF8, together
from goalmode.cli.output import remark
from goalmode.domain.goal import Goal
from goalmode.domain.outside import PREFIX, ServerChoice
from goalmode.domain.text import one_line
from goalmode.errors import BadInput
from goalmode.servers import parse_choice, resolve
from goalmode.settings import Settings
from goalmode.tools.mcp import NEEDS_EXTRA, installed

mcp_options = together(
    click.option("--mcp", "mcp", metavar="NAME[=COMMAND]", multiple=True, type=UTF8,
                 help="An MCP server whose tools the goal has: NAME of goalmode.toml, or NAME=COMMAND or NAME=URL. "
                 "Repeatable. [default: all of goalmode.toml]"),
    click.option("--no-mcp", is_flag=True, help="No MCP server, whatever goalmode.toml has."),
)  # fmt: skip


def chosen(given: dict[str, Any], configured: Settings, workspace: str) -> tuple[ServerChoice, ...] | None:
    """The servers that the options name; None where they name none: those that are configured.

    Raises:
        BadInput: no such server, a credential in a command, a program that is not there, or the extra is not installed.
    """
    if given["no_mcp"]:
        if given["mcp"]:
            raise BadInput("no-mcp", given["mcp"][0], "one of --mcp and --no-mcp")
        return ()
    if not given["mcp"]:
        return None
    if not installed():
        raise BadInput("mcp", given["mcp"][0], NEEDS_EXTRA)
    choices = [parse_choice(text, configured.mcp, secrets.known()) for text in given["mcp"]]
    names = [choice.name for choice in choices]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise BadInput("mcp", repeated, "a name for each server; this one is given twice")
    for server in resolve(choices, configured.mcp, {}):
        if server.command and not _is_there(server.command[0], workspace):
            raise BadInput(
                "mcp", server.name, f"a program that is there; {one_line(server.command[0])} is not"
            )
    return tuple(choices)


def may_be_named(names: Iterable[str], known: Collection[str]) -> str | None:
    """The first name that no tool can have; what servers will list is not known yet."""
    return next((name for name in names if name not in known and not name.startswith(PREFIX)), None)


def tell_servers(goal: Goal, configured: Settings) -> None:
    """Say which servers run for the goal, and as whom."""
    servers = resolve(goal.settings.mcp, configured.mcp, {})
    local = [
        f"{server.name} ({one_line(shlex.join(server.command), 80)})" for server in servers if server.command
    ]
    if local:
        remark(f"Its MCP servers run as you while it is awake, in no sandbox: {', '.join(local)}.")
    if servers and not installed():
        remark(f"It has MCP servers, and {NEEDS_EXTRA}.")


def _is_there(program: str, workspace: str) -> bool:
    """Found as it will be when it is started: by name on the path, or by a path from the workspace."""
    if "/" in program:
        return Path(workspace, program).is_file()
    return shutil.which(program) is not None
