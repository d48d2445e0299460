"""Conversations for property tests, right and wrong ones, each read from a string of bytes that hypothesis makes.

One draw a conversation keeps tens of thousands of them cheap; a shorter or smaller string is a simpler conversation.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from goalmode.domain.messages import Assistant, Message, Request, System, ToolCall, ToolResult, ToolSpec, User
from goalmode.domain.profile import CallIds, ModelProfile
from goalmode.model import lint, lint_anthropic, lint_dialects, lint_responses, strict_json
from goalmode.model.repair.pairs import NO_RESULT
from goalmode.model.rules import ANTHROPIC, CHAT, MISTRAL, RESPONSES, Rules
from goalmode.model.wire import anthropic_messages, openai_messages, responses_messages

URL = "http://127.0.0.1/v1"
TOOLS = (ToolSpec("shell", "Run.", {"type": "object", "properties": {}}),)

Wire = dict[str, Any]


@dataclass(frozen=True)
class Format:
    """One wire format with its rules, as a provider that speaks it sees a conversation."""

    name: str
    rules: Rules
    profile: ModelProfile

    def sent(self, messages: Sequence[Message]) -> Wire:
        """The request's body, as it arrives."""
        request = Request(tuple(messages), TOOLS, 100)
        encoded = {
            "openai": openai_messages.body,
            "openai-responses": responses_messages.body,
            "anthropic": anthropic_messages.body,
        }[self.profile.wire]
        body: Wire = json.loads(encoded(request, self.profile))
        return body

    def violations(self, messages: Sequence[Message]) -> list[str]:
        """What a strict provider refuses about it."""
        body = self.sent(messages)
        match self.profile.wire:
            case "openai-responses":
                return lint_responses.lint(body["input"], body["tools"])
            case "anthropic":
                return lint_anthropic.lint(body)
        found = lint.lint(body["messages"], body["tools"])
        if self.profile.replay_reasoning:
            found += lint_dialects.lint_reasoning(body["messages"])
        if self.profile.call_ids is CallIds.MISTRAL:
            found += lint_dialects.lint_mistral(body["messages"])
        return found


FORMATS = [
    Format("chat", CHAT, ModelProfile("m", "openai", "m", URL, replay_reasoning=True)),
    Format(
        "mistral",
        MISTRAL,
        ModelProfile("m", "openai", "m", URL, call_ids=CallIds.MISTRAL, user_after_tool=False),
    ),
    Format("responses", RESPONSES, ModelProfile("m", "openai-responses", "m", URL)),
    Format("anthropic", ANTHROPIC, ModelProfile("m", "anthropic", "m", URL)),
]

IDS = ("a1b2c3d4e", "call00002", "call_2", "toolu_01-x", "", "bad id!", "é", "i" * 300, "a1b2c3d4f")
NAMES = ("shell", "complete", "transition", "read_file", "no such tool", "")
ARGUMENTS = (
    "{}",
    '{"a": 1}',
    '{"b":"\\ud83c\\udf78"}',
    "",
    "[1]",
    '{"a":NaN}',
    '{"a": ',
    "null",
    '{"n":"\\u0000"}',
)
BLANKS = ("", "  \n\t")


class Bytes:
    """A string of bytes as a source of choices; at its end every choice is the first."""

    def __init__(self, data: bytes) -> None:
        self._data, self._next = data, 0

    def upto(self, below: int) -> int:
        """A number from 0, less than `below`."""
        if self._next >= len(self._data):
            return 0
        self._next += 1
        return self._data[self._next - 1] % below

    def choice(self, options: Sequence[Any]) -> Any:
        return options[self.upto(len(options))]

    @property
    def go_on(self) -> bool:
        """Whether there is more to come: as a rule, and never at the end of the string."""
        return self.upto(20) != 0


@dataclass(frozen=True)
class History:
    messages: tuple[Message, ...]
    resuming: bool = False


def any_history(data: bytes, form: Format) -> History:
    """Any conversation at all, or a right one with some wrongs done to it."""
    choices = Bytes(data)
    if choices.upto(3) == 0:
        return History(_wild(choices, form), choices.upto(4) == 1)
    history = right(choices, form)
    return History(_wronged(list(history.messages), choices), history.resuming)


def right_history(data: bytes, form: Format) -> History:
    """A conversation as our loop builds it: nothing is wrong with it."""
    return right(Bytes(data), form)


def right(choices: Bytes, form: Format) -> History:
    messages: list[Message] = [System("You work.")] * (choices.upto(4) > 0)
    messages.append(User("user 0"))
    used = 0
    while choices.go_on and len(messages) < 40:
        number = len(messages)
        match choices.upto(6):
            case 0:
                messages.append(User(f"user {number}"))
            case 1:
                messages += [_reply(choices, form, number, ()), User(f"user {number + 1}")]
            case 2 if form.name == "anthropic":
                # A reply that was paused within the provider's own tool, and the one that went on from there.
                messages += [_paused(number), _resumed(number), User(f"user {number + 2}")]
            case _:
                calls = tuple(_right_call(choices, used + k) for k in range(1 + choices.upto(3)))
                used += len(calls)
                results = [ToolResult(c.id, c.name, f"result of {c.id}") for c in calls]
                messages += [
                    _reply(choices, form, number, calls),
                    *(reversed(results) if choices.upto(4) == 1 else results),
                ]
    if choices.upto(5) == 1 and form.name != "mistral":
        number = len(messages)
        paused = _paused(number) if form.name == "anthropic" else Assistant(f"paused {number}")
        return History((*messages, paused), resuming=True)
    if isinstance(messages[-1], Assistant):
        messages.append(User("user last"))
    return History(tuple(messages))


