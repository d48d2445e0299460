"""A group of commands whose modules are imported when a command is used: `--help` loads none of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click


@dataclass(frozen=True, slots=True)
class Place:
    """Where a command is: `module:attribute`, and the line about it in the list of commands."""

    target: str
    help: str


class LazyGroup(click.Group):
    """A group that knows its commands by their places."""

    def __init__(self, *args: Any, places: Mapping[str, Place], **options: Any) -> None:
        super().__init__(*args, **options)
        self.places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = self.places.get(cmd_name)
        if place is None:
            return None
        module, _, attribute = place.target.partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, place.help) for name, place in self.places.items()])
