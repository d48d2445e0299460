"""The stub provider: real clients accept it, and it accepts nothing that a real provider would refuse."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from goalmode.testing import Stub, steps
from goalmode.testing.script import closing_after, in_order, rule_from_json
from goalmode.testing.steps import ScriptError, cut, error_chunk, raw, stall, status, text, tool, tools

USER: Any = {"role": "user", "content": "Go."}
TOOL: Any = {
    "type": "function",
    "function": {"name": "shell", "description": "Run.", "parameters": {"type": "object"}},
}


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(timeout=10, trust_env=False) as made:
        yield made


def post(client: httpx.Client, stub: Stub, *messages: Any, **more: Any) -> httpx.Response:
    body = {"model": "m", "messages": list(messages) or [USER], **more}
    return client.post(f"{stub.base_url}/chat/completions", json=body)


def test_the_official_client_is_served() -> None:
    """openai's own client lists models, completes, streams, and reads tool calls and usage."""
    script = [
        text("Hello 你好"),
        tool("shell", {"command": "ls"}),
        text("A text that needs several pieces", usage=steps.usage(100, 7, cached=60)),
        tools([("shell", {"a": 1}), ("shell", {"b": 2})]),
    ]
    with Stub(script) as stub, openai.OpenAI(base_url=stub.base_url, api_key="k", max_retries=0) as client:

        def create(**more: Any) -> Any:
            return client.chat.completions.create(model="m", messages=[USER], tools=[TOOL], **more)

        streaming = {"stream": True, "stream_options": {"include_usage": True}}
        whole, called = create(), create()
        chunks, pieces = list(create(**streaming)), list(create(**streaming))
        models = [m.id for m in client.models.list()]

    assert (whole.choices[0].message.content, whole.choices[0].finish_reason) == ("Hello 你好", "stop")
    assert (
        called.choices[0].finish_reason,
        called.choices[0].message.tool_calls[0].function.arguments,
    ) == ("tool_calls", '{"command": "ls"}')
    said = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert (
        said,
        chunks[-1].usage.prompt_tokens_details.cached_tokens,
    ) == ("A text that needs several pieces", 60)
    deltas = [d for c in pieces if c.choices for d in c.choices[0].delta.tool_calls or ()]
    assert [d.function.arguments for d in deltas] == ["", '{"a": 1}', "", '{"b": 2}']
    assert (models, stub.rejected) == (["stub"], [])


def test_the_official_client_raises_as_with_a_provider() -> None:
    """Errors, cut streams and refused requests look real to a real client."""
    script: list[steps.Step] = [
        status(429, {"error": {"message": "slow", "code": "x"}}, {"retry-after": "2"}),
        cut(text("abcdef"), 3),
    ]
    with Stub(script) as stub, openai.OpenAI(base_url=stub.base_url, api_key="k", max_retries=0) as client:
        with pytest.raises(openai.RateLimitError):
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
        stream = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "x"}], stream=True
        )
        with pytest.raises((openai.APIError, httpx.RemoteProtocolError)):
            list(stream)
        with pytest.raises(openai.BadRequestError, match="must be from the user"):
            client.chat.completions.create(model="m", messages=[{"role": "assistant", "content": "x"}])

    assert len(stub.rejected) == 1


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"not json", "could not parse"),
        (b'{"a": NaN}', "could not parse"),
        (b"\xff", "could not parse"),
        (b"[]", "could not parse"),
        (b'{"messages": []}', "model parameter"),
        (b'{"model": "m"}', "messages"),
        (b'{"model": "m", "messages": []}', "too short"),
        (b'{"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": []}', "tools"),
        (
            b'{"model": "m", "messages": [{"role": "tool", "tool_call_id": "a", "content": "x"}]}',
            "from the user",
        ),
        (b'{"model": "m", "messages": [{"role": "user", "content": "\\ud800"}]}', "lone surrogate"),
        (b'{"model": "m", "messages": [{"role": "user", "content": "\\u0000"}]}', "NUL"),
    ],
)
def test_an_invalid_request_is_refused_and_recorded(client: httpx.Client, body: bytes, said: str) -> None:
    """What is not wire-valid gets a 400 in the provider's words, and uses up no step."""
    with Stub([text("Hi.")]) as stub:
        refused = client.post(f"{stub.base_url}/chat/completions", content=body)
        accepted = post(client, stub)

    assert (refused.status_code, refused.json()["error"]["type"]) == (400, "invalid_request_error")
    assert said in refused.json()["error"]["message"]
    assert [refused.json()["error"]["message"]] == stub.rejected
    assert accepted.json()["choices"][0]["message"]["content"] == "Hi."


