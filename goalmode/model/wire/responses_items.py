"""One item of an OpenAI response while it arrives, and what of a whole response goes back later. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from goalmode.domain.text import sendable
from goalmode.model.wire.assembly import dicts, string
from goalmode.model.wire.responses_messages import EXTRA, MAX_ID

DELTAS: Mapping[str, str] = {
    "response.output_text.delta": "text",
    "response.refusal.delta": "refusal",
    "response.function_call_arguments.delta": "arguments",
    "response.reasoning_summary_text.delta": "thought",
    "response.reasoning_text.delta": "thought",
}
"""Event -> which part of its item grows."""

_KINDS = frozenset({"reasoning", "message", "function_call"})
_FIELDS = ("id", "call_id", "name", "status", "phase", "arguments", "encrypted_content")
_PARTS = ("text", "refusal", "arguments", "thought")


@dataclass(slots=True)
class Item:
    """Reasoning, a message or a function call.

    Attributes:
        kind: empty for any other item: what we never asked for is passed over.
        fields: of the newest form that the server sent.
        done: whether that form is the last one.
        grown: what arrived of each part.
    """

    kind: str = ""
    fields: dict[str, Any] = field(default_factory=dict)
    done: bool = False
    grown: dict[str, list[str]] = field(default_factory=dict)

    def announced(self, item: Mapping[str, Any]) -> None:
        """The server begins the item."""
        kind = string(item.get("type"))
        self.kind = kind if kind in _KINDS else ""
        self.fields = {key: said for key in _FIELDS if (said := string(item.get(key)))}

    def finished(self, item: Mapping[str, Any]) -> None:
        """The server says that this is the item."""
        self.announced(item)
        self.done = True
        for key in ("summary", "content"):
            parts = [
                {name: said for name in ("type", "text", "refusal") if (said := string(part.get(name)))}
                for part in dicts(item.get(key))
            ]
            self.fields[key] = parts

    @property
    def whole(self) -> bool:
        """Whether nothing of it is missing: it was done, and not because the response was cut there."""
        return self.done and self.fields.get("status", "completed") == "completed"

    @property
    def length(self) -> int:
        """In characters."""
        return sum(len(self.value(part)) for part in _PARTS) + len(self.string("encrypted_content"))

    def string(self, key: str) -> str:
        """A field, empty where it is missing."""
        return string(self.fields.get(key))

    def value(self, part: str) -> str:
        """The item's text, refusal, arguments or thought: as in its last form, or as it grew until then."""
        return (self._final(part) if self.done else "") or "".join(self.grown.get(part, ()))

    def generated(self) -> str:
        """All that the model wrote of it, as far as we are told."""
        return self.string("name") + "".join(self.value(part) for part in _PARTS)

    def _final(self, part: str) -> str:
        match part:
            case "arguments":
                return self.string("arguments")
            case "thought" if self.kind == "reasoning":
                parts = [*self.fields["summary"], *self.fields["content"]]
                return "".join(string(p.get("text")) for p in parts)
            case "text" | "refusal" if self.kind == "message":
                return "".join(string(p.get(part)) for p in self.fields["content"])
            case _:
                return ""


def kept(items: Sequence[Item], model: str) -> dict[str, object]:
    """What the server wants back with the next request, for `Assistant.extra`.

    Nothing of a response that was cut, nor of one without reasoning that can be given back. Texts and arguments are the
    message's own; only their places are kept.
    """
    if not all(item.whole for item in items):
        return {}
    thoughts = [item for item in items if item.kind == "reasoning"]
    lost = any(not (t.string("encrypted_content") and t.string("id")) for t in thoughts)
    places = [place for item in items if (place := _place(item, with_id=not lost)) is not None]
    while places and places[-1]["type"] == "reasoning":
        places.pop()  # it led to nothing that is said
    if not any(place["type"] == "reasoning" or "phase" in place for place in places):
        return {}
    return {EXTRA: {"model": model, "items": places}}


def _place(item: Item, *, with_id: bool) -> dict[str, Any] | None:
    fields = item.fields
    match item.kind:
        case "reasoning":
            if not (fields.get("encrypted_content") and fields.get("id")):
                return None
            content = {"content": fields["content"]} if fields["content"] else {}
            return {
                "type": "reasoning",
                "id": fields["id"],
                "summary": fields["summary"],
                **content,
                "encrypted_content": fields["encrypted_content"],
            }
        case "message":
            text = sendable(item.value("text"))
            phase = {"phase": fields["phase"]} if fields.get("phase") else {}
            return {"type": "message", "text": text, **phase} if text.strip() else None
        case _:
            id_ = fields.get("id", "")
            usable = with_id and id_.startswith("fc") and len(id_) <= MAX_ID
            return {"type": "function_call", **({"id": id_} if usable else {})}
