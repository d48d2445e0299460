"""The MCP servers of a goal: opened with the wakeup, their tools on offer beside ours, closed with it.

A server that is not there, does not answer or speaks another protocol is left out of this wakeup, and told of: to the
model, to whoever watches, and to `why`. The SDK, which takes a second and a half to load, is loaded when a goal that
has a server is woken, and not before.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from goalmode.domain.messages import ToolSpec
from goalmode.domain.outside import Server
from goalmode.domain.text import counted, one_line
from goalmode.errors import Fenced, Stopped, StoreError, ToolError
from goalmode.tools.mcp_offer import MAX_TOGETHER, MAX_TOOLS, effect_of, spec_of, wire_name
from goalmode.tools.registry import EffectGate, Tool, ToolContext, ToolOutput

if TYPE_CHECKING:
    from goalmode.tools.mcp_server import Connection

NEEDS_EXTRA = "it needs the extra: pip install 'goalmode[mcp]'"


def installed() -> bool:
    """Whether the extra is."""
    return find_spec("mcp") is not None


@dataclass(frozen=True, slots=True)
class Seen:
    """What became of one server as the wakeup began.

    Attributes:
        tools: on offer of it.
        left_out: tools that it lists and that are not on offer, and `why`.
        problem: why none is; empty if it is there.
        ran: a program of it was started here, as the user and in no sandbox; one that is reached by an address was not.
    """

    server: str
    tools: int = 0
    left_out: int = 0
    why: str = ""
    problem: str = ""
    ran: bool = False

    def __str__(self) -> str:
        if self.problem:
            return f"{self.problem}; the wakeup goes on without its tools"
        more = f", {self.left_out} more are left out: {self.why}" if self.left_out else ""
        return f"MCP server {self.server}: {counted(self.tools, 'tool')}{more}"


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools of all servers that are there."""

    tools: tuple[Tool, ...] = ()
    servers: tuple[Seen, ...] = ()

    @property
    def missing(self) -> tuple[Seen, ...]:
        return tuple(seen for seen in self.servers if seen.problem)


@dataclass
class Outside:
    """The servers of one wakeup.

    Attributes:
        environment: of the tools' processes; it holds no provider's key.
        room: tokens that all tools' descriptions may take together, as `count` counts them.
        answers: of a person to what a server asked in the last wakeup, by session id.
    """

    servers: Sequence[Server]
    workspace: Path
    environment: Mapping[str, str]
    count: Callable[[ToolSpec], int]
    room: int
    answers: Mapping[str, str] = field(default_factory=dict)
    _connections: list[Connection] = field(default_factory=list)

    @asynccontextmanager
    async def running(self, gate: EffectGate) -> AsyncIterator[Offer]:
        """Start them all at once; leaving ends them. What the body raises comes out as it is.

        Raises:
            Fenced: another owner has the goal. StoreError: the gate's lock cannot be had.
        """
        caught: BaseException | None = None
        async with anyio.create_task_group() as tasks:
            try:
                yield await self._opened(gate, tasks)
            except (Exception, Stopped, Fenced) as error:  # noqa: BLE001 - carried out of the group, which would wrap it
                caught = error
            finally:
                with anyio.CancelScope(shield=True):
                    await self.close()
        if caught is not None:
            raise caught

    async def close(self) -> None:
        """End what runs, all at once and within about a second. A call that comes after it starts its server again."""
        async with anyio.create_task_group() as closing:
            for connection in self._connections:
                closing.start_soon(connection.close)

    async def _opened(self, gate: EffectGate, tasks: TaskGroup) -> Offer:
        extra = "" if installed() else NEEDS_EXTRA
        troubled = {one.name: one.problem or extra for one in self.servers if one.problem or extra}
        usable = [one for one in self.servers if one.name not in troubled]
        listed = await self._listed(usable, gate, tasks) if usable else {}
        offering = _Offering(tasks, self.count, self.room)
        for server in self.servers:
            if server.name in troubled:
                offering.missing(server, f"MCP server {server.name}: {troubled[server.name]}")
            elif isinstance(found := listed[server.name], str):
                offering.missing(server, found)
            else:
                offering.add(*found)
        ran = {connection.server.name for connection in self._connections if connection.ran}
        seen = [replace(one, ran=one.server in ran) for one in offering.seen]
        return Offer(tuple(offering.tools.values()), tuple(seen))

    async def _listed(
        self, servers: Sequence[Server], gate: EffectGate, tasks: TaskGroup
    ) -> dict[str, str | tuple[Connection, list[Any]]]:
        """By server: the connection and what it lists, or in one line why there is nothing."""
        module = await to_thread.run_sync(import_module, "goalmode.tools.mcp_server")
        answers = import_module("goalmode.tools.mcp_asking").Answers(dict(self.answers))
        self._connections = [
            module.Connection(server, self.workspace, self.environment, answers) for server in servers
        ]
        found: dict[str, str | tuple[Connection, list[Any]]] = {}
        errors: list[BaseException] = []

        async def one(connection: Connection) -> None:
            try:
                await connection.start(gate, tasks)
                found[connection.server.name] = (connection, await connection.tools())
            except ToolError as error:
                found[connection.server.name] = one_line(str(error), 500)
                await connection.close()
            except (Fenced, StoreError) as error:
                errors.append(error)

        async with anyio.create_task_group() as starting:
            for connection in self._connections:
                starting.start_soon(one, connection)
        if errors:
            raise errors[0]
        return found


