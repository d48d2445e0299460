"""What the tests of this room share: a clock that only moves when slept on, and a model behind a stub provider."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from goalmode.domain.messages import Reply, Request, System, ToolSpec, User
from goalmode.domain.profile import ModelProfile
from goalmode.errors import ModelError
from goalmode.model.port import Model
from goalmode.testing.server import Server
from goalmode.testing.stub import Stub
from goalmode.wiring import WIRES

START = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@dataclass
class FakeClock:
    slept: list[float] = field(default_factory=list)

    def now(self) -> datetime:
        return START + timedelta(seconds=sum(self.slept))

    def monotonic(self) -> float:
        return sum(self.slept)

    def lease_ms(self) -> int:
        return int(sum(self.slept) * 1000)

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@dataclass
class Asked:
    """What came of some requests: replies and errors in order, and the provider that saw them."""

    outcomes: list[Reply | ModelError]
    stub: Stub

    @property
    def reply(self) -> Reply:
        assert isinstance(self.outcomes[0], Reply), self.outcomes[0]
        return self.outcomes[0]

    @property
    def error(self) -> ModelError:
        assert isinstance(self.outcomes[0], ModelError), self.outcomes[0]
        return self.outcomes[0]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def request_() -> Request:
    tool = ToolSpec(
        "shell", "Run a command.", {"type": "object", "properties": {"command": {"type": "string"}}}
    )
    return Request((System("You work."), User("Go on.")), (tool,), 1000)


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The connections that stub providers have accepted."""
    accepted: list[Any] = []
    accept = Server.process_request

    def noted(self: Server, request: Any, client_address: Any) -> None:
        accepted.append(client_address)
        accept(self, request, client_address)

    monkeypatch.setattr(Server, "process_request", noted)
    return accepted


@pytest.fixture
def ask(clock: FakeClock, request_: Request) -> Callable[..., Asked]:
    """Serve a script to a model and send requests to it, one after the other."""

    def ask(
        script: Any,
        *requests: Request,
        times: int = 1,
        key: str | None = None,
        url: Callable[[str], str] = lambda base: base,
        wrap: Callable[[Model], Model] = lambda model: model,
        forever: bool = False,
        wire: str = "openai",
        also: Callable[[Any], Sequence[str]] | None = None,
        **profile: Any,
    ) -> Asked:
        async def send(stub: Stub) -> Sequence[Reply | ModelError]:
            made = ModelProfile("m", wire, "m", url(stub.base_url), **profile)
            model = WIRES[wire](made, key, clock=clock)
            wrapped = wrap(model)
            outcomes: list[Reply | ModelError] = []
            for request in requests or (request_,) * times:
                try:
                    outcomes.append(await wrapped.complete(request))
                except ModelError as error:
                    outcomes.append(error)
            await model.aclose()
            return outcomes

        with Stub(script, forever=forever, also=also) as stub:
            return Asked(list(anyio.run(send, stub)), stub)

    return ask
