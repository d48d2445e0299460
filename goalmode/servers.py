"""Which MCP servers has the user configured, and which of them does a goal use?

    [mcp.git]
    command = "mcp-server-git --repository ."

    [mcp.tracker]
    url = "https://tracker.example/mcp"
    headers = { Authorization = "Bearer ${TRACKER_TOKEN}" }
    call_seconds = 300
    tools = ["search", "comment"]

A command is split as a shell would split it, and no shell runs it. `${NAME}` in `env` and `headers` is taken from the
environment when a goal is woken.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from goalmode.domain.address import is_web_address
from goalmode.domain.outside import (
    CALL_SECONDS,
    MAX_SERVER_NAME,
    START_SECONDS,
    Server,
    ServerChoice,
    is_server_name,
)
from goalmode.domain.redact import SHORTEST, Redactor, url_secrets
from goalmode.domain.text import one_line, sendable
from goalmode.errors import BadInput, ConfigError

NAME_EXPECTED = f"letters, digits and single - or _ between them, at most {MAX_SERVER_NAME}"
_ADDRESS = "an http or https address, such as https://tracker.example/mcp"
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SCHEME = re.compile(r"[A-Za-z]+ (\S+)")
"""`Bearer …`: what comes after the word lets in without it too."""
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_SECRET_NAME = re.compile(
    r"(?i)(?:keys?|token|pass|pwd|\bpat|_pat)(?![a-z])|secret|passw|passphrase|auth(?!or(?!i[sz]))|cred|cookie"
)
"""Of a variable or a header that lets somebody in. `KEYBOARD`, `MAX_TOKENS` and `GIT_AUTHOR_NAME` do not."""

_NAMES_ONE = re.compile(r"(?i)(?:file|path|dir|env|var|name|url|type|mode)$")
"""Of an option that only says where to find what lets somebody in, or of what kind it is: `--token-env`."""

ORDINARY = frozenset(
    ("HOME", "USER", "LOGNAME", "PATH", "PWD", "OLDPWD", "SHELL", "TMPDIR", "LANG", "TERM", "HOSTNAME")
)
"""Variables that hold no credential wherever they stand: what is in them is in every path."""

Wrong = Callable[[str, object, str], ConfigError]
"""(key, value, what would be right) -> the error."""


@dataclass(frozen=True, slots=True)
class Configured:
    """`[mcp.NAME]` as it is written: variables are not filled in yet."""

    server: Server
    env: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


def parse_choice(text: str, known: Mapping[str, Configured], redact: Redactor) -> ServerChoice:
    """`NAME=COMMAND`, `NAME=URL`, or the `NAME` of a configured server.

    Args:
        redact: what it strikes out of a command lets somebody in.

    Raises:
        BadInput: it is none of these, or the command holds what lets somebody in: it would be stored with the goal.
    """
    name, given, address = text.partition("=")
    if not is_server_name(name):
        raise BadInput("mcp", text, f"NAME=COMMAND, NAME=URL or NAME, the name of {NAME_EXPECTED}")
    if not given:
        if name not in known:
            have = f"those of goalmode.toml are {', '.join(sorted(known))}" if known else "there is none"
            raise BadInput("mcp", name, f"NAME=COMMAND, or the name of a server of goalmode.toml; {have}")
        return ServerChoice(name)
    problem = _unreachable(address.strip())
    if problem:
        raise BadInput("mcp", text, problem)
    if not _is_url(address.strip()) and (where := _secret_in(shlex.split(address), redact)):
        right = f'write [mcp.{name}] into goalmode.toml, with env = {{ NAME = "${{NAME}}" }}, and take --mcp {name}'
        raise BadInput(
            "mcp", name, f"a command without credentials, since it is stored: {where} is one; {right}"
        )
    return ServerChoice(name, address.strip())


def resolve(
    chosen: Sequence[ServerChoice] | None, known: Mapping[str, Configured], environ: Mapping[str, str]
) -> tuple[Server, ...]:
    """The servers of a goal, variables filled in; None: all that are configured.

    What is wrong with one is noted as its `problem`: a goal goes on without it.
    """
    names = [ServerChoice(name) for name in known] if chosen is None else chosen
    return tuple(_resolved(choice, known, environ) for choice in names)


def variables_of(known: Mapping[str, Configured]) -> frozenset[str]:
    """The environment variables out of which the configured servers get what lets somebody in.

    Those whose name says so, those under a name that says so, and those in headers.
    """
    found: set[str] = set()
    for one in known.values():
        for name, text in one.env.items():
            found.update(v for v in _used(text) if _SECRET_NAME.search(name) or _SECRET_NAME.search(v))
        for text in one.headers.values():
            found.update(_used(text))
    return frozenset(found)


def secrets_of(known: Mapping[str, Configured], environ: Mapping[str, str]) -> tuple[str, ...]:
    """What must not be shown of the configured servers. Not every word of them: it is struck out everywhere.

    What `variables_of` are filled with, texts under a name that lets somebody in, headers with a variable in them, and
    what lets somebody in in an address.
    """
    found = [environ.get(name, "") for name in sorted(variables_of(known))]
    for one in known.values():
        found += url_secrets(one.server.url)
        for name, text in one.env.items():
            filled = _filled(text, environ)
            found += [filled] if _SECRET_NAME.search(name) else _in_address(filled)
        for name, text in one.headers.items():
            if _SECRET_NAME.search(name) or _used(text):
                filled = _filled(text, environ)
                found += [filled, *_after_scheme(filled)]
    return tuple(dict.fromkeys(text for text in found if text))


def read_server(name: str, given: Mapping[str, Any], wrong: Wrong) -> Configured:
    """`[mcp.NAME]`, its keys known to be among `KEYS`."""
    at = f"mcp.{name}"
    if not is_server_name(name):
        raise wrong("mcp", name, f"a name of {NAME_EXPECTED}")
    for key, value in given.items():
        fits, expected = KEYS[key]
        if not fits(value):
            raise wrong(f"{at}.{key}", value, expected)
    if ("command" in given) == ("url" in given):
        raise wrong(at, ", ".join(given), "a command or a url, one of them")
    for key, needs in (("env", "command"), ("headers", "url")):
        if key in given and needs not in given:
            raise wrong(f"{at}.{key}", "(not shown)", f"a {needs} beside it")
    command = given.get("command", ())
    tools = given.get("tools")
    server = Server(
        name,
        tuple(shlex.split(command) if isinstance(command, str) else command),
        given.get("url", ""),
        start_seconds=float(given.get("start_seconds", START_SECONDS)),
        call_seconds=float(given.get("call_seconds", CALL_SECONDS)),
        tools=None if tools is None else tuple(tools),
        hints=given.get("hints", True),
    )
    return Configured(server, given.get("env", {}), given.get("headers", {}))


def _resolved(choice: ServerChoice, known: Mapping[str, Configured], environ: Mapping[str, str]) -> Server:
    if choice.address:
        if _is_url(choice.address):
            return Server(choice.name, url=choice.address)
        return Server(choice.name, tuple(shlex.split(choice.address)))
    found = known.get(choice.name)
    if found is None:
        return Server(choice.name, problem="goalmode.toml has no such server on this machine")
    texts = (*found.env.values(), *found.headers.values())
    missing = [name for text in texts for name in _VARIABLE.findall(text) if not environ.get(name)]
    if missing:
        return replace(found.server, problem=f"${missing[0]} is not set; its configuration needs it")
    return replace(
        found.server,
        env={name: _filled(text, environ) for name, text in found.env.items()},
        headers={name: _filled(text, environ) for name, text in found.headers.items()},
    )


def _used(text: str) -> tuple[str, ...]:
    return tuple(name for name in _VARIABLE.findall(text) if name not in ORDINARY)


def _after_scheme(text: str) -> tuple[str, ...]:
    found = _SCHEME.fullmatch(text)
    return () if found is None else (found.group(1),)


def _in_address(text: str) -> tuple[str, ...]:
    try:
        return url_secrets(text) if "://" in text else ()
    except ValueError:  # It is no address, though it looks like one.
        return ()


def _filled(text: str, environ: Mapping[str, str]) -> str:
    return _VARIABLE.sub(lambda match: environ.get(match.group(1), ""), text)


def _unreachable(address: str) -> str:
    """What is wrong with the address of a `--mcp`; empty if nothing is."""
    if not address or not _is_text(address):
        return "NAME=COMMAND or NAME=URL"
    if "://" in address.split(" ", 1)[0]:
        if not _is_url(address):
            return _ADDRESS
        if any(mark in address for mark in "@?#"):
            return (
                "an address without user name, password and query; write one that has them into goalmode.toml"
            )
        return ""
    return "" if _is_command(address) else "a command line whose quotes are closed"


def _secret_in(command: Sequence[str], redact: Redactor) -> str:
    """Where a command holds what lets somebody in, without it: `the value of --token`. Empty if it seems to hold none.

    What is behind a name that says so, unless it is a number, a path or a variable; and what `redact` strikes out.
    """
    words = [word for part in command for word in part.split()]  # Of what a shell is told too.
    for word, following in zip(words, (*words[1:], ""), strict=True):
        name, equals, value = word.partition("=")
        if not equals:
            value = following if word.startswith("-") else ""
        if _NAMES_ONE.search(name) is None and _SECRET_NAME.search(name) and _is_literal(value):
            return f"the value of {one_line(name, 40)}"
    return "an argument" if redact(line := " ".join(command)) != line else ""


def _is_literal(value: str) -> bool:
    return len(value) >= SHORTEST and not value.isdigit() and not value.startswith(("-", "/", ".", "~", "$"))


def _is_text(text: str) -> bool:
    return sendable(text) == text


def _is_command(value: object) -> bool:
    if isinstance(value, list):
        return (
            bool(value) and all(isinstance(part, str) and _is_text(part) for part in value) and bool(value[0])
        )
    try:
        return isinstance(value, str) and _is_text(value) and bool(shlex.split(value))
    except ValueError:
        return False


def _is_url(value: object) -> bool:
    return is_web_address(value) and " " not in str(value)


def _are_texts(value: object, name: re.Pattern[str]) -> bool:
    return isinstance(value, dict) and all(
        name.fullmatch(key) and isinstance(text, str) and text.isprintable() for key, text in value.items()
    )


def _is_span(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= 86_400


_SPAN = (_is_span, "a number of seconds above 0, at most 86400")

KEYS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "command": (_is_command, "a command line, or a list of a program and its arguments"),
    "url": (_is_url, _ADDRESS),
    "env": (lambda v: _are_texts(v, _ENV_NAME), "a table of environment variables and their texts"),
    "headers": (lambda v: _are_texts(v, _HEADER_NAME), "a table of HTTP headers and their texts"),
    "start_seconds": _SPAN,
    "call_seconds": _SPAN,
    "tools": (
        lambda v: isinstance(v, list) and bool(v) and all(isinstance(name, str) for name in v),
        "a list of tools, by the server's own names",
    ),
    "hints": (lambda v: isinstance(v, bool), "true or false"),
}
"""What may stand in `[mcp.NAME]`."""
