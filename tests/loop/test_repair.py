"""What the loop sends is right, or is put right: told in the journal, and a refusal ends the wakeup for its reason."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from goalmode.domain.exits import Exit, ExitReason, GoalStatus
from goalmode.domain.goal import GoalSettings
from goalmode.domain.messages import Assistant, Message, ToolCall, ToolResult, User
from goalmode.domain.profile import ModelProfile
from goalmode.domain.signals import StopReason
from goalmode.domain.work import WorkState
from goalmode.inspection.turns import turns
from goalmode.loop.turn import Run
from goalmode.model.repair.pairs import NO_RESULT
from goalmode.orchestrator.wake import Wake
from goalmode.testing import ScriptedModel, Stub, call, calls, say
from goalmode.testing.steps import status, text, tool
from goalmode.wiring import open_model, run_wakeup

from .conftest import PROFILE, Make, World

ORDER = status(400, {"error": {"message": "Unexpected role 'user' after role 'tool'", "code": "3230"}})


def repairs(world: World) -> list[list[Any]]:
    return [[(r["kind"], r["message"]) for r in turn["repairs"]] for turn in turns(world.store, world.now)]


def wake_with(world: World, *more: Message, steps: list[Any]) -> ScriptedModel:
    """One wakeup whose conversation begins with `more` behind its context."""
    model, wake = ScriptedModel(steps), world.begin()
    assert isinstance(wake, Wake)
    wake.messages = (*wake.messages, *more)
    anyio.run(run_wakeup, wake, model)
    return model


def test_an_ordinary_wakeup_needs_no_repair(make: Make) -> None:
    """Parallel calls, a claim before its siblings, broken arguments, a cut reply and prompts: nothing to put right."""
    world = make(max_turns=5, deliverables=("a", "b"))
    write = call("write_file", path="a", content="x")
    claim = call("complete", status="success", summary="s", evidence=["a"])
    cut = say("Half", stop=StopReason.MAX_TOKENS)
    both = calls(write, call("shell", command="true"))
    world.wake([both, cut, call("nope"), say("Hm."), calls(claim, write), say("Saved.")])

    assert len(repairs(world)) == 6
    assert all(found == [] for found in repairs(world))


def test_a_wrong_conversation_is_put_right_once(make: Make) -> None:
    """A control call left open is closed before anything is sent, and the turn tells of it (B101, B103)."""
    world = make(max_turns=2)
    dangling = Assistant("", (ToolCall("c1", "complete", "{}"),))

    model = wake_with(world, dangling, User("Well?"), steps=[call("shell", command="true"), say("Hm.")])

    assert model.violations == []
    assert ToolResult("c1", "complete", NO_RESULT) in model.requests[0].messages
    assert model.requests[1].messages[: len(model.requests[0].messages)] == model.requests[0].messages
    assert [len(found) for found in repairs(world)] == [1, 0]
    assert repairs(world)[0][0][0] == "closed"


def test_the_tokens_of_a_repair_are_counted() -> None:
    """What is left out counts no longer against the window and the budget, what is put in does."""
    given = (
        User("Go on."),
        ToolResult("gone", "shell", "x" * 500),
        Assistant("", (ToolCall("c1", "shell", "{}"),)),
    )
    goal = SimpleNamespace(revision=1, settings=GoalSettings())
    wake = SimpleNamespace(messages=given, context_tokens=5_000, goal=goal, work=WorkState())
    ports = SimpleNamespace(profile=PROFILE, count_message=lambda message: len(message.text))
    run = Run(cast(Any, wake), cast(Any, ports))

    fixes = run.put_right()

    assert [fix.kind for fix in fixes] == ["dropped", "closed"]
    assert run.tokens == 5_000 - 500 + len(NO_RESULT)
    assert run.settled == 3  # what the conversation began with, and keeps
    assert run.put_right() == ()


def resent(make: Make, steps: list[Any], **options: Any) -> tuple[World, Stub, Exit]:
    """One wakeup against a strict provider on loopback."""
    with Stub(steps, **options) as stub:
        world = make(max_turns=2, profile=ModelProfile("stub", "openai", "stub", stub.base_url))
        wake = world.begin()
        assert isinstance(wake, Wake)
        model = open_model(world.profile, None, clock=world.clock)

        async def run() -> Exit:
            try:
                return await run_wakeup(wake, model)
            finally:
                await model.aclose()

        return world, stub, anyio.run(run)


def test_a_refused_conversation_is_sent_once_more(make: Make) -> None:
    """A provider that says once that the order is wrong gets the plainest form; the turn tells of it."""
    answer = tool("shell", {"command": "true"})
    world, stub, ending = resent(make, [answer, ORDER, answer, text("Hm."), text("Hm.")])

    assert ending.reason is ExitReason.MAX_TURNS_EXCEEDED
    assert stub.rejected == []
    told = turns(world.store, world.now)[1]["repairs"]
    assert (told[0]["kind"], "Unexpected role" in told[0]["why"]) == ("resent", True)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Unexpected role 'user' after role 'tool'", "PROTOCOL"),
        ("Invalid `signature` in `thinking` block", "SIGNATURE"),
    ],
)
def test_a_conversation_refused_for_ever_blocks_the_goal(make: Make, message: str, kind: str) -> None:
    """After one repair it is BACKEND_ERROR with the provider's words, and no waiting would help."""
    world, stub, ending = resent(make, [status(400, {"error": {"message": message}})], forever=True)

    assert (ending.reason, ending.facts["kind"]) == (ExitReason.BACKEND_ERROR, kind)
    assert message in ending.detail
    assert len(stub.requests) == 2
    assert world.now.status is GoalStatus.BLOCKED
