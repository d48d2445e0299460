"""A provider of the benchmarks inside the test's own process, and goals that it answers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from goalmode.bench.ledger import Ledger
from goalmode.bench.path import Measured, Turns
from goalmode.bench.provider import Script, Server
from goalmode.state.store import Store


@dataclass
class World:
    """A goal, the model that it talks to, and what is counted of its requests."""

    goal: Measured
    script: Script
    ledger: Ledger
    base_url: str

    def take(self, turns: int) -> int:
        """So many turns; returns how many were told of."""
        counted = Turns()
        anyio.run(self.goal.take, turns, counted)
        return counted.count


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Callable[..., World]]:
    """Makes one; what is given are settings of its goal."""
    servers: list[Server] = []
    stores: list[Store] = []

    def made(*, bound: int = 12_000, pieces: int = 0, **settings: Any) -> World:
        script, ledger = Script(facts=True), Ledger(bound)
        servers.append(Server(script, ledger.note, {b"ledger": ledger.summary, b"ask": script.ask}, pieces))
        threading.Thread(target=servers[-1].serve, daemon=True).start()
        stores.append(Store(str(tmp_path / "goals.sqlite")))
        goal = Measured.new(stores[-1], str(tmp_path), servers[-1].base_url, **settings)
        return World(goal, script, ledger, servers[-1].base_url)

    yield made
    for server in servers:
        server.close()
    for store in stores:
        store.close()
