"""The stub's `/v1/responses`: OpenAI's own client is served by it, and it takes nothing that OpenAI would refuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest

from goalmode.testing import Stub, steps
from goalmode.testing.steps import cut, error_chunk, status, text, tool, tools

USER: Any = {"role": "user", "content": "Go."}
TOOL: Any = {
    "type": "function",
    "name": "shell",
    "description": "Run.",
    "parameters": {"type": "object"},
    "strict": False,
}


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=10, trust_env=False) as made:
        yield made


def official(stub: Stub) -> openai.OpenAI:
    return openai.OpenAI(base_url=stub.base_url, api_key="k", max_retries=0)


def call(id: str | None = None, call_id: str = "c", **more: Any) -> dict[str, Any]:
    made = {"type": "function_call", "call_id": call_id, "name": "shell", "arguments": "{}", **more}
    return made if id is None else {**made, "id": id}


def result(call_id: str = "c") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": "ok"}


def test_the_official_client_is_served() -> None:
    """openai's own client creates, streams and accumulates, and reads items and usage."""
    script = [
        text("Hello 你好", reasoning="Let me greet."),
        tool("shell", {"command": "ls"}),
        text("A text that needs several pieces", usage=steps.usage(100, 7, cached=60)),
        tools([("shell", {"a": 1}), ("shell", {"b": 2})], "Both."),
    ]
    with Stub(script) as stub, official(stub) as client:

        def create(**more: Any) -> Any:
            return client.responses.create(model="m", input=[USER], tools=[TOOL], store=False, **more)

        whole, called, streamed = create(), create(), list(create(stream=True))
        with client.responses.stream(model="m", input=[USER], tools=[TOOL], store=False) as stream:
            events = [event.type for event in stream]
            final = stream.get_final_response()

    assert (whole.output_text, whole.status) == ("Hello 你好", "completed")
    assert [item.type for item in whole.output] == ["reasoning", "message"]
    assert (called.output[0].call_id, called.output[0].arguments) == ("call_1_0", '{"command": "ls"}')
    said = "".join(e.delta for e in streamed if e.type == "response.output_text.delta")
    last = streamed[-1].response.usage
    assert (said, last.input_tokens_details.cached_tokens) == ("A text that needs several pieces", 60)
    assert [e.sequence_number for e in streamed] == list(range(len(streamed)))
    assert (events[0], events[-1]) == ("response.created", "response.completed")
    assert [getattr(item, "arguments", None) for item in final.output] == [None, '{"a": 1}', '{"b": 2}']
    assert stub.rejected == []


@pytest.mark.parametrize(
    ("word", "ending"),
    [
        ("stop", ("completed", None)),
        ("length", ("incomplete", "max_output_tokens")),
        ("max_messages", ("incomplete", "max_messages")),
        ("content_filter", ("incomplete", "content_filter")),
        (None, ("incomplete", None)),
        ("failed", ("failed", None)),
        ("cancelled", ("cancelled", None)),
        ("queued", ("queued", None)),
    ],
)
def test_each_ending_is_one_the_official_client_knows(
    word: str | None, ending: tuple[str, str | None]
) -> None:
    """The words of a script become the statuses and reasons of the format."""
    with Stub([text("Half", finish=word)]) as stub, official(stub) as client:
        response = client.responses.create(model="m", input=[USER])

    details = response.incomplete_details
    assert (response.status, details and details.reason) == ending


def test_the_official_client_raises_as_with_a_provider() -> None:
    """Errors, cut streams and mid-stream errors look real to a real client."""
    script: list[steps.Step] = [
        status(429, {"error": {"message": "slow", "code": "x"}}, {"retry-after": "2"}),
        cut(text("abcdef"), 3),
        error_chunk({"message": "Overloaded", "code": "server_error"}, "Half "),
    ]
    with Stub(script) as stub, official(stub) as client:
        with pytest.raises(openai.RateLimitError):
            client.responses.create(model="m", input=[USER])
        with pytest.raises((openai.APIError, httpx.RemoteProtocolError)):
            list(client.responses.create(model="m", input=[USER], stream=True))
        # The official client hands a mid-stream error on as an event or raises it; it never ends well.
        try:
            kinds = [e.type for e in client.responses.create(model="m", input=[USER], stream=True)]
        except openai.APIError:
            kinds = ["error"]
        with pytest.raises(openai.BadRequestError, match="No tool output found for function call c"):
            client.responses.create(model="m", input=[USER, call()])

    assert kinds[-1] == "error"
    assert len(stub.rejected) == 1


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no input": ({}, "'input'"),
    "empty input": ({"input": []}, "empty array"),
    "chat's messages": ({"input": [USER], "messages": []}, "Unknown parameter: 'messages'"),
    "chat's allowance": ({"input": [USER], "max_tokens": 7}, "Unknown parameter: 'max_tokens'"),
    "no output": ({"input": [USER, call()]}, "No tool output found for function call c."),
    "no call": (
        {"input": [USER, result()]},
        "No tool call found for function call output with call_id c.",
    ),
    "something between": (
        {"input": [USER, call(), USER, result()]},
        "No tool output found for function call c.",
    ),
    "chat's tool": ({"input": [USER], "tools": [{"type": "function", "function": {}}]}, "'tools[0].name'"),
    "the reasoning is missing": (
        {"input": [USER, call("fc_7_0_thought"), result()]},
        "Item 'fc_7_0_thought' of type 'function_call' was provided without its required 'reasoning' item: 'rs_7'.",
    ),
    "the reasoning is forged": (
        {
            "input": [
                USER,
                {"type": "reasoning", "id": "rs_7", "summary": [], "encrypted_content": "gAAAAABother"},
                call("fc_7_0_thought"),
                result(),
            ]
        },
        "could not be verified",
    ),
}


@pytest.mark.parametrize(("body", "said"), REFUSED.values(), ids=REFUSED)
def test_an_invalid_request_is_refused_in_openais_words(
    client: httpx.Client, body: dict[str, Any], said: str
) -> None:
    """What OpenAI would refuse gets a 400, is recorded, and uses up no step."""
    with Stub([text("Hi.")]) as stub:
        refused = client.post(f"{stub.base_url}/responses", json={"model": "m", **body})
        accepted = client.post(f"{stub.base_url}/responses", json={"model": "m", "input": "Go."})

    assert refused.status_code == 400
    assert said in refused.json()["error"]["message"]
    assert stub.rejected == [refused.json()["error"]["message"]]
    assert accepted.json()["output"][0]["content"][0]["text"] == "Hi."


def test_what_was_not_stored_is_not_found(client: httpx.Client) -> None:
    """Reasoning without its encrypted content is looked up among stored items, and there are none."""
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    with Stub([]) as stub:
        refused = client.post(
            f"{stub.base_url}/responses", json={"model": "m", "input": [USER, thought, call(), result()]}
        )

    assert refused.status_code == 404
    assert "Items are not persisted when `store` is set to false" in stub.rejected[0]


def test_reasoning_given_back_is_taken(client: httpx.Client) -> None:
    """The items of an answer, given back with the result, are a valid next request."""
    with Stub([tool("shell", {}, reasoning="Hm."), text("Done.")]) as stub:
        first = client.post(f"{stub.base_url}/responses", json={"model": "m", "input": "Go."}).json()
        output = first["output"]
        more = [USER, *output, result(output[1]["call_id"])]
        second = client.post(f"{stub.base_url}/responses", json={"model": "m", "input": more})

    assert second.status_code == 200
    assert stub.rejected == []
