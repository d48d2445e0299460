"""The rows of the acceptance scenarios, run against the public API and the command. Each test names its row."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from goalmode.domain.clock import SystemClock
from tests.acceptance.cli import Command
from tests.acceptance.processes import Children
from tests.acceptance.world import Provider, World, open_world
from tests.stores import Stores

HERE = Path(__file__).parent

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A job in the background of a script ignores Ctrl-C, and so would every process that a test starts.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole programs in processes of their own: a suite by itself, `make test-acceptance`."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.slow)


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A strict provider; every request that reached it is held to WIRE-VALID at the end."""
    with Provider() as made:
        yield made
    assert made.violations() == []


@pytest.fixture
def world(tmp_path: Path, provider: Provider, new_stores: Stores) -> Iterator[World]:
    """One store, one workspace and one provider, under a clock that moves by hand."""
    yield from open_world(tmp_path, provider, new_stores)


@pytest.fixture
def real_world(tmp_path: Path, provider: Provider, new_stores: Stores) -> Iterator[World]:
    """The same in real time, for goals that other processes wake too."""
    yield from open_world(tmp_path, provider, new_stores, SystemClock())


@pytest.fixture
def goalmode(tmp_path: Path, new_stores: Stores, children: Children) -> Command:
    """The command, with a store of its own that is not made yet."""
    store = tmp_path / "state" / "goals.sqlite"
    return Command(store, new_stores.unused(store), children)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    made.mkdir(exist_ok=True)
    return made


@pytest.fixture
def children() -> Iterator[Children]:
    made = Children()
    yield made
    made.end()
