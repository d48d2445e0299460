"""A request as the body of an OpenAI response. Pure.

Nothing is stored by the server, so a conversation is sent whole every time: messages, calls and results as items, and
before the calls the reasoning that led to them, encrypted, as the server gave it. Reasoning that another model gave, or
that came without its encrypted content, is left out, and with it the ids of the items that it led to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, assert_never

from goalmode.domain.messages import Assistant, Message, Request, System, ToolCall, ToolResult, ToolSpec, User
from goalmode.domain.profile import ModelProfile
from goalmode.model import strict_json
from goalmode.model.wire.assembly import dicts, string
from goalmode.model.wire.openai_messages import valid_name

EXTRA = "openai_responses"
"""The key of `Assistant.extra` that holds {"model": …, "items": […]}; see `goalmode.model.wire.responses_reply`."""

ENCRYPTED = "reasoning.encrypted_content"

MAX_ID = 64

Item = dict[str, Any]


def body(request: Request, profile: ModelProfile, *, encrypted: bool = True) -> bytes:
    """The request's bytes. What grows or varies comes last, so that a server's prefix cache holds from turn to turn.

    Args:
        encrypted: whether reasoning is asked for; models that do not reason refuse to be asked.
    """
    fields: dict[str, Any] = {"model": profile.name, "stream": True, "store": False}
    if encrypted:
        fields["include"] = [ENCRYPTED]
    if profile.temperature is not None:
        fields["temperature"] = profile.temperature
    if request.tools:
        fields["tools"] = tools(request.tools)
    fields["input"] = items(request.messages, profile.name)
    if request.schema is not None:
        fields["text"] = {
            "format": {"type": "json_schema", "name": "reply", "schema": request.schema, "strict": False}
        }
    fields["max_output_tokens"] = request.max_output
    return strict_json.encoded(fields)


def tools(specs: Sequence[ToolSpec]) -> list[Item]:
    # Left to itself the server makes every schema strict, and with it every optional argument required.
    return [
        {
            "type": "function",
            "name": s.name,
            "description": s.description,
            "parameters": s.parameters,
            "strict": False,
        }
        for s in specs
    ]


def items(conversation: Iterable[Message], model: str) -> list[Item]:
    """The conversation as the format's input items.

    Args:
        model: the model asked: reasoning of any other one is left out.
    """
    sent: list[Item] = []
    ids: set[str] = set()
    for message in conversation:
        match message:
            case System(text):
                if text.strip():
                    sent.append({"type": "message", "role": "system", "content": text})
            case User(text):
                _add_user(sent, text)
            case Assistant():
                sent += _assistant(message, model, ids)
            case ToolResult(call_id, _, text):
                sent.append({"type": "function_call_output", "call_id": _call_id(call_id), "output": text})
            case _:
                assert_never(message)
    return sent


def _add_user(sent: list[Item], text: str) -> None:
    if not text.strip():
        return
    if sent and sent[-1].get("role") == "user":
        sent[-1]["content"] += f"\n\n{text}"
    else:
        sent.append({"type": "message", "role": "user", "content": text})


def _assistant(message: Assistant, model: str, ids: set[str]) -> list[Item]:
    """The items of one reply: as the server gave them where they are still what was said, else text and calls."""
    known = _known(message, model, ids)
    if known is None:
        texts = [_said(message.text)] if message.text.strip() else []
        return [*texts, *(_call(call) for call in message.calls)]
    ids.update(id_ for item in known if (id_ := string(item.get("id"))))
    calls = iter(message.calls)
    sent = []
    for item in known:
        match item.get("type"):
            case "reasoning":
                sent.append(item)
            case "message":
                sent.append(
                    {
                        **_said(string(item.get("text"))),
                        **({"phase": item["phase"]} if item.get("phase") else {}),
                    }
                )
            case _:
                sent.append({**({"id": item["id"]} if item.get("id") else {}), **_call(next(calls))})
    return sent


def _known(message: Assistant, model: str, ids: set[str]) -> list[Item] | None:
    """The items that the server gave for this reply; None where they cannot go back.

    They cannot where another model gave them, where the reply now says something else, where one of them has gone back
    before (`ids`), and where something comes after a call: its result has to be the next.
    """
    extra = message.extra.get(EXTRA)
    if not isinstance(extra, Mapping) or extra.get("model") != model:
        return None
    known = dicts(extra.get("items"))
    texts = [string(item.get("text")) for item in known if item.get("type") == "message"]
    calls = [item.get("type") == "function_call" for item in known]
    new = [id_ for item in known if (id_ := string(item.get("id")))]
    once = len(set(new)) == len(new) and ids.isdisjoint(new)
    same = joined(texts) == message.text and sum(calls) == len(message.calls)
    return known if same and once and calls == sorted(calls) else None


def joined(texts: Iterable[str]) -> str:
    """The texts of a reply's messages as one."""
    return "\n\n".join(texts)


def _said(text: str) -> Item:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def _call(call: ToolCall) -> Item:
    # Broken arguments stay out: the server reads old ones again, and the result says what was wrong.
    return {
        "type": "function_call",
        "call_id": _call_id(call.id),
        "name": valid_name(call.name),
        "arguments": strict_json.json_object(call.arguments) or "{}",
    }


def _call_id(id_: str) -> str:
    """The id, or one that follows from it where it is longer than the format takes."""
    return id_ if len(id_) <= MAX_ID else f"call_{hashlib.sha256(id_.encode()).hexdigest()[:32]}"
