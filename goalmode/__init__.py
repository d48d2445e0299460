"""goalmode: keeps an agent's long goal alive over rebuilt contexts, and says why every wakeup ended.

The public API. Importing the package opens nothing and loads nothing heavy; names are loaded when they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from goalmode.domain.budget import Limits
    from goalmode.domain.calls import CallOutcome, CallRecord, Effect
    from goalmode.domain.contract import FileCheck, FileTest, Requirement
    from goalmode.domain.cost import Price
    from goalmode.domain.exits import EXIT_FACTS, Exit, ExitReason, GoalStatus
    from goalmode.domain.goal import Goal, GoalSettings, GoalSpec
    from goalmode.domain.messages import Reply, ToolCall, Usage
    from goalmode.domain.profile import ModelProfile
    from goalmode.domain.signals import StopReason
    from goalmode.domain.work import StatePatch, WorkState
    from goalmode.domain.workflow import Movement, Workflow
    from goalmode.errors import GoalmodeError
    from goalmode.loop.history import History
    from goalmode.orchestrator.goals import create_goal
    from goalmode.orchestrator.skip import Skip
    from goalmode.orchestrator.wake import Wake, close_wakeup
    from goalmode.state.journal import TurnOutcome
    from goalmode.state.store import Store
    from goalmode.tools.registry import ToolContext, ToolOutput, tool
    from goalmode.wiring import begin_wakeup, open_model, run_wakeup

_HOMES = {
    "CallOutcome": "goalmode.domain.calls",
    "CallRecord": "goalmode.domain.calls",
    "EXIT_FACTS": "goalmode.domain.exits",
    "Effect": "goalmode.domain.calls",
    "Exit": "goalmode.domain.exits",
    "ExitReason": "goalmode.domain.exits",
    "FileCheck": "goalmode.domain.contract",
    "FileTest": "goalmode.domain.contract",
    "Goal": "goalmode.domain.goal",
    "GoalSettings": "goalmode.domain.goal",
    "GoalSpec": "goalmode.domain.goal",
    "GoalStatus": "goalmode.domain.exits",
    "GoalmodeError": "goalmode.errors",
    "History": "goalmode.loop.history",
    "Limits": "goalmode.domain.budget",
    "ModelProfile": "goalmode.domain.profile",
    "Movement": "goalmode.domain.workflow",
    "Price": "goalmode.domain.cost",
    "Reply": "goalmode.domain.messages",
    "Requirement": "goalmode.domain.contract",
    "Skip": "goalmode.orchestrator.skip",
    "StatePatch": "goalmode.domain.work",
    "StopReason": "goalmode.domain.signals",
    "Store": "goalmode.state.store",
    "ToolCall": "goalmode.domain.messages",
    "ToolContext": "goalmode.tools.registry",
    "ToolOutput": "goalmode.tools.registry",
    "TurnOutcome": "goalmode.state.journal",
    "Usage": "goalmode.domain.messages",
    "Wake": "goalmode.orchestrator.wake",
    "WorkState": "goalmode.domain.work",
    "Workflow": "goalmode.domain.workflow",
    "begin_wakeup": "goalmode.wiring",
    "close_wakeup": "goalmode.orchestrator.wake",
    "create_goal": "goalmode.orchestrator.goals",
    "open_model": "goalmode.wiring",
    "run_wakeup": "goalmode.wiring",
    "tool": "goalmode.tools.registry",
}

__all__ = [
    "EXIT_FACTS",
    "CallOutcome",
    "CallRecord",
    "Effect",
    "Exit",
    "ExitReason",
    "FileCheck",
    "FileTest",
    "Goal",
    "GoalSettings",
    "GoalSpec",
    "GoalStatus",
    "GoalmodeError",
    "History",
    "Limits",
    "ModelProfile",
    "Movement",
    "Price",
    "Reply",
    "Requirement",
    "Skip",
    "StatePatch",
    "StopReason",
    "Store",
    "ToolCall",
    "ToolContext",
    "ToolOutput",
    "TurnOutcome",
    "Usage",
    "Wake",
    "WorkState",
    "Workflow",
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
