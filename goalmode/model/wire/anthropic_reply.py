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

_GROWING = ("text", "thinking")
"""Fields of which every delta brings a further piece."""
_REPLACED = ("signature", "content", "encrypted_content")
"""Fields that a delta brings whole."""


@dataclass(slots=True)
class _Block:
    """One content block: as it began, and the pieces that came after."""

    began: dict[str, Any]
    pieces: dict[str, list[str]] = field(default_factory=dict)

    @property
    def type(self) -> str:
        return string(self.began.get("type"))

    @property
    def arguments(self) -> str:
        """The input as text: whole with the block's beginning, or in pieces of JSON."""
        written = "".join(self.pieces.get("input", ()))
        begun = self.began.get("input")
        return written or (json.dumps(begun, ensure_ascii=False) if begun is not None else "")

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

    blocks: dict[int, _Block] = field(default_factory=dict)
    word: str | None = None
    details: object = None
    usage: dict[str, Any] = field(default_factory=dict)
    model: str = ""
    began: bool = False
    ended: bool = False
    size: Size = field(default_factory=Size)
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
                self._count(event.get("usage"))
                self._counted = True
            case "message_stop":
                self.ended = True
            case "message":
                self._envelope(event)
                self._counted = self.ended = True

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
            generated="".join(piece for block in self.blocks.values() for piece in _generated(block)),
            estimate=estimate,
            request_body=request_body,
        )

    def reply(self, *, used_ids: Iterable[str], usage: Usage, max_output: int) -> Reply:
        """The reply, its ending reconciled with its content."""
        blocks = [block for _, block in sorted(self.blocks.items()) if block.type]
        asked = [
            ToolCall(string(b.began.get("id")), sendable(string(b.began.get("name"))), sendable(b.arguments))
            for b in blocks
            if b.type == "tool_use"
        ]
        calls = with_unique_ids(asked, used_ids)
        kept = _kept(blocks, calls)
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
            extra=anthropic_blocks.extra(kept) if _is_sendable(kept) else {},
        )

    def _envelope(self, message: Mapping[str, Any]) -> None:
        """Take what a message holds: all of it, or as much as there is when it begins."""
        self.model = string(message.get("model")) or self.model
        self._count(message.get("usage"))
        self._ending(message)
        for block in dicts(message.get("content")):
            self._begin(len(self.blocks), block)

    def _begin(self, index: int, block: dict[str, Any]) -> None:
        if len(self.blocks) >= MAX_BLOCKS:
            raise TooLarge(f"more than {MAX_BLOCKS} content blocks")
        if block.get("type") == "tool_use" and self._calls() >= MAX_CALLS:
            raise TooLarge(f"more than {MAX_CALLS} tool calls")
        self.size.add([], json.dumps(block, ensure_ascii=False))
        self.blocks[index] = made = _Block(dict(block))
        for key in _GROWING:
            if isinstance(begun := made.began.get(key), str):
                made.pieces[key] = [begun]

    def _continue(self, index: int, delta: Mapping[str, Any]) -> None:
        block = self.blocks.get(index)
        if block is None:
            return
        for key in _GROWING:
            self.size.add(block.pieces.setdefault(key, []), string(delta.get(key)))
            if not block.pieces[key]:
                del block.pieces[key]
        if partial := string(delta.get("partial_json")):
            self.size.add(block.pieces.setdefault("input", []), partial)
        if (citation := delta.get("citation")) is not None:
            self.size.add([], json.dumps(citation, ensure_ascii=False))
            block.began["citations"] = [*(block.began.get("citations") or ()), citation]
        for key in _REPLACED:
            if key in delta:
                self.size.add([], json.dumps(delta[key], ensure_ascii=False))
                block.began[key] = delta[key]

    def _calls(self) -> int:
        return sum(block.type == "tool_use" for block in self.blocks.values())

    def _ending(self, fields: Mapping[str, Any]) -> None:
        if word := string(fields.get("stop_reason")):
            self.word = sendable(word)
        if fields.get("stop_details") is not None:
            self.details = fields["stop_details"]

    def _count(self, usage: object) -> None:
        """Counts are totals so far: the newest of each holds."""
        self.usage |= {key: value for key, value in _object(usage).items() if value is not None}


def _error(value: object) -> object | None:
    """The error that an event or a body is. An event of this format may well hold a field called `message`."""
    if isinstance(value, dict) and isinstance(value.get("type"), str) and value["type"] != "error":
        return value if value.get("error") else None
    return classify.find_error(value)


def _kept(blocks: Iterable[_Block], calls: Iterable[ToolCall]) -> list[dict[str, Any]]:
    """The blocks as they came, each tool call by its id."""
    ids = iter(call.id for call in calls)
    return [
        {"type": "tool_use", "id": next(ids)} if block.type == "tool_use" else block.whole()
        for block in blocks
    ]


def _is_sendable(kept: list[dict[str, Any]]) -> bool:
    """Whether the blocks can go back byte for byte."""
    try:
        return bool(json.loads(strict_json.encoded(kept)) == kept)
    except (ValueError, RecursionError):
        return False


def _generated(block: _Block) -> Iterable[str]:
    if block.type == "tool_use":
        yield string(block.began.get("name"))
    for parts in block.pieces.values():
        yield from parts


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _index(event: Mapping[str, Any]) -> int:
    return count(event.get("index")) or 0
