"""A store that goes by a manual clock, a workspace and a goal."""

from __future__ import annotations

from tests.orchestrator.conftest import clock, empty_store, goal, store, workspace

__all__ = ["clock", "empty_store", "goal", "store", "workspace"]
