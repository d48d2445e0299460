"""A request as the body of an OpenAI chat completion. Pure.

What the format refuses is never sent, whatever the conversation holds: an assistant message with neither text nor
calls is left out, two user messages in a row become one, names and arguments are made valid. Nothing is invented.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, assert_never

from goalmode.domain.messages import Assistant, Message, Request, System, ToolCall, ToolResult, ToolSpec, User
from goalmode.domain.profile import ModelProfile
from goalmode.model import strict_json
from goalmode.model.wire.grown import Grown
from goalmode.model.wire.openai_dialects import adapted, is_plain

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]")
MAX_NAME = 64


def body(request: Request, profile: ModelProfile, grown: Grown | None = None, **more: object) -> bytes:
    """The request's bytes. What grows or varies comes last, so that a server's prefix cache holds from turn to turn.

    Args:
        grown: what was sent of the conversation before, see `conversation`.
        more: further fields.
    """
    fields: dict[str, Any] = {
        "model": profile.name,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if profile.temperature is not None:
        fields["temperature"] = profile.temperature
    kept = grown or conversation(profile)
    offered = b',"tools":[%s]' % kept.tools(request.tools) if request.tools else b""
    last: dict[str, Any] = dict(more)
    if request.schema is not None:
        last["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": request.schema},
        }
    last[_allowance_field(profile.base_url)] = request.max_output
    items = kept.items(request.messages)
    first, rest = strict_json.encoded(fields)[:-1], strict_json.encoded(last)[1:]
    return b'%s%s,"messages":[%s],%s' % (first, offered, items, rest)


def conversation(profile: ModelProfile) -> Grown:
    """A conversation of which nothing was sent yet."""

    def translate(part: Sequence[Message]) -> list[dict[str, Any]]:
        return adapted(messages(part, reasoning=profile.replay_reasoning), profile)

    return Grown(translate, tools, by_parts=is_plain(profile))


def tools(specs: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "function": {"name": s.name, "description": s.description, "parameters": s.parameters},
        }
        for s in specs
    ]


def messages(conversation: Iterable[Message], *, reasoning: bool = False) -> list[dict[str, Any]]:
    """The conversation as the format's messages; with `reasoning`, what the server sent of it goes back too."""
    sent: list[dict[str, Any]] = []
    for message in conversation:
        match message:
            case System():
                sent.append({"role": "system", "content": message.text})
            case User():
                _add_user(sent, message.text)
            case Assistant():
                if message.calls or message.text.strip():
                    sent.append(_assistant(message, reasoning))
            case ToolResult():
                sent.append({"role": "tool", "tool_call_id": message.call_id, "content": message.text})
            case _:
                assert_never(message)
    return sent


def _add_user(sent: list[dict[str, Any]], text: str) -> None:
    if not text.strip():
        return
    if sent and sent[-1]["role"] == "user":
        sent[-1]["content"] += f"\n\n{text}"
    else:
        sent.append({"role": "user", "content": text})


def _assistant(message: Assistant, reasoning: bool) -> dict[str, Any]:
    sent: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    thought = message.extra.get("reasoning_content", "")
    if reasoning and (thought or message.calls):
        # Beside calls even an empty one is wanted.
        sent["reasoning_content"] = thought if isinstance(thought, str) else ""
    if message.calls:
        sent["tool_calls"] = [_call(call) for call in message.calls]
    return sent


@lru_cache(maxsize=1024)
def _call(call: ToolCall) -> dict[str, Any]:
    # Remembered, because a conversation is sent again with every turn. Nobody changes what is returned.
    # Several servers parse old arguments again and refuse the whole conversation; the result says what was wrong.
    arguments = strict_json.json_object(call.arguments) or "{}"
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": valid_name(call.name), "arguments": arguments},
    }


def valid_name(name: str) -> str:
    """A tool's name as the format takes it."""
    return _NOT_IN_A_NAME.sub("_", name)[:MAX_NAME] or "unnamed"


def _allowance_field(base_url: str) -> str:
    """OpenAI's newer models refuse `max_tokens`; many compatible servers know nothing else."""
    theirs = "api.openai.com" in base_url or ".openai.azure.com" in base_url
    return "max_completion_tokens" if theirs else "max_tokens"
