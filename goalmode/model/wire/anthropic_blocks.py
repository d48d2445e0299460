"""The content blocks of an Anthropic assistant message: what a reply came in, and what goes back of it. Pure.

A reply of text and tool calls is kept as text and calls. One that holds anything else (thinking with its signature, the
provider's own tools, a compaction) must go back in the order and in the words in which it came: its blocks are kept
beside it, in `Assistant.extra`, tool calls without name and arguments, since these are in the calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from goalmode.domain.messages import Assistant
from goalmode.model.wire.assembly import dicts, string

Block = dict[str, Any]

EXTRA = "anthropic"
"""The key in `Assistant.extra` under which the blocks are."""

_PLAIN = frozenset({"text", "tool_use"})
THINKING = frozenset({"thinking", "redacted_thinking"})
SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})
"""Calls of the provider's own tools."""


def said(blocks: Iterable[Block]) -> str:
    """The text of a reply. A text in several blocks is one; other blocks between two texts part them."""
    texts = ("".join(b["text"] for b in run) for is_text, run in groupby(blocks, key=_is_text) if is_text)
    return "\n\n".join(text for text in texts if text)


def extra(blocks: Sequence[Block]) -> Mapping[str, object]:
    """What must be kept of a reply beside its text and calls; nothing where these are all."""
    if all(block["type"] in _PLAIN for block in blocks):
        return {}
    unsigned = any(b["type"] == "thinking" and not b.get("signature") for b in blocks)
    return {} if unsigned else {EXTRA: list(blocks)}


def kept(message: Assistant) -> Sequence[Block] | None:
    """The blocks of a reply, None where none were kept or text and calls are no longer what they were."""
    blocks = dicts(message.extra.get(EXTRA))
    calls = [b.get("id") for b in blocks if b["type"] == "tool_use"]
    if not blocks or said(blocks) != message.text or calls != [call.id for call in message.calls]:
        return None
    return blocks


def without_the_rest(content: Iterable[Block]) -> list[Block]:
    """Text and tool calls alone: what remains sendable of blocks that cannot go back as they came."""
    return [block for block in content if block["type"] in _PLAIN]


def refused(replies: Sequence[Sequence[Block]], *, last: bool) -> int | None:
    """The number of a reply that no provider takes back as it is; None if all may go back.

    A result of the provider's own tool may come later than its call: in the next reply to a paused turn, which the
    conversation then ends with, or once calls of ours beside it are answered.

    Args:
        replies: the content of each of the model's turns, in order.
        last: whether the conversation ends with the newest of them.
    """
    waiting: dict[str, int] = {}
    for number, content in enumerate(replies):
        if content and content[-1]["type"] in THINKING:
            return number
        for block in content:
            if block["type"] in SERVER_CALLS:
                waiting[string(block.get("id"))] = number
            elif is_server_result(block) and waiting.pop(string(block.get("tool_use_id")), None) is None:
                return number
        paused = last and number == len(replies) - 1
        if waiting and not paused and not any(block["type"] == "tool_use" for block in content):
            return min(waiting.values())
    return None


def is_server_result(block: Block) -> bool:
    """Whether the block is what a tool of the provider's own gave."""
    return bool(block["type"].endswith("_tool_result"))


def _is_text(block: Block) -> bool:
    return bool(block["type"] == "text")
