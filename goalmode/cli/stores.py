"""Opening the store for one command. A command that only reads, or that finds no store, never makes one."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager

from goalmode.cli import secrets
from goalmode.cli.options import Common
from goalmode.cli.output import remark
from goalmode.domain.goal import Goal
from goalmode.errors import UnknownGoal
from goalmode.state import goals
from goalmode.state import reading as rows
from goalmode.state.owner import Owner
from goalmode.state.store import Store


def looking(common: Common) -> Store:
    """The store, opened so that nothing can be written."""
    return Store(common.store, readonly=True, redact=secrets.known())


@contextmanager
def reading(common: Common, prefix: str) -> Iterator[tuple[Store, Goal]]:
    """A goal and its store, opened so that nothing can be written.

    Raises:
        UnknownGoal: there is no such goal, or no store.
    """
    _must_exist(common, prefix)
    with looking(common) as store:
        yield store, _known(goals.find(store, prefix))


@contextmanager
def changing(common: Common, prefix: str) -> Iterator[tuple[Store, Goal]]:
    """A goal and its store, opened for writing.

    Raises:
        UnknownGoal: there is no such goal, or no store.
    """
    _must_exist(common, prefix)
    with writing(common) as store:
        yield store, _known(goals.find(store, prefix))


@contextmanager
def writing(common: Common, owner: Owner | None = None) -> Iterator[Store]:
    """The store, made if there is none. `owner`: who writes; None for this process as it is."""
    with Store(common.store, owner=owner, redact=secrets.known()) as store:
        if not common.quiet:
            for notice in store.notices:
                remark(notice)
        yield store


def command_here(common: Common, command: str) -> str:
    """A command as this user has to type it: with the same store and the same configuration."""
    if not command:
        return ""
    options = []
    if common.store is not None:
        options += ["--store", shlex.quote(rows.name_of(common.store))]
    if common.config is not None and command.split()[1] in ("run", "wake", "resume"):
        options += ["--config", shlex.quote(str(common.config))]
    return " ".join([command, *options])


def _known(goal: Goal) -> Goal:
    secrets.learn_goal(goal)
    return goal


def _must_exist(common: Common, prefix: str) -> None:
    if not rows.exists(common.store):
        raise UnknownGoal(f"no goal {prefix!r}: there is no store at {rows.name_of(common.store)} yet")
