"""The rows of the acceptance scenarios, run against the public API and the command. Each test names its row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from goalmode.domain.clock import SystemClock
from tests.acceptance.processes import Children
from tests.acceptance.world import Provider, World, open_world


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as made:
        yield made


@pytest.fixture
def world(tmp_path: Path, provider: Provider) -> Iterator[World]:
    """One store, one workspace and one provider; every request is held to WIRE-VALID at the end."""
    yield from open_world(tmp_path, provider)


@pytest.fixture
def real_world(tmp_path: Path, provider: Provider) -> Iterator[World]:
    """The same in real time, for goals that other processes wake too."""
    yield from open_world(tmp_path, provider, SystemClock())


@pytest.fixture
def children() -> Iterator[Children]:
    made = Children()
    yield made
    made.end()
