"""The events of one Anthropic message, or a whole message, put together to a reply. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from goalmode.domain.messages import Reply, ToolCall, Usage
from goalmode.domain.signals import StopReason
from goalmode.domain.text import sendable
from goalmode.model import classify, strict_json
from goalmode.model.ids import with_unique_ids
from goalmode.model.wire import anthropic_blocks, anthropic_stop, assembly
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
from goalmode.model.wire.openai_stop import reconcile

MAX_BLOCKS = 2 * MAX_CALLS

_GROWING = {"text": "text", "thinking": "thinking", "partial_json": "input"}
"""A delta's fields that bring a further piece, and the block's field that it is a piece of."""
_WORDS = ("text", "thinking")
_REPLACED = ("signature", "content", "encrypted_content")
"""Fields that a delta brings whole."""


@dataclass(slots=True)
class _Block:
    """One content block: as it began, and the pieces that came after."""

    began: dict[str, Any]
    begun_input: str = ""
    pieces: dict[str, list[str]] = field(default_factory=dict)

    @property
    def type(self) -> str:
        return string(self.began.get("type"))

    @property
    def arguments(self) -> str:
        """The input as text: in pieces of JSON, or whole with the block's beginning."""
        return "".join(self.pieces.get("input", ())) or self.begun_input

    def whole(self) -> dict[str, Any]:
        joined: dict[str, Any] = {key: "".join(parts) for key, parts in self.pieces.items() if key != "input"}
        if self.type == "text":
            joined.setdefault("text", "")
        if "input" in self.pieces:
            joined["input"] = json.loads(strict_json.json_object(self.arguments) or "{}")
        return {**self.began, **joined}


