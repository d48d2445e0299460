"""The stub's `/v1/messages`: Anthropic's own client is served, and nothing is taken that Anthropic would refuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import anthropic
import httpx
import pytest

from goalmode.testing import Stub, steps
from goalmode.testing.script import closing_after, in_order, rule_from_json
from goalmode.testing.steps import Completion, cut, error_chunk, status, text, tool, tools

USER: Any = {"role": "user", "content": "Go."}
TOOL: Any = {"name": "shell", "description": "Run.", "input_schema": {"type": "object"}}
VERSION = {"anthropic-version": "2023-06-01"}


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=10, trust_env=False, headers=VERSION) as made:
        yield made


def official(stub: Stub) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=stub.base_url.removesuffix("/v1"), api_key="k", max_retries=0)


def post(client: httpx.Client, stub: Stub, *messages: Any, **more: Any) -> httpx.Response:
    body = {"model": "m", "max_tokens": 99, "messages": list(messages) or [USER], **more}
    return client.post(f"{stub.base_url}/messages", json=body)


def conversed(client: anthropic.Anthropic, turns: int, *, stream: bool) -> list[anthropic.types.Message]:
    """A conversation that sends each reply back as it came, with results for its calls."""
    messages: list[Any] = [USER]
    replies = []
    for _ in range(turns):
        asked: Any = {"model": "m", "max_tokens": 99, "messages": messages, "tools": [TOOL], "system": "S"}
        if stream:
            with client.messages.stream(**asked) as streamed:
                reply = streamed.get_final_message()
        else:
            reply = client.messages.create(**asked)
        replies.append(reply)
        messages.append({"role": "assistant", "content": reply.content})
        calls = [block for block in reply.content if block.type == "tool_use"]
        if calls:
            results = [{"type": "tool_result", "tool_use_id": call.id, "content": "ok"} for call in calls]
            messages.append({"role": "user", "content": results})
        elif reply.stop_reason != "pause_turn":
            messages.append(USER)
    return replies


SCRIPT = [
    text("Hello 你好"),
    tool("shell", {"command": "ls"}, text="I look.", reasoning="What is there?"),
    tools([("shell", {"a": 1}), ("shell", {"b": 2})], usage=steps.usage(100, 7, cached=60)),
    text("A text that needs several pieces", reasoning="And now this."),
]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_the_official_client_is_served(stream: bool) -> None:
    """anthropic's own client reads text, thinking, calls and usage, and sends them back accepted."""
    with Stub(SCRIPT) as stub, official(stub) as client:
        replies = conversed(client, 4, stream=stream)

    assert stub.rejected == []
    assert [reply.stop_reason for reply in replies] == ["end_turn", "tool_use", "tool_use", "end_turn"]
    kinds = [[block.type for block in reply.content] for reply in replies]
    assert kinds == [["text"], ["thinking", "text", "tool_use"], ["tool_use"] * 2, ["thinking", "text"]]
    blocks: list[Any] = [block for reply in replies for block in reply.content]
    assert [b.text for b in blocks if b.type == "text"] == ["Hello 你好", "I look.", SCRIPT[3].text]
    assert [b.thinking for b in blocks if b.type == "thinking"] == ["What is there?", "And now this."]
    assert [b.input for b in blocks if b.type == "tool_use"] == [{"command": "ls"}, {"a": 1}, {"b": 2}]
    usage = replies[2].usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.output_tokens) == (40, 60, 7)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_paused_turn_goes_on_where_it_stopped(stream: bool) -> None:
    """The call of the provider's own tool has its result at the head of what follows."""
    script = [text("I search.", finish="pause_turn"), text("Found.")]
    with Stub(script) as stub, official(stub) as client:
        messages: list[Any] = [USER]
        asked: Any = {"model": "m", "max_tokens": 99, "messages": messages}
        paused = client.messages.create(**asked)
        messages.append({"role": "assistant", "content": paused.content})
        if stream:
            with client.messages.stream(**asked) as streamed:
                found = streamed.get_final_message()
        else:
            found = client.messages.create(**asked)

    assert stub.rejected == []
    assert paused.stop_reason == "pause_turn"
    assert [b.type for b in paused.content] == ["text", "server_tool_use"]
    assert [b.type for b in found.content] == ["web_search_tool_result", "text"]


