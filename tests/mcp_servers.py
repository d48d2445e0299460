"""MCP servers for tests: written with the SDK and spoken to in memory, or a few lines of Python as a process."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp.server import Server, ServerRequestContext
from mcp.shared.memory import create_client_server_memory_streams
from mcp_types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
)

from goalmode.domain import outside
from goalmode.tools import mcp_server

ANY = {"type": "object"}

Answer = Callable[[ServerRequestContext, CallToolRequestParams], Awaitable[Any]]


def said(text: str, **more: Any) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], **more)


def tool(name: str, **fields: Any) -> Tool:
    return Tool(name=name, **{"input_schema": ANY, **fields})


def server(tools: Sequence[Tool], answers: Mapping[str, Answer] | None = None, *, page: int = 0) -> Server:
    """A server that lists `tools` as they are then, `page` at a time.

    What has no answer says its own name and arguments.
    """
    listed, known = tools, dict(answers or {})

    async def on_list(
        context: ServerRequestContext, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        if not page:
            return ListToolsResult(tools=list(listed))
        start = int(params.cursor) if params and params.cursor else 0
        after = str(start + page) if start + page < len(listed) else None
        return ListToolsResult(tools=list(listed[start : start + page]), next_cursor=after)

    async def on_call(context: ServerRequestContext, params: CallToolRequestParams) -> Any:
        if params.name in known:
            return await known[params.name](context, params)
        return said(f"{params.name} {params.arguments}")

    return Server("ours", on_list_tools=on_list, on_call_tool=on_call)


def in_memory(patch: pytest.MonkeyPatch, servers: Mapping[str, Server]) -> tuple[outside.Server, ...]:
    """The servers as a goal has them, spoken to without a process."""

    @asynccontextmanager
    async def transport(self: mcp_server.Connection, gate: object, heard: object) -> AsyncIterator[Any]:
        made = servers[self.server.name]
        async with (
            create_client_server_memory_streams() as (ours, theirs),
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(made.run, *theirs, made.create_initialization_options())
            yield ours
            tasks.cancel_scope.cancel()

    patch.setattr(mcp_server.Connection, "_transport", transport)
    return tuple(outside.Server(name, ("in memory",)) for name in servers)


_SCRIPT = """
import json, os, sys, time

def send(id, **reply):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": id, **reply}) + "\\n")
    sys.stdout.flush()

def answer(id, tool, arguments):
    send(id, result={"content": [{"type": "text", "text": tool + " " + json.dumps(arguments)}]})

%s

NAMES = %r
for line in sys.stdin:
    message = json.loads(line)
    id, method, params = message.get("id"), message["method"], message.get("params", {})
    if method == "initialize":
        send(id, result={"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                         "serverInfo": {"name": "script", "version": "1"}})
    elif method == "tools/list":
        send(id, result={"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in NAMES]})
    elif method == "tools/call":
        answer(id, params["name"], params.get("arguments", {}))
    elif id is not None:
        send(id, error={"code": -32601, "message": "Method not found"})
"""


def script(own: str = "", names: Iterable[str] = ("do",)) -> tuple[str, ...]:
    """The command of a server without the SDK, which starts at once. `own` code may redefine `answer`, or do worse."""
    return (sys.executable, "-S", "-c", _SCRIPT % (own, list(names)))
