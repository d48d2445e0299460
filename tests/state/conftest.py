"""A store that goes away, and the clock that it goes by."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from goalmode.state.store import Store
from goalmode.testing import ManualClock, temporary_store


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(clock: ManualClock) -> Iterator[Store]:
    with temporary_store(clock=clock) as opened:
        yield opened
