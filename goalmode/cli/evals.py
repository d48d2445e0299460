"""`eval`: experiments on a model."""

from __future__ import annotations

import click

from goalmode.cli.lazy import LazyGroup, Place

PLACES = {
    "pollution": Place(
        "goalmode.cli.pollution:pollution", "Does replayed completion prose make a model stop?"
    ),
}


@click.group("eval", cls=LazyGroup, places=PLACES, invoke_without_command=True)
@click.pass_context
def evals(context: click.Context) -> None:
    """Try on one model what is said of models in general."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
