"""One MCP server while a wakeup runs: started, agreed with on a protocol, called, started again if it ended, ended."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import TaskGroup, TaskStatus
from mcp import Client, MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    URL_ELICITATION_REQUIRED,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    ElicitationRequiredErrorData,
    ElicitRequest,
    ElicitRequestParams,
    ElicitResult,
    Implementation,
    InputRequiredResult,
    InputResponse,
    PaginatedRequestParams,
    Tool,
)
from pydantic import TypeAdapter, ValidationError

from goalmode.domain.outside import Server
from goalmode.domain.text import one_line
from goalmode.errors import GoalmodeError, StoreError, ToolError
from goalmode.tools.human import ending_of
from goalmode.tools.mcp_asking import Answers, Asked, call_of
from goalmode.tools.mcp_http import http
from goalmode.tools.mcp_results import output_of
from goalmode.tools.mcp_stdio import Overheard, Streams, stdio
from goalmode.tools.registry import EffectGate, ToolContext, ToolOutput

MAX_STARTS = 3
"""Of one server in one wakeup."""

MAX_LISTED, MAX_PAGES = 5_000, 100
"""Tools that are read of a list, and pages: some lists have no end."""

MAX_ROUNDS = 10
"""Of questions in one call."""

CLOSE_SECONDS = 0.7
"""For a server to be let go of; then it is dropped."""

# What the SDK logs goes where the user sends logs, and nowhere without: its lines are not for a screen.
logging.getLogger("mcp").addHandler(logging.NullHandler())

_ROUND_SECONDS = 0.1
_RESULT: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(CallToolResult | InputRequiredResult)


class Connection:
    """A server and the session with it. The session lives in a task of its own, which enters and leaves it.

    Args:
        environment: of the tools' processes; the server's own comes on top.
    """

    def __init__(
        self, server: Server, workspace: Path, environment: Mapping[str, str], answers: Answers
    ) -> None:
        self.server = server
        self._workspace, self._answers = workspace, answers
        self._environment = {**environment, **server.env}
        self._client: Client | None = None
        self._heard = Overheard()
        self._scope = anyio.CancelScope()
        self._ended: anyio.Event | None = None
        self._starting = anyio.Lock()
        self._starts = 0
        self._in_flight: list[Asked] = []

    @property
    def ran(self) -> bool:
        """Whether a program of it was started here: as the user, and in no sandbox."""
        return self._heard.started

    async def start(self, gate: EffectGate, tasks: TaskGroup) -> None:
        """Start it, unless it runs.

        Raises:
            ToolError: it cannot be started, or does not speak the protocol; names the server. Fenced, StoreError.
        """
        async with self._starting:
            if self._client is not None:
                return
            if self._starts == MAX_STARTS:
                words = self._heard.words()
                raise self._error(f"ended {MAX_STARTS} times in this wakeup, and is not started again", words)
            self._starts += 1
            try:
                with anyio.fail_after(self.server.start_seconds):
                    await tasks.start(self._run, gate)
            except TimeoutError:
                late = f"did not answer within {self.server.start_seconds:g} s"
                raise self._error(late, self._heard.words()) from None

    async def tools(self) -> list[Tool]:
        """What it lists, in its order.

        Raises:
            ToolError: it lists what is no list of tools, or does not answer in time.
        """
        assert self._client is not None
        if self._client.server_capabilities.tools is None:
            return []
        found: list[Tool] = []
        cursor: str | None = None
        try:
            with anyio.fail_after(self.server.start_seconds):
                for _ in range(MAX_PAGES):
                    page = await self._client.session.list_tools(params=PaginatedRequestParams(cursor=cursor))
                    found += page.tools
                    cursor = page.next_cursor
                    if cursor is None or len(found) > MAX_LISTED:
                        break
        except TimeoutError:
            raise self._error(f"did not list its tools within {self.server.start_seconds:g} s") from None
        except ValidationError as error:
            raise self._error(f"lists tools that are not valid MCP: {_first(error)}") from None
        except MCPError as error:
            raise self._failed(error) from None
        return found[:MAX_LISTED]

    async def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        context: ToolContext,
        tasks: TaskGroup,
        *,
        hands_over: bool,
    ) -> ToolOutput:
        """Call one of its tools.

        Raises:
            ToolError: the call failed; names the server.
        """
        await self.start(context.gate, tasks)
        if self._heard.group is not None and context.hold is not None and context.hold.fd is not None:
            # Its processes hold the lock. This one need not, should it be stopped.
            context.hold.mark(self._heard.group)
        asked = Asked(self.server.name, tool, call_of(tool, arguments), self._answers)
        self._in_flight.append(asked)
        try:
            result = await self._answered(tool, arguments, asked)
        except ValidationError as error:
            raise self._error(f"answers what is not valid MCP: {_first(error)}") from None
        except MCPError as error:
            if not _asks(error, asked):
                raise await self._failed_call(error) from None
            result = None
        finally:
            self._in_flight.remove(asked)
        if asked.open is not None:
            told = f"a person is asked: {asked.open.action}\nwhat the call itself came to is not kept"
            return ToolOutput(told, exit=ending_of(asked.open, context.redact))
        if result is None:
            raise self._error("asks to be called again, and again")
        return output_of(result, hands_over=hands_over)

    async def close(self) -> None:
        """End it, within about a second. It may be started again."""
        if self._ended is None:
            return
        self._heard.gone.set()
        with anyio.move_on_after(CLOSE_SECONDS):
            await self._ended.wait()
        self._scope.cancel()
        await self._ended.wait()

    async def _run(self, gate: EffectGate, *, task_status: TaskStatus[None]) -> None:
        """The session from its beginning to its end: until it is closed, or nothing more comes."""
        self._heard = heard = Overheard()
        self._scope, self._ended = anyio.CancelScope(), anyio.Event()
        started = False
        try:
            with self._scope:
                async with self._session(gate, heard) as self._client:
                    started = True
                    task_status.started()
                    await heard.gone.wait()
                    self._client = None  # From here on a call starts it anew.
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a server makes of its session is its own trouble
            if not started:
                raise self._failed(error, "does not agree on a protocol: ") from None
        finally:
            self._client = None
            self._ended.set()

    def _session(self, gate: EffectGate, heard: Overheard) -> Client:
        return Client(
            self._transport(gate, heard),
            client_info=Implementation(name="goalmode", version=version("goalmode")),
            elicitation_callback=self._elicited,
            cache=None,
        )

    @asynccontextmanager
    async def _transport(self, gate: EffectGate, heard: Overheard) -> AsyncIterator[Streams]:
        if self.server.url:
            async with http(self.server) as streams:
                yield streams
            return
        async with stdio(
            self.server.command,
            cwd=self._workspace,
            environment=self._environment,
            gate=gate,
            mark=f"mcp:{self.server.name}",
            overheard=heard,
        ) as streams:
            yield streams

    async def _answered(self, tool: str, arguments: dict[str, Any], asked: Asked) -> CallToolResult | None:
        """The result of a call; None if a question stays open, or there is no end of them.

        Results are not held to the tool's output schema: a call that was made is told of, whatever it returned.
        """
        client, responses, state = self._client, None, None
        if client is None:
            raise self._error("ended")
        for _ in range(MAX_ROUNDS):
            params = CallToolRequestParams(
                name=tool, arguments=arguments, input_responses=responses, request_state=state
            )
            result = await client.session.send_request(CallToolRequest(params=params), _RESULT)
            if isinstance(result, CallToolResult):
                return result
            responses, state = self._responses(result, asked), result.request_state
            if asked.open is not None:
                return None
            if responses is None:
                await anyio.sleep(_ROUND_SECONDS)
        return None

    def _responses(self, result: InputRequiredResult, asked: Asked) -> dict[str, InputResponse] | None:
        responses: dict[str, InputResponse] = {}
        for key, request in (result.input_requests or {}).items():
            if not isinstance(request, ElicitRequest):
                raise self._error(f"asks for {request.method}, which is not offered here")
            responses[key] = asked.answer(request.params)
        return responses or None

    async def _elicited(self, context: object, params: ElicitRequestParams) -> ElicitResult:
        """A question in the middle of a call. Which call is not said: the oldest that has asked nothing yet."""
        for asked in self._in_flight:
            if asked.open is None:
                return asked.answer(params)
        return ElicitResult(action="cancel")

    async def _failed_call(self, error: MCPError) -> ToolError:
        """With how the server ended, where it did: that is known a moment after the call came to nothing."""
        if error.code == CONNECTION_CLOSED and self._ended is not None:
            with anyio.move_on_after(CLOSE_SECONDS):
                await self._ended.wait()
        return self._failed(error)

    def _failed(self, error: BaseException, what: str = "") -> ToolError:
        leaf = error
        while isinstance(leaf, BaseExceptionGroup):
            leaf = leaf.exceptions[0]
        closed = isinstance(leaf, MCPError) and leaf.code == CONNECTION_CLOSED
        if closed and not self.server.url:
            return self._error("ended, or closed its output", self._heard.words())
        if isinstance(leaf, GoalmodeError):
            return self._error(str(leaf))
        text = str(leaf) or type(leaf).__name__
        return self._error(what + one_line(text, 500), "" if self._heard.speaks else self._heard.words())

    def _error(self, what: str, words: str = "") -> ToolError:
        return ToolError(f"MCP server {self.server.name}: {what}" + (f" ({words})" if words else ""))


def _asks(error: MCPError, asked: Asked) -> bool:
    """Whether the server refuses the call until a person has opened an address."""
    if error.code != URL_ELICITATION_REQUIRED:
        return False
    try:
        questions = ElicitationRequiredErrorData.model_validate(error.data).elicitations
    except ValidationError:
        return False
    for question in questions:
        asked.answers.take(asked.session(question))  # It was said to be done, and is not: it is asked again.
        asked.answer(question)
    return bool(questions)


def _first(error: ValidationError) -> str:
    """The first thing that is wrong, and where. Not the value: it may be of any size."""
    found = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(map(str, found["loc"]))
    return one_line(f"{where}: {found['msg']}" if where else found["msg"], 200)
