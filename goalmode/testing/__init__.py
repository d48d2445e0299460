"""Public doubles for tests: a scripted model, a strict provider on loopback, a manual clock and a store that goes away.

Names are loaded when they are first used, so that `python -m goalmode.testing.stub` starts quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from goalmode.model.scripted import (
        InvalidRequest,
        ScriptedModel,
        UnconsumedModelSteps,
        UnexpectedModelCall,
        call,
        calls,
        say,
    )
    from goalmode.testing import steps
    from goalmode.testing.clock import ManualClock
    from goalmode.testing.store import temporary_store
    from goalmode.testing.stub import Stub

__all__ = [
    "InvalidRequest",
    "ManualClock",
    "ScriptedModel",
    "Stub",
    "UnconsumedModelSteps",
    "UnexpectedModelCall",
    "call",
    "calls",
    "say",
    "steps",
    "temporary_store",
]

_HOMES = dict.fromkeys(__all__, "goalmode.model.scripted") | {
    "ManualClock": "goalmode.testing.clock",
    "Stub": "goalmode.testing.stub",
    "temporary_store": "goalmode.testing.store",
}


def __getattr__(name: str) -> Any:
    if name == "steps":
        return import_module("goalmode.testing.steps")
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
