"""One model in several event loops, one after the other: nothing of a loop that ended is left."""

from __future__ import annotations

import asyncio
import gc
import threading
from typing import Any

import anyio
import pytest

from goalmode.domain.messages import Request
from goalmode.domain.profile import ModelProfile
from goalmode.model.wire.openai_chat import OpenAIChat
from goalmode.testing.server import Server
from goalmode.testing.steps import text
from goalmode.testing.stub import Stub


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> threading.Semaphore:
    """One for each connection whose end the provider has seen."""
    seen = threading.Semaphore(0)
    shut = Server.shutdown_request

    def noted(self: Server, request: Any) -> None:
        shut(self, request)
        seen.release()

    monkeypatch.setattr(Server, "shutdown_request", noted)
    return seen


def test_a_loop_that_ends_closes_its_connections(
    request_: Request, ended: threading.Semaphore, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where nobody does, and while the model lives."""
    with Stub([text("Hi.")], forever=True) as stub:
        model = OpenAIChat(ModelProfile("m", "openai", "m", stub.base_url), None)
        for _ in range(2):
            assert anyio.run(model.complete, request_).text == "Hi."
            assert ended.acquire(timeout=10)
        del model
        gc.collect()

    assert caplog.text == ""


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_a_session_of_a_loop_that_was_torn_down_is_let_go_of(
    request_: Request, caplog: pytest.LogCaptureFixture
) -> None:
    """Such a loop closes nothing: its transports end with what held them, and the library says nothing of it."""
    with Stub([text("Hi.")], forever=True) as stub:
        model = OpenAIChat(ModelProfile("m", "openai", "m", stub.base_url), None)
        for end in (model.complete(request_), model.complete(request_), model.aclose()):
            loop = asyncio.new_event_loop()
            loop.run_until_complete(end)
            loop.close()
            gc.collect()

    assert caplog.text == ""


def test_loops_that_run_at_once_leave_each_other_alone(request_: Request, connections: list[Any]) -> None:
    """Each keeps its own connection, and one that ends takes the others' from nobody."""
    with Stub([text("Hi.")], forever=True) as stub:
        model = OpenAIChat(ModelProfile("m", "openai", "m", stub.base_url), None)

        async def outer() -> None:
            for _ in range(2):
                await model.complete(request_)
                await anyio.to_thread.run_sync(anyio.run, model.complete, request_)
            await model.complete(request_)

        anyio.run(outer)
        assert len(connections) == 3
