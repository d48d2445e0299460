"""The first token of a reply: which list a server tells, and what it says of two words."""

from __future__ import annotations

import json
import math
from typing import Any

import anyio
import pytest

from goalmode.domain.messages import Reply, Request, User
from goalmode.domain.profile import ModelProfile
from goalmode.errors import ModelError
from goalmode.model.first_token import EXTRA, of_words, read
from goalmode.model.wire import openai_messages
from goalmode.model.wire.openai_first import OpenAIFirstToken
from goalmode.testing import Stub, steps

LIST = [{"token": "tool", "logprob": -0.5}, {"token": "The", "logprob": -2.0}]
WORDS = ("tool", "final")


def test_all_tokens_that_begin_a_word_count_together() -> None:
    """With a blank, in capitals, in quotes, or a piece of it of three letters: exp(-1) + exp(-2) + exp(-3) of tool."""
    top = (
        (" tool", -1.0),
        ("Tool", -2.0),
        ("too", -3.0),
        ('"final', -4.0),
        ("fin", -4.0),
        ("t", -0.1),
        ("", -0.2),
    )
    found = of_words(top, WORDS)

    assert found["tool"].value == pytest.approx(math.log(math.exp(-1) + math.exp(-2) + math.exp(-3)))
    assert found["final"].value == pytest.approx(-4 + math.log(2))
    assert not any(told.bound for told in found.values())


def test_a_word_that_is_not_listed_has_the_lists_end_for_a_bound() -> None:
    """It is less likely than the last one that is."""
    found = of_words((("tool", -0.5), ("The", -2.0), ("A", -7.0)), WORDS)

    assert (found["tool"].value, found["tool"].bound) == (-0.5, False)
    assert (found["final"].value, found["final"].bound) == (-7.0, True)


@pytest.mark.parametrize("top", [(), (("The", -0.5),), (("t", -0.1), ("tools", -0.2), ("fi", -0.3))])
def test_a_list_with_neither_word_says_nothing(top: Any) -> None:
    """Two bounds would make a difference of nothing."""
    assert of_words(top, WORDS) == {}


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (
            {"logprobs": {"content": [{"top_logprobs": LIST}, {"top_logprobs": [LIST[1]]}]}},
            (("tool", -0.5), ("The", -2.0)),
        ),
        (
            {"logprobs": {"content": [{"top_logprobs": [LIST[0], {"token": "x", "logprob": None}, "y"]}]}},
            (("tool", -0.5),),
        ),
        ({"logprobs": {"content": [{"top_logprobs": [{"token": "x", "logprob": -math.inf}]}]}}, ()),
        ({"logprobs": {"content": []}}, ()),
        ({"logprobs": {"content": [{"token": "tool", "logprob": -1}]}}, ()),
        ({"logprobs": None}, ()),
        ({}, ()),
    ],
    ids=["first", "holes", "impossible", "empty", "no list", "null", "absent"],
)
def test_the_list_of_the_first_token_is_read(choice: dict[str, Any], expected: Any) -> None:
    """What is no entry is left out; what is no list is none."""
    assert read(choice) == expected


def _asked(step: Any, top: int = 20) -> tuple[Reply, dict[str, Any]]:
    with Stub([step]) as stub:
        profile = ModelProfile("openai:m", "openai", "m", stub.base_url)

        async def ask() -> Reply:
            model = OpenAIFirstToken(profile, None, top=top)
            try:
                return await model.complete(Request((User("tool or final?"),), (), 4))
            finally:
                await model.aclose()

        reply = anyio.run(ask)
        asked = Request((User("tool or final?"),), (), 4)
        raw = stub.requests[0].raw
        assert raw == openai_messages.body(asked, profile, logprobs=True, top_logprobs=top)
        return reply, json.loads(raw)


def test_the_list_is_asked_for_and_arrives_with_the_reply() -> None:
    """The request is any other, and two fields; the reply has its text and its usage too."""
    extra = {"logprobs": {"content": [{"token": "tool", "top_logprobs": LIST}]}}
    reply, sent = _asked(steps.text("tool", extra=extra, usage=steps.usage(30, 1)))

    assert (sent["logprobs"], sent["top_logprobs"], sent["max_tokens"]) == (True, 20, 4)
    assert sent["messages"] == [{"role": "user", "content": "tool or final?"}]
    assert (reply.text, reply.usage.input) == ("tool", 30)
    assert reply.extra[EXTRA] == (("tool", -0.5), ("The", -2.0))


def test_a_server_that_tells_no_list_is_still_answered() -> None:
    """Whoever asks finds no list, and the text."""
    reply, _ = _asked(steps.text("tool"))

    assert (EXTRA in reply.extra, reply.text) == (False, "tool")


def test_a_refused_list_is_a_bad_request() -> None:
    """Nothing is retried, and the server's words arrive."""
    with pytest.raises(ModelError, match="at most 20"):
        _asked(steps.status(400, {"error": {"message": "top_logprobs: at most 20"}}), top=500)
