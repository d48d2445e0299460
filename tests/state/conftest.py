"""A store that goes away, and the clock that it goes by."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from goalmode.state.store import Store
from goalmode.testing import ManualClock
from tests.stores import Stores


@pytest.fixture(scope="session")
def empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated store without goals, to be copied: a migration costs a tenth of a second."""
    path = tmp_path_factory.mktemp("empty") / "goals.sqlite"
    Store(str(path)).close()
    return path


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(clock: ManualClock, new_stores: Stores, tmp_path: Path) -> Iterator[Store]:
    with Store(new_stores.new(tmp_path / "store" / "goals.sqlite"), clock=clock) as opened:
        yield opened
