"""A store that goes away, and the clock that it goes by."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from goalmode.state.store import Store
from goalmode.testing import ManualClock


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
def store(clock: ManualClock, empty_store: Path, tmp_path: Path) -> Iterator[Store]:
    path = tmp_path / "store" / "goals.sqlite"
    path.parent.mkdir(mode=0o700)
    shutil.copy(empty_store, path)
    with Store(str(path), clock=clock) as opened:
        yield opened