@dataclass(slots=True)
class MessageAssembly:
    """One message while it arrives."""

    blocks: list[_Block] = field(default_factory=list)
    word: str | None = None
    details: object = None
    usage: dict[str, Any] = field(default_factory=dict)
    model: str = ""
    began: bool = False
    ended: bool = False
    size: Size = field(default_factory=Size)
    _newest: dict[int, _Block] = field(default_factory=dict)
    """By the index that pieces name."""
    _counted: bool = False
    """Whether the usage holds a final count of what was generated; the first event brings only a beginning."""

    def absorb(self, value: object) -> None:
        """Take one event of a stream, or a whole message. Events that are not known are passed over.

        Raises:
            TooLarge: beyond the bounds. ErrorInside: it is an error.
        """
        if (error := _error(value)) is not None:
            raise ErrorInside(error)
        self.began = True
        event = value if isinstance(value, dict) else {}
        match event.get("type"):
            case "message_start":
                self._envelope(_object(event.get("message")))
            case "content_block_start":
                self._begin(_index(event), _object(event.get("content_block")))
            case "content_block_delta":
                self._continue(_index(event), _object(event.get("delta")))
            case "message_delta":
                self._ending(_object(event.get("delta")))
                self._count(event.get("usage"), final=True)
            case "message_stop":
                self.ended = True
            case "message":
                self._envelope(event, final=True)
                self.ended = True

    @property
    def stop(self) -> StopReason:
        return anthropic_stop.read(self.word)

    def counted(self, estimate: Estimate, request_body: bytes) -> Usage:
        """What the reply cost: as reported, or as estimated where nothing usable was. Never zero.

        The provider's `input_tokens` are what was neither read from its cache nor written to it.
        """
        new, cached, written = (
            count(self.usage.get(key))
            for key in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        )
        return assembly.usage(
            prompt=(new or 0) + (cached or 0) + (written or 0),
            completion=count(self.usage.get("output_tokens")) if self._counted else None,
            cached=cached or 0,
            cache_write=written or 0,
            generated="".join(piece for block in self.blocks for piece in _generated(block)),
            estimate=estimate,
            request_body=request_body,
        )

    def reply(self, *, used_ids: Iterable[str], usage: Usage, max_output: int) -> Reply:
        """The reply, its ending reconciled with its content."""
        blocks = [block for block in self.blocks if block.type]
        asked = [
            ToolCall(string(b.began.get("id")), sendable(string(b.began.get("name"))), sendable(b.arguments))
            for b in blocks
            if b.type == "tool_use"
        ]
        calls = with_unique_ids(asked, used_ids)
        kept = _kept(blocks, calls)
        extra = anthropic_blocks.extra(kept)
        stop = reconcile(
            self.stop,
            calls=len(calls),
            refused=False,
            output_tokens=None if usage.estimated else usage.output,
            max_output=max_output,
        )
        text = sendable(anthropic_blocks.said(kept))
        filtered = text if stop in (StopReason.REFUSAL, StopReason.CONTENT_FILTER) else ""
        return Reply(
            stop=stop,
            text=text,
            calls=calls,
            usage=usage,
            stop_raw=self.word,
            stop_detail=sendable(anthropic_stop.detail(self.details)) or filtered,
            model=sendable(self.model),
            extra=extra if _is_sendable(extra) else {},
        )

    def _envelope(self, message: Mapping[str, Any], *, final: bool = False) -> None:
        """Take what a message holds: all of it, or as much as there is when it begins."""
        self.model = string(message.get("model")) or self.model
        self._count(message.get("usage"), final=final)
        self._ending(message)
        for index, block in enumerate(dicts(message.get("content"))):
            self._begin(index, block)

    def _begin(self, index: int, block: dict[str, Any]) -> None:
        if len(self.blocks) >= MAX_BLOCKS:
            raise TooLarge(f"more than {MAX_BLOCKS} content blocks")
        if block.get("type") == "tool_use" and self._calls() >= MAX_CALLS:
            raise TooLarge(f"more than {MAX_CALLS} tool calls")
        self.size.grow(len(_json(block)))
        made = _Block(dict(block), _json(block["input"]) if block.get("input") is not None else "")
        self.blocks.append(made)
        self._newest[index] = made
        for key in _WORDS:
            if isinstance(begun := made.began.get(key), str):
                made.pieces[key] = [begun]

    def _continue(self, index: int, delta: Mapping[str, Any]) -> None:
        block = self._newest.get(index)
        if block is None:
            return
        for key, piece in ((key, string(delta.get(name))) for name, key in _GROWING.items()):
            if piece:
                self.size.add(block.pieces.setdefault(key, []), piece)
        if (citation := delta.get("citation")) is not None:
            self.size.grow(len(_json(citation)))
            block.began["citations"] = [*dicts(block.began.get("citations")), citation]
        for key in _REPLACED:
            if key in delta:
                self.size.grow(len(_json(delta[key])))
                block.began[key] = delta[key]

    def _calls(self) -> int:
        return sum(block.type == "tool_use" for block in self.blocks)

    def _ending(self, fields: Mapping[str, Any]) -> None:
        if word := string(fields.get("stop_reason")):
            self.word = sendable(word)
        if fields.get("stop_details") is not None:
            self.details = fields["stop_details"]

    def _count(self, usage: object, *, final: bool) -> None:
        """Counts are totals so far: the newest of each holds."""
        self.usage |= {key: value for key, value in _object(usage).items() if value is not None}
        self._counted = self._counted or (final and count(self.usage.get("output_tokens")) is not None)


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        raise TooLarge("values nested too deeply") from None


def _error(value: object) -> object | None:
    """The error that an event or a body is. An event of this format may well hold a field called `message`."""
    if isinstance(value, dict) and isinstance(kind := value.get("type"), str):
        return value if kind == "error" or value.get("error") else None
    return classify.find_error(value)


def _kept(blocks: Iterable[_Block], calls: Iterable[ToolCall]) -> list[dict[str, Any]]:
    """The blocks as they came, but tool calls without what is in `calls`: name and arguments."""
    ids = iter(call.id for call in calls)
    return [_marker(block, next(ids)) if block.type == "tool_use" else block.whole() for block in blocks]


def _marker(block: _Block, id_: str) -> dict[str, Any]:
    others = {key: value for key, value in block.began.items() if key not in ("name", "input")}
    return {**others, "id": id_}


def _is_sendable(extra: Mapping[str, object]) -> bool:
    """Whether what was kept can go back byte for byte."""
    try:
        return bool(strict_json.loads(strict_json.encoded(extra)) == extra)
    except (ValueError, RecursionError):
        return False


def _generated(block: _Block) -> Iterable[str]:
    if block.arguments:
        yield from (string(block.began.get("name")), block.arguments)
    for key in _WORDS:
        yield from block.pieces.get(key, ())


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _index(event: Mapping[str, Any]) -> int:
    return count(event.get("index")) or 0