class _Offering:
    """Tools under names and within numbers that every provider takes; what is left out is counted."""

    def __init__(self, tasks: TaskGroup, count: Callable[[ToolSpec], int], room: int) -> None:
        self.tools: dict[str, Tool] = {}
        self.seen: list[Seen] = []
        self._tasks, self._count, self._room = tasks, count, room

    def missing(self, server: Server, problem: str) -> None:
        self.seen.append(Seen(server.name, problem=problem))

    def add(self, connection: Connection, listed: Sequence[Any]) -> None:
        server = connection.server
        wanted = [tool for tool in listed if server.tools is None or tool.name in server.tools]
        unknown = [] if server.tools is None else sorted(set(server.tools) - {tool.name for tool in listed})
        offered, why = 0, ""
        for tool in wanted:
            made = _tool(connection, tool, wire_name(server, tool.name, self.tools), self._tasks)
            tokens = self._count(made.spec)
            why = self._why_not(made, tokens, offered)
            if why:
                break
            self.tools[made.name] = made
            self._room -= tokens
            offered += 1
        seen = Seen(server.name, offered, len(wanted) - offered, why)
        if unknown:
            have = ", ".join(one_line(tool.name, 60) for tool in listed[:20]) or "none"
            names = ", ".join(unknown)
            seen = replace(seen, left_out=len(unknown), why=f"it has no {names}; it lists {have}")
        self.seen.append(seen)

    def _why_not(self, tool: Tool, tokens: int, offered: int) -> str:
        choose = f"`tools` in [mcp.{tool.name.split('__')[1]}] of goalmode.toml chooses which"
        if offered == MAX_TOOLS:
            return f"at most {MAX_TOOLS} of one server are on offer; {choose}"
        if len(self.tools) == MAX_TOGETHER:
            return f"at most {MAX_TOGETHER} of all servers are on offer; {choose}"
        if tokens > self._room:
            return f"their descriptions would fill the context; {choose}"
        if tool.name in self.tools:
            return f"two of them are called {tool.name}"
        return ""


def _tool(connection: Connection, listed: Any, name: str, tasks: TaskGroup) -> Tool:
    from goalmode.tools.mcp_results import hands_over

    waits = hands_over(listed.output_schema)

    async def run(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
        return await connection.call(listed.name, arguments, context, tasks, hands_over=waits)

    return Tool(
        spec_of(name, listed.description or listed.title, listed.input_schema),
        effect_of(connection.server, listed.annotations),
        run,
        _subject,
        connection.server.call_seconds,
        may_hand_over=waits,
        checks_arguments=True,
    )


def _subject(arguments: Mapping[str, Any]) -> str:
    """The first text among the arguments: mostly what a call is about."""
    return next((value for value in arguments.values() if isinstance(value, str)), "")
