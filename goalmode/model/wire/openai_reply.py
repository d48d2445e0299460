"""The chunks of one chat completion, streamed or whole, put together to a reply. Pure.

Servers differ: calls without index or id, the same index for every call, the id repeated in every piece, arguments as
an object, content in parts. All of that is read; nothing is guessed about how the reply ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from goalmode.domain.messages import Reply, ToolCall, Usage
from goalmode.domain.signals import StopReason
from goalmode.domain.text import sendable
from goalmode.model import strict_json
from goalmode.model.classify import find_error
from goalmode.model.ids import with_unique_ids
from goalmode.model.wire import assembly
from goalmode.model.wire.assembly import (
    MAX_CALLS,
    ErrorInside,
    Estimate,
    Size,
    TooLarge,
    count,
    dicts,
    string,
)
from goalmode.model.wire.openai_stop import read, reconcile

MAX_DOUBTS = 100
"""Pieces of one call at which it is asked whether another call begins."""


@dataclass(slots=True)
class _Call:
    index: int | None
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    doubts: int = 0


@dataclass(slots=True)
class ChatAssembly:
    """One chat completion while it arrives."""

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)
    finish: str | None = None
    native: str | None = None
    usage: Mapping[str, Any] | None = None
    model: str = ""
    began: bool = False
    size: Size = field(default_factory=Size)

    @property
    def ended(self) -> bool:
        """Never known before the stream's own end: usage follows the finish reason."""
        return False

    def absorb(self, value: object) -> None:
        """Take one chunk of a stream, or a whole completion.

        Raises:
            TooLarge: beyond the bounds. ErrorInside: it is an error.
        """
        if (error := find_error(value)) is not None:
            raise ErrorInside(error)
        self.began = True
        chunk = value if isinstance(value, dict) else {}
        self.model = string(chunk.get("model")) or self.model
        if isinstance(chunk.get("usage"), dict):
            self.usage = chunk["usage"]
        choice = next((c for c in dicts(chunk.get("choices")) if not c.get("index")), None)
        if choice is None:
            return
        piece = choice.get("delta") or choice.get("message")
        self._endings(choice, piece if isinstance(piece, dict) else {})
        if isinstance(piece, dict):
            self._content(piece, whole="message" in choice)

    @property
    def stop(self) -> StopReason:
        return read(self.finish, self.native)

    def counted(self, estimate: Estimate, request_body: bytes) -> Usage:
        """What the reply cost: as reported, or as estimated where nothing usable was. Never zero."""
        reported = self.usage or {}
        return assembly.usage(
            prompt=count(reported.get("prompt_tokens")),
            completion=count(reported.get("completion_tokens")),
            cached=_cached(reported),
            generated=self._generated(),
            estimate=estimate,
            request_body=request_body,
        )

    def reply(self, *, used_ids: Iterable[str], usage: Usage, max_output: int) -> Reply:
        """The reply, its ending reconciled with its content."""
        calls = with_unique_ids(
            [ToolCall(c.id, sendable(c.name), sendable("".join(c.arguments))) for c in self.calls], used_ids
        )
        refusal = sendable("".join(self.refusal))
        stop = reconcile(
            self.stop,
            calls=len(calls),
            refused=bool(refusal.strip()),
            output_tokens=None if usage.estimated else usage.output,
            max_output=max_output,
        )
        text = sendable("".join(self.text))
        reasoning = sendable("".join(self.reasoning))
        filtered = text if stop in (StopReason.REFUSAL, StopReason.CONTENT_FILTER) else ""
        return Reply(
            stop=stop,
            text=text,
            calls=calls,
            usage=usage,
            stop_raw=self.finish,
            stop_native=self.native,
            stop_detail=refusal or filtered,
            model=sendable(self.model),
            extra={"reasoning_content": reasoning} if reasoning else {},
        )

    def _endings(self, choice: Mapping[str, Any], piece: Mapping[str, Any]) -> None:
        # DashScope sends the word "null" with every chunk, others an empty string: neither unsays an earlier word.
        word = string(choice.get("finish_reason"))
        if word and (word != "null" or self.finish is None):
            self.finish = sendable(word)
        sources = (choice, choice.get("provider_specific_fields"), piece.get("provider_specific_fields"))
        for source in sources:
            if isinstance(source, dict) and (native := string(source.get("native_finish_reason"))):
                self.native = sendable(native)

    def _content(self, piece: Mapping[str, Any], *, whole: bool) -> None:
        self.size.add(self.text, _text(piece.get("content")))
        self.size.add(self.reasoning, _text(piece.get("reasoning_content")) or _text(piece.get("reasoning")))
        self.size.add(self.refusal, _text(piece.get("refusal")))
        for position, call in enumerate(dicts(piece.get("tool_calls"))):
            self._call(call, position if whole else None)
        if isinstance(legacy := piece.get("function_call"), dict):
            self._call({"index": 0, "function": legacy}, None)

    def _call(self, piece: Mapping[str, Any], position: int | None) -> None:
        function = piece.get("function")
        function = function if isinstance(function, dict) else {}
        name, id_ = string(function.get("name")), string(piece.get("id"))
        index = position if position is not None else piece.get("index")
        call = self._slot(index if isinstance(index, int) else None, id_, name)
        call.id = call.id or id_
        if name != call.name and not call.arguments:
            call.name += name  # in pieces, or whole with the first one
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            self.size.add(call.arguments, arguments)
        elif arguments is not None:
            self.size.add(call.arguments, json.dumps(arguments, ensure_ascii=False))

    def _slot(self, index: int | None, id_: str, name: str) -> _Call:
        """The call that a piece belongs to; a new one where the piece begins one."""
        same = [c for c in self.calls if c.index == index]
        last = same[-1] if same else (self.calls[-1] if index is None and self.calls else None)
        if last is not None and not _begins_another(last, index, id_, name):
            return last
        if len(self.calls) >= MAX_CALLS:
            raise TooLarge(f"more than {MAX_CALLS} tool calls")
        self.calls.append(_Call(index))
        return self.calls[-1]

    def _generated(self) -> str:
        calls = (part for c in self.calls for part in (c.name, *c.arguments))
        return "".join((*self.text, *self.reasoning, *self.refusal, *calls))


def _begins_another(last: _Call, index: int | None, id_: str, name: str) -> bool:
    if id_ and last.id and (id_ != last.id or index is not None):
        return id_ != last.id
    if not (name and last.name) or last.doubts >= MAX_DOUBTS:
        return False
    # Only a name is left to tell by, and some servers repeat it with every piece.
    newest = next((part for part in reversed(last.arguments) if part.strip()), "")
    if not newest.rstrip().endswith("}"):
        return False
    last.doubts += 1
    return strict_json.json_object("".join(last.arguments)) is not None


def _text(content: object) -> str:
    """Content as text: a string, or the text parts of a list."""
    if isinstance(content, list):
        return "".join(string(part.get("text")) for part in dicts(content))
    return string(content)


def _cached(usage: Mapping[str, Any]) -> int:
    details = usage.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, dict) else None
    return count(cached) or count(usage.get("prompt_cache_hit_tokens")) or 0
