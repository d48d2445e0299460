"""A store that goes by a manual clock, and a workspace."""

from __future__ import annotations

from pathlib import Path

import pytest

from goalmode.domain.goal import Goal
from goalmode.state.store import Store
from tests.orchestrator.builders import new_goal
from tests.state.conftest import clock, empty_store, store

__all__ = ["clock", "empty_store", "store"]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    made = tmp_path / "workspace"
    made.mkdir()
    return made


@pytest.fixture
def goal(store: Store, workspace: Path) -> Goal:
    return new_goal(store, workspace)
