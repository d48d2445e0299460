"""`doctor`: is everything there that a goal needs, and is anything about it dangerous?"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from shutil import which
from urllib.parse import urlsplit

import click

from goalmode.cli import findings, sandbox_options
from goalmode.cli.options import Common, common
from goalmode.context.tokens import counter
from goalmode.domain.cost import dollars
from goalmode.domain.finding import Finding, State
from goalmode.domain.profile import ModelProfile
from goalmode.domain.text import counted, one_line
from goalmode.errors import BadInput, ConfigError, GoalmodeError
from goalmode.servers import resolve
from goalmode.settings import O200K, Settings, api_key, default_path, load_settings, resolve_profile
from goalmode.state import goals, reading
from goalmode.state.goals import Unreadable
from goalmode.state.store import Store
from goalmode.tools.mcp import NEEDS_EXTRA, installed

WAL_RESET_BUG = ((3, 7, 0), (3, 51, 3))
"""SQLite versions, from and below, in which a WAL reset can, rarely, corrupt a database with several writers."""


@click.command()
@common
def doctor(common: Common) -> int:
    """Check this installation, its store and its models. Keys are looked for, never shown, and no model is asked."""
    return findings.told(list(_findings(common)), common)


def _findings(common: Common) -> Iterator[Finding]:
    yield Finding("goalmode", State.OK, f"{version('goalmode')}, Python {platform.python_version()}")
    yield sqlite_finding(reading.SQLITE_VERSION)
    yield from _store(common)
    try:
        settings = load_settings(common.config, os.environ)
    except ConfigError as error:
        yield Finding("config", State.BROKEN, str(error))
    else:
        nothing = f"{default_path()}: not there; models are named on the command line"
        yield Finding("config", State.OK, nothing if settings.path is None else str(settings.path))
        yield from _models(settings, os.environ)
        yield from _servers(settings, os.environ)
        yield sandbox_options.finding(settings.sandbox)
    yield _vocabulary()


def sqlite_finding(found: tuple[int, ...]) -> Finding:
    name = ".".join(map(str, found))
    first, fixed = WAL_RESET_BUG
    if first <= found < fixed:
        return Finding(
            "sqlite",
            State.WARNING,
            f"{name}: has a rare bug that can corrupt a store written by several processes; fixed in 3.51.3",
        )
    return Finding("sqlite", State.OK, name)


def _store(common: Common) -> Iterator[Finding]:
    try:
        if not reading.exists(common.store):
            yield Finding(
                "store", State.OK, f"{reading.name_of(common.store)}: not there yet; the first goal makes it"
            )
            return
        with Store(common.store, readonly=True) as store:
            found, size, kind = goals.every(store), store.database.size(), store.database.kind()
    except GoalmodeError as error:
        yield Finding("store", State.BROKEN, str(error))
        return
    detail = f"{store.name}: {counted(len(found), 'goal')}, {size:,} bytes, schema {reading.HEAD}, {kind}"
    yield Finding("store", State.OK, detail)
    for goal in found:
        if isinstance(goal, Unreadable):
            yield Finding("goal", State.BROKEN, goal.problem)
    mode = 0 if store.path is None else store.path.stat().st_mode & 0o777
    if mode & 0o077:
        yield Finding(
            "store", State.WARNING, f"{store.path}: other users may open it (mode {mode:04o}); chmod 600"
        )


def _models(settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    for name in settings.models:
        yield _model(f"model {name}", resolve_profile(settings, name), environ)
    if settings.model and settings.model not in settings.models:
        yield _model("default model", resolve_profile(settings, settings.model), environ)


def _servers(settings: Settings, environ: Mapping[str, str]) -> Iterator[Finding]:
    """The MCP servers that goals have. None is started."""
    for server in resolve(None, settings.mcp, environ):
        name, told = f"mcp {server.name}", server.url and f"at {urlsplit(server.url).hostname}"
        program = server.command[0] if server.command else ""
        if not installed():
            yield Finding(name, State.WARNING, NEEDS_EXTRA)
        elif server.problem:
            yield Finding(name, State.WARNING, server.problem)
        elif program and "/" not in program and which(program) is None:
            yield Finding(name, State.WARNING, f"{program}: there is no such program")
        else:
            yield Finding(name, State.OK, told or one_line(program, 200))


def _model(name: str, profile: ModelProfile, environ: Mapping[str, str]) -> Finding:
    host = urlsplit(profile.base_url).hostname
    try:
        key = api_key(profile, environ)
    except BadInput as error:
        return Finding(name, State.WARNING, str(error))
    told = f"its key is in ${profile.api_key_env}" if key else "without a key"
    return Finding(name, State.OK, f"{profile.name} at {host}, {told}, {_price(profile)}")


def _price(profile: ModelProfile) -> str:
    if profile.price is None:
        return "without a price: no cost limit"
    return f"{dollars(profile.price.input)} in and {dollars(profile.price.output)} out for a million tokens"


def _vocabulary() -> Finding:
    try:
        counter(O200K).count("goalmode")
    except GoalmodeError as error:
        return Finding("vocabulary", State.BROKEN, str(error))
    return Finding("vocabulary", State.OK, f"{O200K}, as it should be")