def test_the_official_client_raises_as_with_the_provider() -> None:
    """Errors, error events, cut streams and refused requests look real to a real client."""
    script: list[steps.Step] = [
        status(429, {"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}),
        error_chunk({"type": "overloaded_error", "message": "Overloaded"}, "Half"),
        cut(text("abcdef"), 3),
    ]
    asked: Any = {"model": "m", "max_tokens": 99, "messages": [USER]}
    with Stub(script) as stub, official(stub) as client:
        with pytest.raises(anthropic.RateLimitError):
            client.messages.create(**asked)
        with pytest.raises(anthropic.APIStatusError) as event, client.messages.stream(**asked) as streamed:
            streamed.get_final_message()
        assert (event.value.type, event.value.status_code) == ("overloaded_error", 200)
        with (
            pytest.raises(Exception, match=r"incomplete|closed|Connection"),
            client.messages.stream(**asked) as streamed,
        ):
            streamed.get_final_message()
        with pytest.raises(anthropic.BadRequestError, match="first message must use"):
            client.messages.create(**{**asked, "messages": [{"role": "assistant", "content": "x"}]})

    assert len(stub.rejected) == 1


@pytest.mark.parametrize(
    ("step", "word"),
    [
        (text("x", finish="length"), "max_tokens"),
        (text("x", finish="stop"), "end_turn"),
        (tool("shell", finish="tool_calls"), "tool_use"),
        (text("x", finish="banana"), "banana"),
        (text("x", finish=None), None),
        (text("", refusal="No."), "refusal"),
    ],
)
def test_a_script_for_another_format_serves_this_one(
    client: httpx.Client, step: Completion, word: str | None
) -> None:
    """The words of the chat format are said in Anthropic's; any others as they are."""
    with Stub([step]) as stub:
        assert post(client, stub).json()["stop_reason"] == word


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"messages": []}, "at least one message is required"),
        ({"max_tokens": None}, "max_tokens: Field required"),
        ({"model": None}, "you must provide a model parameter"),
        ({"stream_options": {}}, "Extra inputs are not permitted"),
        (
            {"messages": [USER, {"role": "assistant", "content": "x"}]},
            "does not support assistant message prefill",
        ),
    ],
)
def test_an_invalid_request_is_refused_and_recorded(
    client: httpx.Client, more: dict[str, Any], said: str
) -> None:
    """What is not wire-valid gets a 400 in the provider's words and shape, and uses up no step."""
    with Stub([text("Hi.")]) as stub:
        refused = post(client, stub, **more)
        accepted = post(client, stub)

    body = refused.json()
    assert (refused.status_code, body["type"], body["error"]["type"]) == (
        400,
        "error",
        "invalid_request_error",
    )
    assert said in body["error"]["message"]
    assert stub.rejected == [body["error"]["message"]]
    assert accepted.json()["content"] == [{"type": "text", "text": "Hi."}]


@pytest.mark.parametrize(
    "changed",
    [
        lambda messages: messages[0].update(content="Something else."),
        lambda messages: messages[1]["content"][0].update(thinking="I never thought that."),
        lambda messages: messages[1]["content"][0].update(signature="x"),
    ],
    ids=["what came before", "thought", "signature"],
)
def test_changed_thinking_is_refused(client: httpx.Client, changed: Any) -> None:
    """Thinking is bound to its words and to the conversation before it; cache marks are no part of that."""
    with Stub([text("Hi.", reasoning="A greeting."), text("Again.")]) as stub:
        first = post(client, stub).json()
        messages = [
            {"role": "user", "content": "Go."},
            {"role": "assistant", "content": first["content"]},
            {
                "role": "user",
                "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}],
            },
        ]
        accepted = post(client, stub, *messages)
        changed(messages)
        refused = post(client, stub, *messages)

    assert (accepted.status_code, refused.status_code) == (200, 400)
    assert "Invalid `signature` in `thinking` block" in stub.rejected[0]


def test_key_and_version_are_demanded(client: httpx.Client) -> None:
    """Without the right key there is a 401, without the format's version a 400."""
    with Stub([text("a")], key="right") as stub:
        assert post(client, stub).status_code == 401
        client.headers["authorization"] = "Bearer right"
        assert post(client, stub).status_code == 401
        client.headers["x-api-key"] = "right"
        assert post(client, stub).status_code == 200
        del client.headers["anthropic-version"]
        assert post(client, stub).status_code == 400

    assert "anthropic-version: header is required" in stub.rejected


def test_a_script_that_has_ended_refuses_in_the_formats_shape(client: httpx.Client) -> None:
    """A request too many is refused and recorded."""
    with Stub([text("a")]) as stub:
        answers = [post(client, stub) for _ in range(2)]

    assert (answers[1].status_code, answers[1].json()["type"]) == (400, "error")
    assert stub.rejected == ["the stub's script has no step 2"]


def test_a_model_talks_itself_into_stopping(client: httpx.Client) -> None:
    """Closing phrases are counted in texts and results alike, wherever the format has them (B01)."""
    call = {"type": "tool_use", "id": "c", "name": "shell", "input": {}}
    polluted = [
        USER,
        {"role": "assistant", "content": [{"type": "text", "text": "All done."}, call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "收口。"}]},
    ]
    with Stub(closing_after(2, in_order([tool("shell")], forever=True))) as stub:
        stops = [post(client, stub, *m, tools=[TOOL]).json()["stop_reason"] for m in ([USER], polluted)]

    assert stops == ["tool_use", "end_turn"]


def test_blocks_of_other_kinds_can_be_scripted(client: httpx.Client) -> None:
    """A script in JSON holds whatever else the provider may send."""
    redacted = {"type": "redacted_thinking", "data": "EmwKAhgB=="}
    with Stub(rule_from_json([{"text": "Hi.", "blocks": [redacted]}])) as stub:
        content = post(client, stub).json()["content"]

    assert content == [redacted, {"type": "text", "text": "Hi."}]
