"""`context`: what the model saw at the start of a wakeup, what each part of it took, and how two of them differ."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import click

from goalmode.cli.options import UTF8, Common, common
from goalmode.cli.output import exactly, say, say_json, table
from goalmode.cli.stores import reading
from goalmode.configured import goal_profile, user_prompts
from goalmode.domain.goal import Goal
from goalmode.domain.text import counted
from goalmode.inspection import contexts
from goalmode.inspection.diff import difference
from goalmode.settings import load_settings
from goalmode.state import snapshot
from goalmode.state.reading import ContextSeen
from goalmode.state.store import Store
from goalmode.wiring import workshop

_MARKS = {"removed": "-", "added": "+"}


@click.command()
@click.argument("goal_id", metavar="ID", type=UTF8)
@click.option("--wakeup", metavar="N", type=click.IntRange(1), help="Of this wakeup, not the last one.")
@click.option("--next", "next_", is_flag=True, help="What the next wakeup would see, as things stand.")
@click.option("--diff", metavar="M", type=click.IntRange(1), help="How it differs from that of wakeup M.")
@click.option("--sections", is_flag=True, help="What each section takes, and what was left out of it.")
@common
def context(
    goal_id: str, wakeup: int | None, next_: bool, diff: int | None, sections: bool, common: Common
) -> int:
    """Print exactly what the model saw at the start of a wakeup.

    With --json also what it saw each time that the conversation had filled its work window and began anew.
    """
    if next_ and wakeup is not None:
        raise click.UsageError("--wakeup and --next exclude each other.")
    if sections and diff is not None:
        raise click.UsageError("--diff and --sections exclude each other.")
    whole = common.json and diff is None and not sections
    other: ContextSeen | None = None
    with reading(common, goal_id) as (store, goal):
        if next_:
            number, found = _next(store, goal, common)
        else:
            number, found = contexts.stored_contexts(store, goal, wakeup, later=whole)
        if diff is not None:
            other = contexts.stored_contexts(store, goal, diff)[1][0]
    if other is not None:
        _difference(difference(other, found[0], wakeups=(diff, number)), common)
    elif sections:
        _sections(contexts.sizes(number, found[0]), common)
    elif common.json:
        say_json(contexts.described(number, found))
    else:
        exactly(found[0].text)
    return 0


def _next(store: Store, goal: Goal, common: Common) -> tuple[int, list[ContextSeen]]:
    """What the next wakeup would see. Its model must be known, its key need not."""
    settings = load_settings(common.config, os.environ)
    shop = workshop(goal, goal_profile(goal, settings), prompts=user_prompts(settings))
    seen = snapshot.snapshot(store, goal.id, now=store.clock.now())
    seen = replace(seen, observed=shop.observe(goal))
    return seen.wakeup, [contexts.as_seen(shop.render(seen).stored())]


def _sections(found: Mapping[str, Any], common: Common) -> None:
    if common.json:
        say_json(found)
        return
    size = f"{counted(found['tokens'], 'token')} ({found['encoding']})"
    say(f"Context of wakeup {found['wakeup']}: {size}", strong=True)
    rows = [
        [s["name"], f"{s['tokens']:,}", _share(s["tokens"], found["tokens"]),
         str(s.get("left_out", 0)), str(s.get("withheld", 0))]
        for s in found["sections"]
    ]  # fmt: skip
    around = ["(what stands around them)", f"{found['around']:,}", _share(found["around"], found["tokens"])]
    table(["SECTION", "TOKENS", "SHARE", "LEFT OUT", "WITHHELD"], [*rows, [*around, "", ""]])


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "-"


def _difference(found: Mapping[str, Any], common: Common) -> None:
    """Changed sections with their items; a line for each that is the same."""
    if common.json:
        say_json(found)
        return
    (old, new), (before, after) = found["wakeups"], found["tokens"]
    say(f"Context of wakeup {old} -> {new}: {before:,} -> {after:,} tokens", strong=True)
    for section in found["sections"]:
        say(f"\n{section['name']}: {section['state']}{_sizes(section)}", strong=section["state"] != "same")
        if section["state"] != "same":
            _changes(section["changes"])


def _sizes(section: Mapping[str, Any]) -> str:
    given = [f"{tokens:,}" for tokens in section["tokens"] if tokens is not None]
    tokens = f", {' -> '.join(given)} tokens" if given else ""
    left_out = " -> ".join(map(str, section["left_out"]))
    return tokens + (f", left out {left_out}" if any(section["left_out"]) else "")


def _changes(changes: list[Mapping[str, Any]]) -> None:
    for change in changes:
        if change["op"] == "same":
            say(f"    ({counted(len(change['items']), 'item')} the same)")
            continue
        for item in change["items"]:
            head, *more = item.split("\n")
            say(f"  {_MARKS[change['op']]} {head}")
            for line in more:
                say(f"  {_MARKS[change['op']]} {line}")
