"""A context with a real workspace, and a gate that only counts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from goalmode.tools.registry import ToolContext
from tests.tools.bench import Bench


@dataclass
class FakeHold:
    gate: FakeGate
    fd: int | None

    def mark(self, process_group: int) -> None:
        self.gate.groups.append(process_group)


@dataclass
class FakeGate:
    """Opens for everybody; `error` is raised instead of entering."""

    path: Path
    entered: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    groups: list[int] = field(default_factory=list)
    error: BaseException | None = None

    @contextmanager
    def enter(self, call_id: str) -> Iterator[FakeHold]:
        if self.error is not None:
            raise self.error
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        self.entered.append(call_id)
        try:
            yield FakeHold(self, fd)
        finally:
            os.close(fd)
            self.left.append(call_id)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    made = tmp_path / "my wörk space"
    made.mkdir()
    return made


@pytest.fixture
def gate(tmp_path: Path) -> FakeGate:
    return FakeGate(tmp_path / "gate.lock")


@pytest.fixture
def context(workspace: Path, gate: FakeGate) -> ToolContext:
    return ToolContext(
        workspace, gate, "call_1", environment={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
    )


@pytest.fixture
def bench(context: ToolContext) -> Bench:
    return Bench(replace(context, now=datetime(2026, 1, 1, tzinfo=UTC)))


@pytest.fixture
def running() -> Callable[[str], list[str]]:
    """The command lines of all live processes that hold a word; zombies have none."""

    def find(word: str) -> list[str]:
        found = []
        for file in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = file.read_bytes().replace(b"\x00", b" ").decode("utf-8", "replace")
            except OSError:
                continue
            if word in line:
                found.append(line)
        return found

    return find