def _right_call(choices: Bytes, number: int) -> ToolCall:
    # Nine letters and digits: an id that every wire format takes.
    return ToolCall(f"id{number:07}", choices.choice(NAMES), choices.choice(ARGUMENTS[:3]))


def _wild(choices: Bytes, form: Format) -> tuple[Message, ...]:
    messages: list[Message] = []
    while choices.go_on and len(messages) < 25:
        number = len(messages)
        match choices.upto(8):
            case 0:
                messages.append(System(choices.choice(("system", *BLANKS))))
            case 1 | 2:
                messages.append(User(choices.choice((f"user {number}", f"user {number}", *BLANKS))))
            case 3 | 4 | 5:
                messages.append(ToolResult(choices.choice(IDS), "shell", _result(choices, number)))
            case _:
                calls = tuple(
                    ToolCall(choices.choice(IDS), choices.choice(NAMES), choices.choice(ARGUMENTS))
                    for _ in range(choices.upto(4))
                )
                reply = _reply(choices, form, number, calls)
                if not calls and choices.upto(4) == 1:
                    reply = Assistant(choices.choice(BLANKS), (), reply.extra)
                messages.append(reply)
    return tuple(messages)


def _result(choices: Bytes, number: int) -> str:
    return NO_RESULT if choices.upto(8) == 1 else f"result {number}"


def _wronged(messages: list[Message], choices: Bytes) -> tuple[Message, ...]:
    """The conversation after up to three accidents."""
    for _ in range(1 + choices.upto(3)):
        if not messages:
            break
        at = choices.upto(len(messages))
        match choices.upto(8):
            case 0 | 1:
                del messages[at]
            case 2:
                messages.insert(choices.upto(len(messages)), messages.pop(at))
            case 3:
                messages.insert(choices.upto(len(messages)), messages[at])
            case 4:
                messages.insert(at, User(choices.choice((f"user extra {at}", *BLANKS))))
            case 5:
                messages.insert(at, Assistant(choices.choice((f"reply extra {at}", *BLANKS))))
            case 6:
                del messages[at:]
            case _:
                messages.insert(at, ToolResult(choices.choice(IDS), "shell", f"result extra {at}"))
    return tuple(messages)


def _reply(choices: Bytes, form: Format, number: int, calls: tuple[ToolCall, ...]) -> Assistant:
    text = f"reply {number}"
    if calls:
        text = choices.choice((text, "", "\n\n"))
    extra = _EXTRAS[form.name](number, text, calls) if choices.upto(2) else {}
    return Assistant(text, calls, extra)


def _reasoning(number: int, text: str, calls: Sequence[ToolCall]) -> dict[str, object]:
    return {"reasoning_content": f"hm {number}"}


def _items(number: int, text: str, calls: Sequence[ToolCall]) -> dict[str, object]:
    said = [{"type": "message", "id": f"msg_{number}", "text": text}] if text else []
    called = [{"type": "function_call", "id": f"fc_{number}_{k}"} for k in range(len(calls))]
    thought = {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "x"}
    return {responses_messages.EXTRA: {"model": "m", "items": [thought, *said, *called]}}


def _blocks(number: int, text: str, calls: Sequence[ToolCall]) -> dict[str, object]:
    said = [{"type": "text", "text": text}] if text else []
    called = [{"type": "tool_use", "id": call.id} for call in calls]
    thought = {"type": "thinking", "thinking": f"hm {number}", "signature": f"signed {number}"}
    return {ANTHROPIC.blocks: [thought, *said, *called]}


_EXTRAS = {"chat": _reasoning, "mistral": _reasoning, "responses": _items, "anthropic": _blocks}


def _paused(number: int) -> Assistant:
    search = {"type": "server_tool_use", "id": f"srv_{number}", "name": "web_search", "input": {}}
    return Assistant("", (), {ANTHROPIC.blocks: [search]})


def _resumed(number: int) -> Assistant:
    found = {"type": "web_search_tool_result", "tool_use_id": f"srv_{number}", "content": []}
    text = f"reply {number + 1}"
    return Assistant(text, (), {ANTHROPIC.blocks: [found, {"type": "text", "text": text}]})


def encoded_texts(value: object) -> list[str]:
    """Every text that a model would read as said, in a request's body."""
    match value:
        case dict():
            own = [value[key] for key in ("text", "content") if isinstance(value.get(key), str)]
            return [*own, *(t for inner in value.values() for t in encoded_texts(inner))]
        case list():
            return [t for inner in value for t in encoded_texts(inner)]
    return []


def is_object(arguments: str) -> bool:
    return strict_json.json_object(arguments) is not None