def test_requests_are_kept_as_they_came(client: httpx.Client) -> None:
    """Path, headers, raw bytes, parsed body and time of each request are there to look at."""
    with Stub([text("a")], forever=True) as stub:
        post(client, stub)
        post(client, stub)

    first, second = stub.requests
    assert (first.path, first.headers["content-type"]) == ("/v1/chat/completions", "application/json")
    assert first.body == json.loads(first.raw)
    assert first.at <= second.at


def test_a_client_that_dies_in_the_middle_of_a_request_has_asked_nothing() -> None:
    """As a provider would: no answer is used up for it."""
    with Stub([text("first")]) as stub:
        url = httpx.URL(stub.base_url)
        with socket.create_connection((url.host, url.port)) as dying:
            dying.sendall(b'POST /v1/chat/completions HTTP/1.1\r\nContent-Length: 999\r\n\r\n{"model": "m"')
            dying.shutdown(socket.SHUT_WR)
            assert dying.recv(1) == b""

        assert (stub.requests, stub.rejected) == ([], [])


def test_a_rule_answers_by_request_and_number(client: httpx.Client) -> None:
    """A function of request and number decides each answer."""
    with Stub(lambda body, number: text(f"{number} {body['messages'][0]['content']}")) as stub:
        said = [post(client, stub).json()["choices"][0]["message"]["content"] for _ in range(2)]

    assert said == ["0 Go.", "1 Go."]


def test_a_script_that_has_ended_refuses(client: httpx.Client) -> None:
    """A request too many is refused and recorded, never answered by chance."""
    with Stub([text("a")]) as stub:
        codes = [post(client, stub).status_code for _ in range(2)]

    assert (codes, stub.rejected) == ([200, 400], ["the stub's script has no step 2"])


def test_a_key_can_be_demanded(client: httpx.Client) -> None:
    """Without the right key there is a 401."""
    with Stub([text("a")], key="right") as stub:
        assert post(client, stub).status_code == 401
        client.headers["authorization"] = "Bearer right"
        assert post(client, stub).status_code == 200


def test_other_paths_are_not_found(client: httpx.Client) -> None:
    """There is nothing else to talk to."""
    with Stub([]) as stub:
        assert client.get(f"{stub.base_url}/nothing").status_code == 404
        assert client.post(f"{stub.base_url}/embeddings", json={}).status_code == 404


def test_a_provider_can_vanish_and_come_back(client: httpx.Client) -> None:
    """It refuses connections for a while and then listens on the same port again (B17)."""
    with Stub([text("a")], forever=True) as stub:
        url = stub.base_url
        assert post(client, stub).status_code == 200
        stub.refuse()
        with pytest.raises(httpx.TransportError):
            post(client, stub)
        stub.listen()
        assert post(client, stub).status_code == 200
        assert url == stub.base_url


def test_a_stall_ends_when_it_is_released(client: httpx.Client) -> None:
    """A stalled answer waits for its event, and other clients are served meanwhile."""
    release, asked = threading.Event(), threading.Event()

    def rule(body: Any, number: int) -> steps.Step:
        if number:
            return text("quick")
        asked.set()
        return stall(text("late"), release)

    with Stub(rule) as stub, ThreadPoolExecutor(1) as pool:
        late = pool.submit(post, client, stub)
        asked.wait(10)
        with httpx.Client(trust_env=False) as other:
            quick = post(other, stub).json()
        release.set()

        assert (
            quick["choices"][0]["message"]["content"],
            late.result(10).json()["choices"][0]["message"]["content"],
        ) == ("quick", "late")


def test_a_stall_does_not_outlive_the_block(client: httpx.Client) -> None:
    """Leaving the block ends what is stalled."""
    started = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        with Stub([stall(text("never"), threading.Event())], on_request=lambda seen: started.set()) as stub:
            answer = pool.submit(post, client, stub)
            started.wait(10)

        assert isinstance(answer.exception(10), httpx.TransportError)


@pytest.mark.long
def test_many_clients_are_served_at_once() -> None:
    """Steps are handed out once each, whoever asks."""
    with Stub([text(str(n)) for n in range(40)]) as stub, ThreadPoolExecutor(8) as pool:

        def ask(_: int) -> str:
            with httpx.Client(trust_env=False) as client:
                return str(post(client, stub).json()["choices"][0]["message"]["content"])

        said = sorted(pool.map(ask, range(40)), key=int)

    assert [str(n) for n in range(40)] == said


