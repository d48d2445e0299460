"""A refused conversation: repaired and sent again once, and what is learnt from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
import pytest

from goalmode.domain.messages import (
    Assistant,
    FixKind,
    Message,
    Reply,
    Request,
    ToolCall,
    ToolResult,
    Usage,
    User,
)
from goalmode.domain.signals import ErrorKind
from goalmode.errors import ModelError
from goalmode.model import lint_dialects
from goalmode.model.mend import Mending
from goalmode.model.rules import ANTHROPIC, CHAT
from goalmode.model.scripted import ScriptedModel, say
from goalmode.testing.steps import status, text

from .conftest import Asked

Ask = Callable[..., Asked]
K = ErrorKind
MEND = partial(Mending, rules=CHAT)

ORDER = status(
    400,
    {
        "error": {
            "message": "An assistant message with 'tool_calls' must be followed by tool messages responding to "
            "each 'tool_call_id'. The following tool_call_ids did not have response messages: call_1",
            "type": "invalid_request_error",
        }
    },
)


def conversation(*more: Message) -> Request:
    call = Assistant("", (ToolCall("call_1", "shell", "{}"),), {"reasoning_content": "hm"})
    return Request((User("Go on."), call, ToolResult("call_1", "shell", "ok"), *more), (), 100)


def run(model: Mending, *requests: Request) -> list[Reply]:
    async def send() -> list[Reply]:
        return [await model.complete(request) for request in requests]

    return anyio.run(send)


def failing(kind: ErrorKind, usage: Usage | None = None) -> ModelError:
    return ModelError(kind, "refused\nfor a reason", status=400, usage=usage)


def scripted(steps: Iterable[Any], rules: Any = ANTHROPIC) -> tuple[Mending, ScriptedModel]:
    inner = ScriptedModel(steps)
    return Mending(inner, rules), inner


def test_a_refusal_once(ask: Ask) -> None:
    """One resend, and the reply tells that there was one and in whose words."""
    asked = ask([ORDER, text("Hi.")], conversation(), wrap=MEND)

    assert (asked.reply.text, len(asked.stub.requests)) == ("Hi.", 2)
    assert asked.reply.fixes[0].kind is FixKind.RESENT
    assert "must be followed by tool messages" in asked.reply.fixes[0].why


def test_a_refusal_for_ever(ask: Ask) -> None:
    """Two requests, then the provider's error as it is."""
    asked = ask([ORDER], conversation(), forever=True, wrap=MEND)

    assert (asked.error.kind, asked.error.status, len(asked.stub.requests)) == (K.PROTOCOL, 400, 2)
    assert "must be followed by tool messages" in str(asked.error)


@pytest.mark.parametrize("kind", sorted(set(K) - {K.PROTOCOL, K.SIGNATURE}))
def test_no_other_error_is_mended(kind: ErrorKind) -> None:
    """What is wrong with those is not the conversation."""
    model, inner = scripted([failing(kind)])

    with pytest.raises(ModelError):
        run(model, conversation())
    assert len(inner.requests) == 1


def test_a_server_with_rules_that_the_profile_does_not_know(ask: Ask) -> None:
    """Behind a gateway is Mistral: the plainest form is what it wanted, and from then on it gets that at once."""
    longer = conversation(User("And?"), Assistant("Well."), User("Go on then."), User("Do."))
    asked = ask(
        [text("One."), text("Two.")],
        conversation(User("And?")),
        longer,
        wrap=MEND,
        also=lambda body: lint_dialects.lint_mistral(body["messages"]),
    )

    one, two = asked.outcomes
    assert isinstance(one, Reply)
    assert isinstance(two, Reply)
    assert [fix.kind for fix in one.fixes] == [FixKind.RESENT, FixKind.RENAMED, FixKind.FILLED]
    # Each repair is told once, though the conversation is sent again whole.
    assert [(fix.kind, fix.message) for fix in two.fixes] == [(FixKind.MERGED, 6)]
    assert len(asked.stub.rejected) == 1


def test_another_conversation_is_told_anew() -> None:
    """What was told of one wakeup's conversation says nothing of the next one's."""
    model, _ = scripted([failing(K.PROTOCOL), say("a"), say("b"), say("c")], CHAT)

    first, same, other = run(model, conversation(), conversation(), conversation(User("Hm.")))

    assert [fix.kind for fix in first.fixes] == [FixKind.RESENT, FixKind.RENAMED]
    assert same.fixes == ()
    assert [fix.kind for fix in other.fixes] == [FixKind.FILLED]


def test_reasoning_that_is_refused_is_left_out_from_then_on() -> None:
    """What the provider did not take back never goes again; what it gives later does."""
    model, inner = scripted([failing(K.SIGNATURE), say("a"), say("b")])
    first = conversation()
    newer = Assistant("", (ToolCall("call_2", "shell", "{}"),), {"reasoning_content": "newer"})
    second = replace(first, messages=(*first.messages, newer, ToolResult("call_2", "shell", "ok")))

    one, two = run(model, first, second)

    given = [[m.extra for m in r.messages if isinstance(m, Assistant)] for r in inner.requests]
    assert given == [[{"reasoning_content": "hm"}], [{}], [{}, {"reasoning_content": "newer"}]]
    assert [fix.kind for fix in one.fixes] == [FixKind.RESENT, FixKind.STRIPPED]
    assert two.fixes == ()


def test_nothing_is_learnt_from_a_repair_that_did_not_help() -> None:
    """The next call begins with the conversation as it is."""
    model, inner = scripted([failing(K.PROTOCOL), failing(K.PROTOCOL), say("a")])
    with pytest.raises(ModelError):
        run(model, conversation())

    [reply] = run(model, conversation())

    assert reply.fixes == ()
    assert inner.requests[2].messages[1] == conversation().messages[1]


def test_what_a_refused_answer_cost_is_charged() -> None:
    """A refusal in the middle of a stream has its price: with the reply, or with the last error."""
    model, _ = scripted([failing(K.SIGNATURE, Usage(50, 0, 0, 1)), say("a", usage=Usage(100, 0, 0, 10))])
    assert run(model, conversation())[0].usage == Usage(150, 0, 0, 11)

    model, _ = scripted([failing(K.SIGNATURE, Usage(50)), failing(K.SIGNATURE, Usage(60))])
    with pytest.raises(ModelError) as caught:
        run(model, conversation())
    assert caught.value.usage == Usage(110)


def test_a_paused_reply_that_is_sent_back_stays_the_end() -> None:
    """A repair puts no word of the user behind it."""
    model, inner = scripted([failing(K.PROTOCOL), say("a")], CHAT)

    run(model, conversation(User("And?"), Assistant("Let me")))

    assert inner.requests[1].messages[-1] == Assistant("Let me")
