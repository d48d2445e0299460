"""MCP servers, whose tools come from outside: how one is reached, and which of them a goal uses."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

PREFIX = "mcp__"
"""Begins the names of all tools from outside, and of no others: `mcp__SERVER__TOOL`."""

MAX_SERVER_NAME = 24
"""Characters: they leave 33 for the tool's in the 64 that every provider takes."""

_SERVER_NAME = re.compile(r"[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*")

START_SECONDS = 30.0
"""For a server to start, to agree on a protocol and to list its tools."""

CALL_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class ServerChoice:
    """A server that a goal uses.

    Attributes:
        address: its command line, or its http or https address; empty: what `[mcp.NAME]` of `goalmode.toml` says.
    """

    name: str
    address: str = ""


@dataclass(frozen=True, slots=True)
class Server:
    """A server, ready to be started or spoken to.

    Attributes:
        command: program and arguments; empty for one that is reached by `url`.
        env: on top of what tools' processes see. headers: sent with every request.
        tools: the only ones on offer, by the server's own names; None: all, up to the cap.
        hints: whether a tool that the server calls read-only is taken for one.
        problem: why it cannot be used here, found before it is started; empty if there is nothing.
    """

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    start_seconds: float = START_SECONDS
    call_seconds: float = CALL_SECONDS
    tools: tuple[str, ...] | None = None
    hints: bool = True
    problem: str = ""

    @property
    def prefix(self) -> str:
        """Of its tools' names."""
        return f"{PREFIX}{self.name}__"


def is_server_name(text: str) -> bool:
    """Letters, digits, and single `-` or `_` between them: two would end the name in a tool's."""
    return len(text) <= MAX_SERVER_NAME and _SERVER_NAME.fullmatch(text) is not None


def allows(allowed: Collection[str], name: str) -> bool:
    """Whether a list of tools names this one: by its name, or by a beginning such as `mcp__git__*`."""
    return name in allowed or any(
        pattern.endswith("*") and name.startswith(pattern[:-1])
        for pattern in allowed
        if pattern.startswith(PREFIX)
    )


def may_use(allowed: Collection[str] | None, server: Server) -> bool:
    """Whether a list of tools names any tool that this server could have; None: all are allowed."""
    if allowed is None:
        return True
    return any(
        name.startswith(server.prefix) or (name.endswith("*") and server.prefix.startswith(name[:-1]))
        for name in allowed
        if name.startswith(PREFIX)
    )
