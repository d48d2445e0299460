"""The options that choose a goal's sandbox, and what a user is told of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from goalmode.cli.options import UTF8, Common, together
from goalmode.domain.finding import Finding, State
from goalmode.domain.goal import Goal, GoalSettings
from goalmode.domain.sandbox import AUTO, SandboxMode, SandboxSettings
from goalmode.errors import BadInput
from goalmode.settings import Settings, path_of
from goalmode.state import reading
from goalmode.tools import bwrap, landlock
from goalmode.tools.sandbox import Sandbox, choose, gaps, sandbox_for

sandbox_options = together(
    click.option("--sandbox", metavar="auto|bwrap|landlock|none", type=UTF8,
                 help="What shell commands and checks are kept in; auto: the first of these that works here. "
                 "[default: auto, or as goalmode.toml has it]"),
    click.option("--network/--no-network", "network", default=None,
                 help="Whether commands have a network. Without it they need bwrap. [default: --network]"),
)  # fmt: skip


def asked(given: Mapping[str, Any], before: GoalSettings) -> dict[str, Any]:
    """The settings that the options make: those of `before` where they say nothing.

    Raises:
        BadInput: they ask for what cannot be had here.
    """
    names = ("sandbox", "network")
    made = {name: getattr(before, name) if given[name] is None else given[name] for name in names}
    if any(given[name] is not None for name in names):
        choose(made["sandbox"] or AUTO, network=made["network"])
    return made


def changes(given: Mapping[str, Any]) -> bool:
    """Whether the options ask for a sandbox that has to be had; none can be had everywhere."""
    named = given["sandbox"] is not None or given["network"] is not None
    return named and given["sandbox"] != SandboxMode.NONE


def usable(workspace: str, settings: GoalSettings, configured: Settings, common: Common) -> Sandbox:
    """The sandbox that a goal gets here.

    Raises:
        BadInput: it cannot be had, or it could not keep commands from the store, the configuration or the home.
    """
    made = sandbox_for(Path(workspace), settings, configured.sandbox, os.environ)
    return made.keeping(path_of(common.config, os.environ)).keeping_store(reading.file_of(common.store))


def told(goal: Goal, sandbox: Sandbox, configured: Settings) -> str:
    """What an unattended shell can do in it."""
    place = Path(goal.workspace)
    if sandbox.mode is SandboxMode.NONE:
        asked_for = (goal.settings.sandbox or configured.sandbox.mode) != AUTO
        why = "" if asked_for else f" ({nothing_works()})"
        return (
            f"Its shell runs as you in {place}, unattended and without a sandbox{why}: it can do what you can, and "
            "nothing protects the contract from it. --no-shell leaves it out."
        )
    return (
        f"Its shell runs unattended, kept in {sandbox.mode}: it writes in {place} and in a private directory, and "
        f"reads the system and the tools on your PATH. {in_reach(sandbox.mode, network=sandbox.network)}"
    )


def in_reach(mode: SandboxMode, *, network: bool) -> str:
    """What the mode leaves open, as a sentence; empty if that is nothing."""
    left = gaps(mode, network=network)
    return f"Left in its reach: {'; '.join(left)}." if left else ""


def ran_in(word: str, *, network: bool) -> str:
    """What a wakeup's commands ran in, and what that did not hold back."""
    if word == SandboxMode.NONE:
        return "Its commands ran without a sandbox: the contract is not protected from the agent."
    return f"Its commands ran in {word}. {in_reach(SandboxMode(word), network=network)}".rstrip()


def named(settings: Mapping[str, Any]) -> str:
    """The settings in words."""
    return (settings["sandbox"] or "as configured") + ("" if settings["network"] else ", without a network")


def nothing_works() -> str:
    return f"{bwrap.problem()}; {landlock.problem()}"


def finding(configured: SandboxSettings) -> Finding:
    """What goals that name no sandbox get on this machine."""
    try:
        mode = choose(configured.mode)
    except BadInput as error:
        return Finding("sandbox", State.BROKEN, str(error))
    if mode is SandboxMode.NONE:
        why = nothing_works() if configured.mode == AUTO else "as configured"
        detail = f"none ({why}): the shell of a goal runs as you, without a sandbox"
        return Finding("sandbox", State.WARNING, detail)
    without = bwrap.problem(network=False)
    no_network = f"; no --no-network here: {without}" if without else ""
    return Finding("sandbox", State.OK, f"{mode}. {in_reach(mode, network=True)[:-1]}{no_network}")
