"""The public surface: what is exported is importable, sorted and enough to embed goalmode in another loop."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

import goalmode
from goalmode import (
    CallOutcome,
    CallRecord,
    Effect,
    Exit,
    ExitReason,
    GoalSpec,
    History,
    ModelProfile,
    Reply,
    Skip,
    StopReason,
    Store,
    ToolCall,
    TurnOutcome,
    Usage,
    Wake,
    begin_wakeup,
    close_wakeup,
    create_goal,
    run_wakeup,
    tool,
)
from goalmode.domain.steps import Close, Nudge
from goalmode.testing import ScriptedModel, call

PROFILE = ModelProfile("scripted", "openai", "scripted", "http://127.0.0.1:9/v1")


def test_exported_members_are_importable() -> None:
    """`__all__` says what there is, once, and each name can be had."""
    assert len(set(goalmode.__all__)) == len(goalmode.__all__)
    assert all(getattr(goalmode, name) is not None for name in goalmode.__all__)
    assert goalmode.__version__


def test_an_unknown_name_is_an_attribute_error() -> None:
    """Lazy loading does not invent names."""
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        goalmode.nonsense  # noqa: B018


def test_another_loop_uses_the_same_ways_in_and_out(tmp_path: Path) -> None:
    """A driver with a loop of its own: claim, intent, outcome, the no-tool guard, close; all synchronous."""
    with Store(str(tmp_path / "goals.sqlite")) as store:
        goal = create_goal(store, GoalSpec("Say hello.", str(tmp_path)))
        wake = begin_wakeup(store, goal, profile=PROFILE)
        assert isinstance(wake, Wake)
        assert "Say hello." in wake.messages[1].text

        asked = ToolCall("c1", "greet", '{"name": "Ada"}')
        wake.intent(Reply(StopReason.TOOL_USE, calls=(asked,), usage=Usage(input=100, output=10)))
        result = CallRecord(0, "c1", "greet", Effect.WRITE, CallOutcome.SUCCESS, "Hello, Ada")
        wake.outcome(TurnOutcome(records=[result]))
        wake.intent(Reply(StopReason.END_TURN, "All done.", usage=Usage(input=120, output=5)))
        wake.outcome()

        early, late = wake.no_tool(History(turn=2)), wake.no_tool(History(turn=2, recoveries=2))
        assert isinstance(early, Nudge)
        assert isinstance(late, Close)
        stored = close_wakeup(wake, late.exit)

        assert stored.reason is ExitReason.EARLY_NO_TOOL
        again = begin_wakeup(store, goal, profile=PROFILE)
        assert isinstance(again, Skip)
        assert again.reason == "not_due"


def test_a_python_tool(tmp_path: Path) -> None:
    """`@goalmode.tool` makes a function a tool; its result reaches the model, its call the journal."""
    greeted: list[str] = []

    @tool(effect="read")
    def greet(name: str) -> str:
        """Greet somebody."""
        greeted.append(name)
        return f"Hello, {name}"

    model = ScriptedModel(
        [call("greet", name="Ada"), call("complete", status="success", summary="Said.", evidence="greet Ada")]
    )
    with Store(str(tmp_path / "goals.sqlite")) as store:
        goal = create_goal(store, GoalSpec("Greet Ada.", str(tmp_path)))
        wake = begin_wakeup(store, goal, profile=PROFILE, tools=[greet])
        assert isinstance(wake, Wake)

        async def run() -> Exit:
            return await run_wakeup(wake, model)

        ending = anyio.run(run)

    assert greeted == ["Ada"]
    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert ending.facts["basis"] == "evidence-only"


def test_a_display_that_fails_does_not_end_the_wakeup(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A sink of the user's that raises is logged once and told nothing more; the goal goes on to its end."""
    told: list[str] = []

    def broken(event: object) -> None:
        told.append(getattr(event, "kind", ""))
        raise ValueError("no display")

    (tmp_path / "a.txt").write_text("x")
    model = ScriptedModel([call("complete", status="success", summary="There.")])
    with Store(str(tmp_path / "goals.sqlite")) as store:
        goal = create_goal(store, GoalSpec("Make a.txt.", str(tmp_path), deliverables=("a.txt",)))
        wake = begin_wakeup(store, goal, profile=PROFILE)
        assert isinstance(wake, Wake)

        async def run() -> Exit:
            return await run_wakeup(wake, model, sink=broken)

        assert anyio.run(run).reason is ExitReason.CURRENT_TASK_DONE

    assert told == ["wakeup_started"]
    assert "told nothing more" in caplog.text
