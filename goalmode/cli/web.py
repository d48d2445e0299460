"""`web`: the goals of a store in a browser."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import click

from goalmode.cli import secrets
from goalmode.cli.options import UTF8, Common, common
from goalmode.cli.output import remark, say, say_json
from goalmode.errors import ConfigError
from goalmode.tools.capabilities import hide_memory

_EXTRA = {"starlette", "uvicorn"}
"""What the extra installs."""


@click.command()
@click.option(
    "--host", metavar="ADDRESS", type=UTF8, default="127.0.0.1", show_default=True, help="Where to listen."
)
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(0, 65_535),
    default=0,
    show_default=True,
    help="0 is any that is free.",
)
@click.option(
    "--allow-host",
    "allowed",
    metavar="NAME",
    multiple=True,
    type=UTF8,
    help="Serve requests for this name too, as a proxy before it sends them. Repeatable.",
)
@click.option("--open", "open_", is_flag=True, help="Open the pages in this user's browser.")
@common
def web(host: str, port: int, allowed: Sequence[str], open_: bool, common: Common) -> int:
    """Show the goals in a browser: live turns, contexts and their differences, plots, answers to questions.

    Prints an address whose last part is the token that signs in; it is good until the process ends. No goal is run from
    here: `goalmode serve` does that. Ctrl-C ends it.
    """
    try:
        from goalmode.web import opening, server
        from goalmode.web.keys import Keys
        from goalmode.web.stores import Stores
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        raise ConfigError("`goalmode web` needs the extra web: pip install 'goalmode[web]'") from None

    stores = Stores(common.store, redact=secrets.known(), learn=secrets.learn_goal)
    hide_memory()
    keys = Keys.new()
    place = server.listen(host, port, allowed)
    url = f"{place.url}#{keys.token}"
    with ExitStack() as stack:
        stack.callback(place.listener.close)
        go = stack.enter_context(opening.door(url)) if open_ else None

        def opened() -> None:
            if common.json:
                say_json({"url": url, "port": place.port, "token": keys.token})
            else:
                say(url)
            if not place.private:
                remark("others can reach this address, and it is plain HTTP: put a proxy with TLS before it")
            if go is not None and not go():
                remark("no browser was found: open the address above")

        server.show(stores, keys, place, opened=opened)
    return 0
