"""A request as the body of an Anthropic message. Pure.

What the format refuses is never sent, whatever the conversation holds: users and assistant alternate, all results of a
turn are in one user message with the texts behind them, no text is blank, ids and names are made valid on both sides
alike. Nothing is invented, and a message is sent the same way as long as the conversation only grows.

Cache marks: one on the system prompt, which stands behind the tools and so covers both; and one each on the last two
user messages. The newer of these writes the conversation to the provider's cache, the older is where the request before
wrote it: a turn of many calls does not push it out of the provider's reach. They are no part of what is cached.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, assert_never

from goalmode.domain.messages import Assistant, Message, Request, System, ToolCall, ToolResult, ToolSpec, User
from goalmode.domain.profile import ModelProfile
from goalmode.model import strict_json
from goalmode.model.wire import anthropic_blocks
from goalmode.model.wire.anthropic_blocks import Block
from goalmode.model.wire.openai_messages import valid_name

Turn = tuple[str, list[Block]]
"""A role and its content."""

MAX_DEPTH = 100
"""Levels of nesting in arguments that are sent back; deeper ones go back as an empty object."""

_MARK = {"cache_control": {"type": "ephemeral"}}
_NOT_IN_AN_ID = re.compile(r"[^A-Za-z0-9_-]")


def body(request: Request, profile: ModelProfile) -> bytes:
    """The request's bytes. What grows or varies comes last."""
    fields: dict[str, Any] = {"model": profile.name, "stream": True}
    if profile.temperature is not None:
        fields["temperature"] = profile.temperature
    offered, prompt = tools(request.tools), system(request.messages)
    stable = prompt or offered
    if stable:
        stable[-1] |= _MARK
    if offered:
        fields["tools"] = offered
    if prompt:
        fields["system"] = prompt
    fields["messages"] = _marked(messages(request.messages))
    if request.schema is not None:
        fields["output_config"] = {"format": {"type": "json_schema", "schema": request.schema}}
    fields["max_tokens"] = request.max_output
    return strict_json.encoded(fields)


def tools(specs: Sequence[ToolSpec]) -> list[Block]:
    return [{"name": s.name, "description": s.description, "input_schema": s.parameters} for s in specs]


def system(conversation: Iterable[Message]) -> list[Block]:
    """The system prompt, which stands beside the conversation."""
    return [_text(m.text) for m in conversation if isinstance(m, System) and m.text.strip()]


def messages(conversation: Iterable[Message]) -> list[Block]:
    """The conversation as the format's messages."""
    sent: list[Turn] = []
    for role, content in _with_takeable_replies(_turns(conversation)):
        _add(sent, role, content)
    return [{"role": role, "content": content} for role, content in sent]


def _with_takeable_replies(turns: list[Turn]) -> list[Turn]:
    """Replies that cannot go back as they came are sent as text and calls alone; others may depend on their blocks."""
    replies = [number for number, (role, _) in enumerate(turns) if role == "assistant"]
    last = bool(turns) and turns[-1][0] == "assistant"
    while (bad := anthropic_blocks.refused([turns[n][1] for n in replies], last=last)) is not None:
        turns[replies[bad]] = ("assistant", anthropic_blocks.without_the_rest(turns[replies[bad]][1]))
    return turns


def _turns(conversation: Iterable[Message]) -> list[Turn]:
    """The conversation, adjacent messages of one role in one turn."""
    turns: list[Turn] = []
    ids = _Ids()
    for message in conversation:
        match message:
            case System():
                pass
            case User(text):
                _add(turns, "user", [_text(text)] if text.strip() else [])
            case Assistant():
                _add(turns, "assistant", _reply(message, ids.of(message.calls)))
            case ToolResult(call_id, _, text):
                shown = text if text.strip() else ""
                result = {"type": "tool_result", "tool_use_id": ids.answered(call_id), "content": shown}
                _add(turns, "user", [result])
            case _:
                assert_never(message)
    return turns


def _add(turns: list[Turn], role: str, content: list[Block]) -> None:
    if not content:
        return
    if not turns or turns[-1][0] != role:
        turns.append((role, content))
        return
    together = [*turns.pop()[1], *content]
    turns.append((role, _results_first(together) if role == "user" else together))


def _results_first(content: list[Block]) -> list[Block]:
    results = [block for block in content if block["type"] == "tool_result"]
    texts = [block["text"] for block in content if block["type"] == "text"]
    return [*results, _text("\n\n".join(texts))] if texts else results


def _reply(message: Assistant, ids: Sequence[str]) -> list[Block]:
    """A reply's blocks as they came, else its text and then its calls."""
    calls = [
        {"type": "tool_use", "id": id_, "name": valid_name(call.name), "input": _input(call.arguments)}
        for call, id_ in zip(message.calls, ids, strict=True)
    ]
    kept = anthropic_blocks.kept(message)
    if kept is None:
        return [_text(message.text), *calls] if message.text.strip() else calls
    following = iter(calls)
    blocks = [{**b, **next(following)} if b["type"] == "tool_use" else dict(b) for b in kept]
    return [b for b in blocks if b["type"] != "text" or b["text"].strip()]


@lru_cache(maxsize=1024)
def _input(arguments: str) -> Block:
    """Arguments as the object that the format wants; where they are none, the result says what was wrong."""
    # Remembered, because a conversation is sent again with every turn. Nobody changes what is returned.
    text = strict_json.json_object(arguments)
    if text is None:
        return {}
    value: Block = json.loads(text)
    many = text.count("{") + text.count("[") > MAX_DEPTH
    return {} if (many and _depth(value) > MAX_DEPTH) or not _is_json(value) else value


def _depth(value: object) -> int:
    depth, level = 0, [value]
    while level:
        depth += 1
        level = [inner for outer in level for inner in _inside(outer)]
    return depth


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _is_json(value: object) -> bool:
    """False for a number such as 1e999, which Python reads as one that JSON does not have."""
    try:
        strict_json.loads(json.dumps(value))
    except ValueError:
        return False
    return True


class _Ids:
    """Ids as the wire takes them: valid, unique in the conversation, and the same for a call and its result."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._waiting: list[tuple[str, str]] = []

    def of(self, calls: Sequence[ToolCall]) -> list[str]:
        named = [(call.id, self._unique(_valid_id(call.id))) for call in calls]
        self._waiting = [*self._waiting, *named]
        return [wire for _, wire in named]

    def answered(self, call_id: str) -> str:
        """The wire's id of the first call so named that has no result yet."""
        for pair in self._waiting:
            if pair[0] == call_id:
                self._waiting.remove(pair)
                return pair[1]
        return _valid_id(call_id)

    def _unique(self, valid: str) -> str:
        unique, number = valid, 1
        while unique in self._taken:
            number += 1
            unique = f"{valid}_{number}"
        self._taken.add(unique)
        return unique


def _valid_id(id_: str) -> str:
    return _NOT_IN_AN_ID.sub("_", id_) or "call"


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _marked(sent: list[Block]) -> list[Block]:
    """The messages with a cache mark at the end of the last two of the user's."""
    theirs = [number for number, message in enumerate(sent) if message["role"] == "user"][-2:]
    for number in theirs:
        *before, end = sent[number]["content"]
        sent[number] = {"role": "user", "content": [*before, {**end, **_MARK}]}
    return sent
