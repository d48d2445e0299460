"""`db`: the store itself, not the goals in it."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from pathlib import Path

import click

from goalmode.cli.options import UTF8, Common, common
from goalmode.cli.output import say, say_json
from goalmode.cli.stores import looking, writing
from goalmode.domain.text import counted
from goalmode.errors import StoreError
from goalmode.orchestrator.goals import parse_seconds
from goalmode.state import invariants, reading, upkeep


@click.group(invoke_without_command=True)
@click.pass_context
def db(context: click.Context) -> None:
    """Look after the store: check it, copy it, make it smaller."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@db.command(short_help="Bring the store to the newest schema.")
@common
def upgrade(common: Common) -> int:
    """Bring the store to the newest schema, after a backup beside its file; make it if there is none."""
    with writing(common) as store:
        name, notices = store.name, store.notices
    if common.json:
        say_json({"store": name, "schema": reading.HEAD, "notices": notices})
    elif not common.quiet:
        say(f"{name}: schema {reading.HEAD}")
    return 0


@db.command(short_help="Look for what must not be in the store.")
@common
def check(common: Common) -> int:
    """Look for what must not be: damage, lost rows, totals that do not add up. Exit code 1 if anything is found."""
    _must_exist(common)
    with looking(common) as store:
        found = invariants.check(store)
    if common.json:
        say_json({"store": store.name, **asdict(found)})
    else:
        for one in found.findings:
            say(f"{one.goal or 'store'}: {one.rule}: {one.detail}")
        if not common.quiet:
            told = counted(len(found.findings), "finding") if found.findings else "sound"
            has = counted(found.goals, "goal"), counted(found.wakeups, "wakeup"), counted(found.turns, "turn")
            say(f"{store.name}: {told}; {', '.join(has)}")
    return int(bool(found.findings))


@db.command()
@click.argument("target", metavar="FILE", type=click.Path(path_type=Path))
@common
def backup(target: Path, common: Common) -> int:
    """Copy the store to a new file, while goals run. The copy is a store like the first one."""
    _must_exist(common)
    with looking(common) as store:
        size = upkeep.backup(store, target)
    if common.json:
        say_json({"store": store.name, "backup": str(target), "bytes": size})
    elif not common.quiet:
        say(f"{target}: {size:,} bytes")
    return 0


@db.command()
@common
def vacuum(common: Common) -> int:
    """Give back the space that nothing uses any more. Goals that run wait as long as it takes, up to a minute."""
    _must_exist(common)
    with writing(common) as store:
        before, after = upkeep.vacuum(store)
    if common.json:
        say_json({"store": store.name, "bytes_before": before, "bytes": after})
    elif not common.quiet:
        say(f"{store.name}: {after:,} bytes, {before:,} before")
    return 0


@db.command(short_help="Forget what was said in goals that are over.")
@click.option("--older-than", metavar="SPAN", type=UTF8, required=True,
              help="Of goals that were done or aborted so long ago: 90d, 12h, 30m.")  # fmt: skip
@common
def prune(older_than: str, common: Common) -> int:
    """Forget what was said in goals that are over: contexts, replies, results. What was done and decided stays."""
    seconds = parse_seconds(older_than, "older-than")
    _must_exist(common)
    with writing(common) as store:
        now = store.clock.now()
        found = upkeep.prune(store, before=now - timedelta(seconds=seconds), now=now)
    if common.json:
        say_json({"store": store.name, **asdict(found)})
    elif not common.quiet:
        freed = "; `goalmode db vacuum` gives the space back" if found.bytes else ""
        texts, size = counted(found.bodies, "text"), counted(found.bytes, "byte")
        say(f"{counted(found.goals, 'goal')}: {texts} pruned, {size}{freed}")
    return 0


def _must_exist(common: Common) -> None:
    if not reading.exists(common.store):
        raise StoreError(f"store {reading.name_of(common.store)}: is not there yet")
