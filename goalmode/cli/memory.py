"""`memory`: what goals have remembered for those that come after them, and the user's word on it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import click

from goalmode.cli.options import UTF8, Common, common
from goalmode.cli.output import pairs, say, say_json, table
from goalmode.cli.stores import looking, writing
from goalmode.domain.memory import Memory
from goalmode.errors import BadInput
from goalmode.orchestrator.goals import named_place
from goalmode.state import memory as memories
from goalmode.state import reading as rows
from goalmode.state.store import Store

_LABEL = click.argument("label", metavar="M7", type=UTF8)


@click.group(invoke_without_command=True)
@click.pass_context
def memory(context: click.Context) -> None:
    """See and correct what goals have remembered.

    A memory is seen by the goals of its workspace, and by every goal once you promote it.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@memory.command("list")
@click.option("--workspace", metavar="DIR", type=UTF8, help="Only what the goals of this workspace see.")
@click.option("--all", "hidden", is_flag=True, help="Also what was replaced, withdrawn or forgotten.")
@common
def list_memories(workspace: str | None, hidden: bool, common: Common) -> int:
    """List the memories that stand, newest first."""
    found: Sequence[Memory] = ()
    if rows.exists(common.store):
        where = None if workspace is None else str(named_place(workspace))
        with looking(common) as store:
            found = memories.every(store, workspace=where, hidden=hidden)
    if common.json:
        say_json([_in_json(one) for one in found])
    elif found:
        head = ("ID", "KIND", "WORKSPACE", "GOAL", "STATE", "TEXT")
        table(head, [[m.label, m.kind, _where(m), m.goal, _state(m), m.text] for m in found])
    elif not common.quiet:
        say("Nothing is remembered.")
    return 0


@memory.command()
@_LABEL
@common
def show(label: str, common: Common) -> int:
    """Show a memory whole, with where it comes from."""
    with _existing(common, label), looking(common) as store:
        found = memories.get(store, label)
    if common.json:
        say_json(_in_json(found))
    else:
        at = found.created_at.isoformat(timespec="seconds")
        source = f"goal {found.goal}, wakeup {found.wakeup}, turn {found.turn}, {at}"
        pairs(
            [
                ("id", found.label),
                ("kind", found.kind.value),
                ("workspace", _where(found)),
                ("source", source),
                ("state", _state(found)),
                ("text", found.text),
            ]
        )
    return 0


@memory.command()
@_LABEL
@common
def forget(label: str, common: Common) -> int:
    """Hide a memory from all goals. `undo` brings it back."""
    return _change(common, label, lambda store, now: (memories.forget(store, label, now=now),))


@memory.command()
@_LABEL
@common
def promote(label: str, common: Common) -> int:
    """Show a memory to the goals of every workspace. `undo` takes it back."""
    return _change(common, label, lambda store, now: (memories.promote(store, label, now=now),))


@memory.command()
@_LABEL
@common
def undo(label: str, common: Common) -> int:
    """Take back the last change of a memory.

    A forgotten or withdrawn one stands again, a promoted one is its workspace's again, and one that was only
    remembered is withdrawn: what it had replaced stands again.
    """
    return _change(common, label, lambda store, now: memories.undo(store, label, now=now))


def _change(common: Common, label: str, change: Callable[[Store, Any], Sequence[Memory]]) -> int:
    with _existing(common, label), writing(common) as store:
        changed = change(store, store.clock.now())
    if common.json:
        say_json([_in_json(one) for one in changed])
    elif not common.quiet:
        for one in changed:
            say(f"{one.label}: {_state(one)}, {_where(one)}")
    return 0


@contextmanager
def _existing(common: Common, label: str) -> Iterator[None]:
    """A command about one memory never makes a store."""
    if not rows.exists(common.store):
        raise BadInput("memory", label, f"one in a store; there is none at {rows.name_of(common.store)} yet")
    yield


def _where(found: Memory) -> str:
    return found.workspace or "every workspace"


def _state(found: Memory) -> str:
    """Whether it stands, and if not, why."""
    if found.forgotten_at is not None:
        return "forgotten"
    if found.superseded_by is None:
        return "stands"
    word = "replaced by" if found.superseded_by > found.id else "withdrawn for"
    return f"{word} M{found.superseded_by}"


def _in_json(found: Memory) -> dict[str, Any]:
    return {
        "id": found.label,
        "kind": found.kind.value,
        "text": found.text,
        "workspace": found.workspace or None,
        "promoted": not found.workspace,
        "goal": found.goal,
        "wakeup": found.wakeup,
        "turn": found.turn,
        "created_at": found.created_at.isoformat(),
        "stands": found.stands,
        "superseded_by": None if found.superseded_by is None else f"M{found.superseded_by}",
        "forgotten_at": None if found.forgotten_at is None else found.forgotten_at.isoformat(),
    }
