"""What the stub provider answers: steps as values, functions that build them, and the same vocabulary in JSON.

text("Looking.")                                    {"text": "Looking."}
tool("shell", {"command": "make"})                  {"tool": {"name": "shell", "arguments": {…}}}
tools([("read_file", {…}), ("shell", "{broken")])   {"tools": [{"name": …, "arguments": …}, …]}
text("Half an ans", finish="length", usage=None)    {"text": …, "finish": "length", "usage": null}
cut(text("Half an answer"), after_chars=4)          {"text": …, "cut_after": 4}
stall(text("Late."), until=5.0)                     {"text": …, "stall": 5.0}
error_chunk({"message": "…"}, after="Half ")        {"text": "Half ", "error": {…}}
status(429, {"error": {…}}, {"retry-after": "2"})   {"status": 429, "body": …, "headers": {…}}
raw(b"HTTP/1.1 200 OK\\r\\n\\r\\n")                     {"raw": "HTTP/1.1 …"}
"""

from __future__ import annotations

import dataclasses
import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

AUTO = "(auto)"
"""Where a step leaves it to the stub: the finish reason that fits, a plausible usage, a new id."""
ABSENT = "(absent)"
"""Where a field is to be left out altogether."""


@dataclass(frozen=True, slots=True)
class StubCall:
    """One tool call. `arguments` is the raw text; `id` may be empty, or None for no id at all."""

    name: str
    arguments: str
    id: str | None = AUTO


@dataclass(frozen=True, slots=True)
class Completion:
    """A completion, whole or spoilt.

    Attributes:
        finish: the finish reason; None is sent as null.
        usage: sent as it is; None is sent as null, `ABSENT` leaves it out.
        cut_after: characters of text or arguments after which the connection is dropped.
        done: whether a stream ends with `[DONE]`.
        stall: seconds to wait, or an event to wait for, before a word is sent.
        stall_after: characters after which to stall instead.
        error: an error object sent after the content, in place of an ending.
        extra: further fields of the choice, such as `native_finish_reason`.
        blocks: Anthropic's content blocks of other kinds, sent as they are before text and calls.
    """

    text: str = ""
    calls: tuple[StubCall, ...] = ()
    finish: str | None = AUTO
    usage: Mapping[str, Any] | str | None = AUTO
    refusal: str | None = None
    reasoning: str | None = None
    cut_after: int | None = None
    done: bool = True
    stall: float | threading.Event | None = None
    stall_after: int | None = None
    error: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    blocks: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class Status:
    """An HTTP status with a body. `echo` sends the request's own headers and body back."""

    code: int
    body: Mapping[str, Any] | str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    echo: bool = False


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes written as they are, then the connection is closed."""

    data: bytes


Step = Completion | Status | Raw


class ScriptError(ValueError):
    """A script in JSON is wrong; the message says where."""


def text(content: str, **changes: Any) -> Completion:
    """An answer of prose. `changes` are fields of `Completion`."""
    return Completion(text=content, **changes)


def tool(
    name: str, arguments: Mapping[str, Any] | str | None = None, id: str | None = AUTO, **changes: Any
) -> Completion:
    """An answer with one tool call. Arguments given as a string are sent as they are."""
    return Completion(calls=(_call(name, arguments, id),), **changes)


def tools(
    calls: Sequence[StubCall | tuple[str, Mapping[str, Any] | str]], content: str = "", **changes: Any
) -> Completion:
    """An answer with several tool calls."""
    made = tuple(c if isinstance(c, StubCall) else _call(c[0], c[1], AUTO) for c in calls)
    return Completion(text=content, calls=made, **changes)


def status(code: int, body: Mapping[str, Any] | str = "", headers: Mapping[str, str] | None = None) -> Status:
    """An error answer, or any other status."""
    return Status(code, body, headers or {})


def echo(code: int) -> Status:
    """An error answer that repeats the request, headers and all, as some gateways do."""
    return Status(code, echo=True)


def cut(step: Completion, after_chars: int) -> Completion:
    """The same answer, but the connection drops after so many characters."""
    return replace(step, cut_after=after_chars)


def stall(step: Completion, until: float | threading.Event, after_chars: int | None = None) -> Completion:
    """The same answer after silence: so many seconds, or until the event is set."""
    return replace(step, stall=until, stall_after=after_chars)


def error_chunk(error: Mapping[str, Any], after: str = "") -> Completion:
    """An answer that begins well and turns into an error in the middle of the stream."""
    return Completion(text=after, error=error)


def raw(data: bytes) -> Raw:
    """Any bytes at all."""
    return Raw(data)


def usage(prompt: int, completion: int, cached: int = 0) -> dict[str, Any]:
    """A usage block."""
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }


def step_from_json(value: Mapping[str, Any]) -> Step:
    """A step out of its JSON form.

    Raises:
        ScriptError: it is none of the forms above; the message names the field.
    """
    fields = {key: item for key, item in value.items() if key != "forever"}
    if "status" in fields:
        fields["code"] = fields.pop("status")
        return Status(**_known(Status, fields))
    if "raw" in fields:
        return Raw(str(fields["raw"]).encode())
    calls = fields.pop("tools", [])
    if "tool" in fields:
        calls = [fields.pop("tool")]
    made = tuple(_call_from_json(call) for call in calls)
    return Completion(**_known(Completion, {**fields, "calls": made}))


def _call_from_json(value: Any) -> StubCall:
    if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
        raise ScriptError(f"a tool call needs a name: {value!r}")
    return _call(value["name"], value.get("arguments"), value.get("id", AUTO))


def _call(name: str, arguments: Mapping[str, Any] | str | None, id_: str | None) -> StubCall:
    raw_text = arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)
    return StubCall(name, raw_text, id_)


def _known(kind: type, fields: dict[str, Any]) -> dict[str, Any]:
    names = [f.name for f in dataclasses.fields(kind)]
    if unknown := sorted(set(fields) - set(names)):
        raise ScriptError(f"unknown field {unknown[0]!r}; known are {', '.join(names)}")
    return fields
