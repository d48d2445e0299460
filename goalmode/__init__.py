"""goalmode: keeps an agent's long goal alive over rebuilt contexts, and says why every wakeup ended.

The public API. Importing the package opens nothing and loads nothing heavy; names are loaded when they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from goalmode.domain.budget import Limits
    from goalmode.domain.exits import EXIT_FACTS, Exit, ExitReason, GoalStatus
    from goalmode.domain.goal import Goal, GoalSettings, GoalSpec, Requirement
    from goalmode.domain.profile import ModelProfile
    from goalmode.errors import GoalmodeError
    from goalmode.orchestrator.goals import create_goal
    from goalmode.orchestrator.wake import Skip, Wake, close_wakeup
    from goalmode.state.store import Store
    from goalmode.tools.registry import ToolContext, ToolOutput, tool
    from goalmode.wiring import begin_wakeup, open_model, run_wakeup

_HOMES = {
    "EXIT_FACTS": "goalmode.domain.exits",
    "Exit": "goalmode.domain.exits",
    "ExitReason": "goalmode.domain.exits",
    "Goal": "goalmode.domain.goal",
    "GoalSettings": "goalmode.domain.goal",
    "GoalSpec": "goalmode.domain.goal",
    "GoalStatus": "goalmode.domain.exits",
    "GoalmodeError": "goalmode.errors",
    "Limits": "goalmode.domain.budget",
    "ModelProfile": "goalmode.domain.profile",
    "Requirement": "goalmode.domain.goal",
    "Skip": "goalmode.orchestrator.wake",
    "Store": "goalmode.state.store",
    "ToolContext": "goalmode.tools.registry",
    "ToolOutput": "goalmode.tools.registry",
    "Wake": "goalmode.orchestrator.wake",
    "begin_wakeup": "goalmode.wiring",
    "close_wakeup": "goalmode.orchestrator.wake",
    "create_goal": "goalmode.orchestrator.goals",
    "open_model": "goalmode.wiring",
    "run_wakeup": "goalmode.wiring",
    "tool": "goalmode.tools.registry",
}

__all__ = [
    "EXIT_FACTS",
    "Exit",
    "ExitReason",
    "Goal",
    "GoalSettings",
    "GoalSpec",
    "GoalStatus",
    "GoalmodeError",
    "Limits",
    "ModelProfile",
    "Requirement",
    "Skip",
    "Store",
    "ToolContext",
    "ToolOutput",
    "Wake",
    "begin_wakeup",
    "close_wakeup",
    "create_goal",
    "open_model",
    "run_wakeup",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("goalmode")
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'goalmode' has no attribute {name!r}")
    return getattr(import_module(home), name)
