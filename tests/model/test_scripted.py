"""The scripted model: strict about what it is asked and about what it is not."""

from __future__ import annotations

import anyio
import pytest

from goalmode.domain.messages import Assistant, Message, Reply, Request, ToolCall, ToolResult, ToolSpec, User
from goalmode.domain.signals import ErrorKind, StopReason
from goalmode.errors import ModelError
from goalmode.testing import (
    InvalidRequest,
    ScriptedModel,
    UnconsumedModelSteps,
    UnexpectedModelCall,
    call,
    calls,
    say,
)

ASK = Request((User("Go."),), (), 10)


def complete(model: ScriptedModel, request: Request = ASK) -> Reply:
    reply: Reply = anyio.run(model.complete, request)
    return reply


def test_steps_come_in_order() -> None:
    """Replies, functions and coroutines answer one request each."""

    async def later(request: Request) -> Reply:
        return say(f"later {request.max_output}")

    model = ScriptedModel([say("one"), lambda request: say(f"asked {len(request.messages)}"), later])

    assert [complete(model).text for _ in range(3)] == ["one", "asked 1", "later 10"]
    assert model.requests == [ASK, ASK, ASK]
    model.assert_finished()


def test_an_exception_is_a_step() -> None:
    """A step may be an error of any kind."""
    model = ScriptedModel([ModelError(ErrorKind.AUTH, "no"), KeyboardInterrupt()])

    with pytest.raises(ModelError):
        complete(model)
    with pytest.raises(KeyboardInterrupt):
        complete(model)


def test_a_call_too_many_fails() -> None:
    """The script's end is a failure, and no engine mistakes it for a model's."""
    with pytest.raises(UnexpectedModelCall, match="call 1, but the script has 0 steps"):
        complete(ScriptedModel([]))
    assert issubclass(UnexpectedModelCall, AssertionError)


def test_a_step_too_few_fails() -> None:
    """Steps that nobody used are a failure."""
    with pytest.raises(UnconsumedModelSteps, match="2 of 2"):
        ScriptedModel([say("a"), say("b")]).assert_finished()


def test_a_request_that_a_provider_would_refuse_fails() -> None:
    """An unanswered call is told in the provider's words."""
    request = Request((User("Go."), Assistant("", (ToolCall("c", "shell", "{}"),))), (), 10)

    with pytest.raises(InvalidRequest, match="must be followed by tool messages"):
        complete(ScriptedModel([say("x")]), request)


def test_a_lenient_model_only_records() -> None:
    """Without strictness violations are kept for later."""
    bad = ToolSpec("no good", "", {})
    model = ScriptedModel([say("x")], strict=False)
    complete(model, Request((Assistant("first"),), (bad,), 10))

    assert len(model.violations) == 2


def test_helpers_build_replies() -> None:
    """`say`, `call` and `calls` give ending, arguments and a usage."""
    both = calls(say("I look."), call("shell", command="ls"), call("remember", name="x"))

    assert (both.stop, both.text) == (StopReason.TOOL_USE, "I look.")
    assert [(c.name, c.arguments) for c in both.calls] == [
        ("shell", '{"command": "ls"}'),
        ("remember", '{"name": "x"}'),
    ]
    assert say("Hi.").usage.tokens > 0
    assert say("Half", stop=StopReason.MAX_TOKENS).stop is StopReason.MAX_TOKENS


def test_calls_get_ids_of_their_own() -> None:
    """The same step used twice still gives a valid conversation."""
    step = calls(call("shell"), call("shell"))
    model = ScriptedModel([step, step, say("End.")])

    first = complete(model)
    history: tuple[Message, ...] = (
        User("Go."),
        first.message(),
        *(ToolResult(c.id, c.name, "ok") for c in first.calls),
    )
    second = complete(model, Request(history, (), 10))
    history = (*history, second.message(), *(ToolResult(c.id, c.name, "ok") for c in second.calls))
    complete(model, Request(history, (), 10))

    assert len({c.id for c in (*first.calls, *second.calls)}) == 4
    assert model.violations == []
