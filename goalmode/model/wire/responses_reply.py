"""The events of one OpenAI response, or a whole one, put together to a reply. Pure.

A response is a list of items: reasoning, messages and function calls. Streamed, an item is announced, grows, and is
done; only what was done is whole, and only the last event says how the response ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from goalmode.domain.messages import Reply, ToolCall, Usage
from goalmode.domain.signals import StopReason
from goalmode.domain.text import sendable
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
from goalmode.model.wire.responses_items import DELTAS, Item, kept
from goalmode.model.wire.responses_messages import joined
from goalmode.model.wire.responses_stop import PENDING, read, reconcile, word

TERMINALS = frozenset({"response.completed", "response.incomplete", "response.failed"})


@dataclass(slots=True)
class ResponseAssembly:
    """One response while it arrives.

    Args:
        asked: the model asked, by the name under which its reasoning is kept.
    """

    asked: str
    items: dict[int, Item] = field(default_factory=dict)
    status: str | None = None
    reason: str | None = None
    usage: Mapping[str, Any] | None = None
    model: str = ""
    began: bool = False
    size: Size = field(default_factory=Size)

    @property
    def ended(self) -> bool:
        """The last event names the ending; whatever follows it is not of this response."""
        return self.status is not None

    def absorb(self, value: object) -> None:
        """Take one event of a stream, or a whole response.

        Raises:
            TooLarge: beyond the bounds. ErrorInside: it is an error, or a failed response that names one.
        """
        event = value if isinstance(value, dict) else {}
        kind = string(event.get("type"))
        response = event.get("response") if kind else event
        if kind == "error" or (not kind and not _is_response(event) and find_error(value) is not None):
            raise ErrorInside(value)
        self.began = True
        if kind in TERMINALS or (not kind and _is_response(event)):
            self._ending(response if isinstance(response, dict) else {}, kind)
        elif isinstance(response, dict):
            self._head(response)
        else:
            self._event(kind, event)

    @property
    def stop(self) -> StopReason:
        return read(self.status, self.reason)

    def counted(self, estimate: Estimate, request_body: bytes) -> Usage:
        """What the reply cost: as reported, or as estimated where nothing usable was. Never zero."""
        reported = self.usage or {}
        details = reported.get("input_tokens_details")
        details = details if isinstance(details, dict) else {}
        return assembly.usage(
            prompt=count(reported.get("input_tokens")),
            completion=count(reported.get("output_tokens")),
            cached=count(details.get("cached_tokens")) or 0,
            cache_write=count(details.get("cache_write_tokens")) or 0,
            generated="".join(item.generated() for item in self.items.values()),
            estimate=estimate,
            request_body=request_body,
        )

    def reply(self, *, used_ids: Iterable[str], usage: Usage, max_output: int) -> Reply:
        """The reply, its ending reconciled with its items."""
        items = self._in_order()
        called = [item for item in items if item.kind == "function_call"]
        calls = with_unique_ids([_call(item) for item in called], used_ids)
        refusal = sendable("".join(item.value("refusal") for item in items))
        stop = reconcile(
            self.stop,
            calls=len(calls),
            cut_calls=sum(self.status in PENDING or not item.whole for item in called),
            refused=bool(refusal.strip()),
        )
        text = joined(said for item in items if (said := sendable(item.value("text"))).strip())
        filtered = text if stop in (StopReason.REFUSAL, StopReason.CONTENT_FILTER) else ""
        raw = word(self.status, self.reason)
        return Reply(
            stop=stop,
            text=text,
            calls=calls,
            usage=usage,
            stop_raw=None if raw is None else sendable(raw),
            stop_detail=refusal or filtered,
            model=sendable(self.model),
            extra={} if self.status in PENDING else kept(items, self.asked),
        )

    def _head(self, response: Mapping[str, Any]) -> None:
        self.model = string(response.get("model")) or self.model
        if isinstance(response.get("usage"), dict):
            self.usage = response["usage"]

    def _ending(self, response: Mapping[str, Any], event: str) -> None:
        self._head(response)
        self.status = string(response.get("status")) or event.rpartition(".")[2]
        details = response.get("incomplete_details")
        self.reason = (string(details.get("reason")) or None) if isinstance(details, dict) else None
        if output := dicts(response.get("output")):
            # The whole list, as it is at the end, beats what its pieces seemed to be.
            self.items = {n: item for n, item in self.items.items() if n < len(output)}
            for position, item in enumerate(output):
                self._done(position, item)
        if self.status == "failed" and response.get("error"):
            raise ErrorInside({"error": response["error"]})

    def _event(self, kind: str, event: Mapping[str, Any]) -> None:
        index, item = event.get("output_index"), event.get("item")
        if not isinstance(index, int):
            return
        if kind == "response.output_item.added" and isinstance(item, dict):
            self._slot(index).announced(item)
        elif kind == "response.output_item.done" and isinstance(item, dict):
            self._done(index, item)
        elif (part := DELTAS.get(kind)) is not None:
            self.size.add(self._slot(index).grown.setdefault(part, []), string(event.get("delta")))

    def _done(self, index: int, item: Mapping[str, Any]) -> None:
        slot = self._slot(index)
        before = slot.length
        slot.finished(item)
        self.size.grow(max(0, slot.length - before))

    def _slot(self, index: int) -> Item:
        if index not in self.items:
            if len(self.items) >= MAX_CALLS:
                raise TooLarge(f"more than {MAX_CALLS} items")
            self.items[index] = Item()
        return self.items[index]

    def _in_order(self) -> list[Item]:
        return [self.items[index] for index in sorted(self.items) if self.items[index].kind]


def _is_response(value: Mapping[str, Any]) -> bool:
    return value.get("object") == "response" or isinstance(value.get("output"), list)


def _call(item: Item) -> ToolCall:
    name, arguments = sendable(item.string("name")), sendable(item.value("arguments"))
    return ToolCall(item.string("call_id"), name, arguments)