def test_a_model_talks_itself_into_stopping(client: httpx.Client) -> None:
    """With enough closing phrases in a request the answer is prose; before that, the scripted calls (B01)."""
    work = in_order([tool("shell", {"n": 0}), tool("shell", {"n": 1})], forever=True)
    polluted = {"role": "user", "content": "All done. 收口。"}
    with Stub(closing_after(2, work)) as stub:
        replies = [
            post(client, stub, message).json()["choices"][0]["message"] for message in (USER, polluted, USER)
        ]

    assert [r["tool_calls"][0]["function"]["arguments"] if "tool_calls" in r else None for r in replies] == [
        '{"n": 0}',
        None,
        '{"n": 1}',
    ]
    assert "All done" in replies[1]["content"]


JSON_STEPS = {
    "text": ({"text": "a", "finish": "length", "usage": None}, text("a", finish="length", usage=None)),
    "tool": ({"tool": {"name": "x", "arguments": {"a": 1}, "id": "i"}}, tool("x", {"a": 1}, id="i")),
    "raw arguments": ({"tool": {"name": "x", "arguments": "{"}}, tool("x", "{")),
    "tools": ({"tools": [{"name": "x"}, {"name": "y"}]}, tools([("x", {}), ("y", {})])),
    "cut": ({"text": "abc", "cut_after": 1}, cut(text("abc"), 1)),
    "stall": ({"text": "abc", "stall": 2.5}, stall(text("abc"), 2.5)),
    "error": ({"text": "a", "error": {"message": "x"}}, error_chunk({"message": "x"}, "a")),
    "status": ({"status": 429, "body": "x", "headers": {"a": "b"}}, status(429, "x", {"a": "b"})),
    "raw": ({"raw": "HTTP/1.1 200 OK\r\n\r\n"}, raw(b"HTTP/1.1 200 OK\r\n\r\n")),
}


@pytest.mark.parametrize(("written", "step"), JSON_STEPS.values(), ids=JSON_STEPS)
def test_steps_can_be_written_in_json(written: dict[str, Any], step: steps.Step) -> None:
    """Each kind of step has the same meaning in a file."""
    assert step == rule_from_json([{**written, "forever": True}])({}, 3)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (7, "a list of steps"),
        ({"steps": []} | {"x": 1}, "unknown field 'x'"),
        ([{"text": "a"}, {"txt": "b"}], "steps[1]: unknown field 'txt'; known are text,"),
        (["text"], "steps[0]: unknown field 'step'"),
        ([{"tool": {"nam": "x"}}], "steps[0]: a tool call needs a name"),
        ({"steps": [], "completion_phrases": {}}, "'limit'"),
    ],
)
def test_a_wrong_script_is_told_where(script: Any, said: str) -> None:
    """A script that is wrong is one clear line."""
    with pytest.raises(ScriptError) as caught:
        rule_from_json(script)

    assert said in str(caught.value)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.json"
    closing = {"limit": 1, "phrases": ["finished"], "reply": "Over."}
    steps_ = [{"tool": {"name": "shell", "arguments": {}}, "forever": True}]
    path.write_text(json.dumps({"steps": steps_, "completion_phrases": closing}))
    return path


def test_it_runs_as_a_program(client: httpx.Client, script: Path, tmp_path: Path) -> None:
    """Its first line is its base URL; it serves its script and logs each request until it is killed."""
    log = tmp_path / "requests.jsonl"
    command = [sys.executable, "-W", "error", "-m", "goalmode.testing.stub", str(script), "--log", str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            bodies = [
                {"model": "m", "messages": [{"role": "user", "content": said}]}
                for said in ("Go.", "It is finished.")
            ]
            answers = [client.post(f"{url}/chat/completions", json=body).json() for body in bodies]
        finally:
            process.kill()

    assert [a["choices"][0]["finish_reason"] for a in answers] == ["tool_calls", "stop"]
    assert answers[1]["choices"][0]["message"]["content"] == "Over."
    assert bodies == [json.loads(json.loads(line)["raw"]) for line in log.read_text().splitlines()]


@pytest.mark.parametrize("content", ["{", "[{}, {"])
def test_a_broken_script_file_is_one_line(tmp_path: Path, content: str) -> None:
    """The program says what is wrong with the file and exits with 2."""
    path = tmp_path / "broken.json"
    path.write_text(content)
    ran = subprocess.run(
        [sys.executable, "-m", "goalmode.testing.stub", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.returncode == 2
    assert "broken.json" in ran.stderr.splitlines()[-1]
    assert "Traceback" not in ran.stderr
