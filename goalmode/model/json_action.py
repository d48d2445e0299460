"""The JSON action protocol: tools for models that cannot call them natively. One JSON object a reply.

The tools are explained in the system message, calls and results travel as plain text, and the server is asked to hold
the model to the form. From the reply on everything is as with native calls.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib import resources
from typing import Any, assert_never

from jinja2 import StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from goalmode.domain.messages import (
    Assistant,
    Message,
    Reply,
    Request,
    System,
    ToolCall,
    ToolResult,
    ToolSpec,
    User,
)
from goalmode.domain.signals import ErrorKind, StopReason
from goalmode.domain.text import sendable
from goalmode.errors import ModelError, TemplateError
from goalmode.model import strict_json
from goalmode.model.ids import used_ids, with_unique_ids
from goalmode.model.port import Model, close

MAX_TRIES = 64
"""Opening braces of a reply at which an object is looked for."""

_READER = json.JSONDecoder(strict=False)  # small models break lines inside strings
_FENCE = re.compile(r"^[^\S\n]*```\w*[^\S\n]*(?:\n|\Z)", re.MULTILINE)
_FINISHED = frozenset({StopReason.END_TURN, StopReason.STOP_SEQUENCE})


class JsonActions:
    """A model behind the JSON action protocol.

    Args:
        lang: of the instructions, `en` or `zh`.

    Raises:
        TemplateError: there are no instructions in that language.
    """

    def __init__(self, inner: Model, lang: str = "en") -> None:
        self._inner, self._prompt = inner, _prompts(lang)
        self._schema_refused = False

    async def complete(self, request: Request) -> Reply:
        """See `goalmode.model.port.Model`."""
        sent = Request(self._messages(request), (), request.max_output)
        reply = await self._constrained(sent, request.tools)
        if reply.calls and reply.stop is StopReason.TOOL_USE:
            return reply  # the server read the object as a native call
        if reply.stop not in _FINISHED:
            return replace(reply, calls=())
        found = read_action(reply.text)
        if found is None:
            return replace(reply, calls=())
        call, prose = found
        calls = with_unique_ids([call], used_ids(request.messages))
        return replace(reply, stop=StopReason.TOOL_USE, text=prose, calls=calls)

    async def aclose(self) -> None:
        """Close the connections of the model that is asked."""
        await close(self._inner)

    async def _constrained(self, sent: Request, tools: Sequence[ToolSpec]) -> Reply:
        if not tools or self._schema_refused:
            return await self._inner.complete(sent)
        try:
            return await self._inner.complete(replace(sent, schema=action_schema(tools)))
        except ModelError as error:
            if error.kind is not ErrorKind.BAD_REQUEST or error.status not in (400, 422):
                raise
        reply = await self._inner.complete(sent)
        self._schema_refused = True  # only now is it certain that the schema was the trouble
        return reply

    def _messages(self, request: Request) -> tuple[Message, ...]:
        sent: list[Message] = []
        for message in request.messages:
            match message:
                case System() | User():
                    sent.append(message)
                case Assistant(text, calls):
                    actions = "\n".join(_action_text(call) for call in calls)
                    sent.append(Assistant(actions or text))
                case ToolResult(_, name, text):
                    sent.append(User(str(self._prompt.result(name, text))))
                case _:
                    assert_never(message)
        if not request.tools:
            return tuple(sent)
        instructions = str(self._prompt.instructions(*_shown(request.tools)))
        if sent and isinstance(first := sent[0], System):
            return (System(f"{first.text}\n\n{instructions}"), *sent[1:])
        return (System(instructions), *sent)


def read_action(text: str) -> tuple[ToolCall, str] | None:
    """The first object in `text` that is an action, as a call without id, and the prose around it; None without one."""
    start, tries = text.find("{"), 0
    while start >= 0 and tries < MAX_TRIES:
        tries += 1
        try:
            value, end = _READER.raw_decode(text, start)
        except (ValueError, RecursionError):
            start = text.find("{", start + 1)
            continue
        if isinstance(value, dict) and isinstance(name := value.get("tool"), str) and name:
            arguments = value.get("arguments", {})
            raw = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            raw = sendable(raw)  # escaped halves of characters are halves now
            return ToolCall("", name, raw), _FENCE.sub("", text[:start] + text[end:]).strip()
        start = text.find("{", end)
    return None


def action_schema(tools: Sequence[ToolSpec]) -> Mapping[str, object]:
    """A JSON schema of the actions that `tools` allow."""
    return {
        "type": "object",
        "anyOf": [
            {
                "type": "object",
                "properties": {"tool": {"const": tool.name}, "arguments": tool.parameters},
                "required": ["tool", "arguments"],
                "additionalProperties": False,
            }
            for tool in tools
        ],
    }


def _action_text(call: ToolCall) -> str:
    arguments = strict_json.json_object(call.arguments) or "{}"
    return f'{{"tool": {json.dumps(call.name, ensure_ascii=False)}, "arguments": {arguments}}}'


def _shown(tools: Sequence[ToolSpec]) -> tuple[list[dict[str, Any]], str]:
    """What the template sees: the tools with their arguments, and an action with the first of them."""
    shown = [
        {"name": t.name, "description": t.description, "arguments": _arguments(t.parameters)} for t in tools
    ]
    example = {a["name"]: a["example"] for a in _arguments(tools[0].parameters) if a["required"]}
    return shown, _action_text(ToolCall("", tools[0].name, json.dumps(example, ensure_ascii=False)))


def _arguments(parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    required = parameters.get("required", ())
    return [
        {
            "name": name,
            "type": _type(schema),
            "required": name in required,
            "description": schema.get("description", ""),
            "example": next(iter(schema.get("enum", ())), f"<{_type(schema)}>"),
        }
        for name, schema in parameters.get("properties", {}).items()
    ]


def _type(schema: Mapping[str, Any]) -> str:
    match schema:
        case {"enum": list(words)}:
            return " | ".join(json.dumps(word, ensure_ascii=False) for word in words)
        case {"anyOf": list(kinds)}:
            return " or ".join(dict.fromkeys(_type(kind) for kind in kinds if kind != {"type": "null"}))
        case {"type": "array", "items": {"type": str(of)}}:
            return f"list of {of}"
        case {"type": str(name)}:
            return name
        case _:
            return strict_json.dumps(dict(schema))


@lru_cache
def _prompts(lang: str) -> Any:
    """The macros of the template, as functions."""
    file = resources.files("goalmode.templates").joinpath(lang, "json_actions.j2")
    if not file.is_file():
        raise TemplateError(f"there is no template {lang}/json_actions.j2")
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined)
    return environment.from_string(file.read_text("utf-8")).module
