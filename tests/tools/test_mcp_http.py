"""MCP servers over streamable HTTP, on loopback."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import uvicorn
from mcp.server import Server
from mcp_types import CallToolRequestParams
from starlette.types import ASGIApp, Receive, Scope, Send

from goalmode.domain import outside
from goalmode.domain.calls import CallOutcome
from goalmode.tools.mcp import Outside
from tests.mcp_servers import server, tool
from tests.tools.bench import Bench
from tests.tools.conftest import FakeGate

pytestmark = pytest.mark.anyio

OK, FAILED = CallOutcome.SUCCESS, CallOutcome.FAILED


class Door:
    """Lets in who has the key, and notes who came."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self.keys = app, set[str]()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            key = dict(scope["headers"]).get(b"x-key", b"").decode()
            self.keys.add(key)
            if key != "right":
                await send({"type": "http.response.start", "status": 401, "headers": []})
                await send({"type": "http.response.body", "body": b""})
                return
        await self._app(scope, receive, send)


@asynccontextmanager
async def served(made: Server[Any]) -> AsyncIterator[tuple[str, Door, uvicorn.Server]]:
    """The server's address while it is served."""
    door = Door(made.streamable_http_app())
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(door, log_config=None, timeout_graceful_shutdown=1, lifespan="on", ws="none")
        web = uvicorn.Server(config)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(web.serve, [listening])
            while not web.started:  # noqa: ASYNC110 - it sets no anyio.Event
                await anyio.sleep(0.01)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", door, web
            web.should_exit = True


def one(url: str, key: str = "right", call_seconds: float = 60) -> Outside:
    known = outside.Server(
        "web", url=url, headers={"X-Key": key}, start_seconds=60, call_seconds=call_seconds
    )
    return Outside([known], Path("/"), {}, lambda spec: 1, 1_000)


async def test_a_server_is_reached_over_http(bench: Bench, gate: FakeGate) -> None:
    """Its tools are on offer, its configured headers are sent with every request, and no process is started."""
    async with served(server([tool("do")])) as (url, door, _), one(url).running(gate) as offer:
        done = await bench.run(("mcp__web__do", {"a": 1}), extra=offer.tools)

    assert (done.records[0].outcome, done.records[0].shown) == (OK, "do {'a': 1}")
    assert door.keys == {"right"}
    assert gate.groups == []
    assert gate.entered == ["c0"]


async def test_a_server_that_lets_nobody_in_is_told_in_one_line(gate: FakeGate) -> None:
    """A wrong key: the line names the server and the status."""
    async with served(server([tool("do")])) as (url, _, _), one(url, "wrong").running(gate) as offer:
        [seen] = offer.servers

    assert seen.problem.startswith("MCP server web: ")
    assert "\n" not in seen.problem


async def test_an_address_that_is_no_mcp_server_is_told_in_one_line(gate: FakeGate) -> None:
    """Not found, or another protocol: the line names the server."""
    async with served(server([tool("do")])) as (url, _, _), one(f"{url}/nothing").running(gate) as offer:
        [seen] = offer.servers

    assert seen.problem.startswith("MCP server web: ")


async def test_a_server_that_goes_away_in_the_middle_of_a_call_fails_the_call(
    bench: Bench, gate: FakeGate
) -> None:
    """The call fails with a line that names the server; the wakeup goes on and ends in time."""
    asked = anyio.Event()

    async def hang(context: Any, params: CallToolRequestParams) -> Any:
        asked.set()
        await anyio.sleep_forever()

    made = server([tool("hang"), tool("do")], {"hang": hang})
    async with (
        served(made) as (url, _, web),
        one(url, call_seconds=0.6).running(gate) as offer,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(_call, bench, offer.tools, asked)
        await asked.wait()
        web.should_exit = web.force_exit = True

    [record] = bench.reported
    assert record.outcome is FAILED
    assert record.shown.startswith(("MCP server web: ", "mcp__web__hang: ended after its time limit"))


async def _call(bench: Bench, tools: Any, over: anyio.Event) -> None:
    await bench.run(("mcp__web__hang", {}), extra=tools)
    over.set()  # Where its time was over before the server had even heard of it.
