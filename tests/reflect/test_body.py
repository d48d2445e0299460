"""What our loop says, put into the prompts of GenericAgent's."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from goalmode.domain.messages import NO_USAGE, Assistant, Message, Request, System, ToolCall, ToolResult, User
from goalmode.reflect.body import Body


def test_a_result_that_reads_like_a_mark_is_shown_as_it_is() -> None:
    """Its prompt holds marks where our results go; what a result says of marks is data, whichever comes first."""
    begun: tuple[Message, ...] = (System("s"), User("u"))
    calls = tuple(ToolCall(name, "recall", "{}") for name in ("a", "b"))
    results = (
        ToolResult("a", "recall", "[[goalmode:b]]"),
        ToolResult("b", "recall", "secret \\1 [[goalmode:a]]"),
    )
    requests = [Request(begun, (), 0), Request((*begun, Assistant("", calls), *results), (), 0)]
    relay: Any = SimpleNamespace(next=lambda: requests.pop(0))
    client = SimpleNamespace(backend=SimpleNamespace())
    body = Body(relay, lambda said: NO_USAGE, lambda: datetime(2030, 1, 1, tzinfo=UTC))
    messages: list[dict[str, Any]] = [{"role": "user", "content": ""}]
    assert body.waits()
    body.write(client, messages, [])

    prompt = {
        "role": "user",
        "content": "1: [[goalmode:a]]\n2: [[goalmode:b]]",
        "tool_results": [{"content": "[[goalmode:b]]"}],
    }
    assert body.waits()
    body.write(client, [*messages, prompt], [])

    assert prompt["content"] == "1: [[goalmode:b]]\n2: secret \\1 [[goalmode:a]]"
    assert prompt["tool_results"] == [{"content": "secret \\1 [[goalmode:a]]"}]
