"""The content blocks of an Anthropic assistant message: what a reply came in, and what goes back of it. Pure.

A reply of text and tool calls is kept as text and calls. One that holds anything else (thinking with its signature, the
provider's own tools, a compaction) must go back in the order and in the words in which it came: its blocks are kept
beside it, in `Assistant.extra`, each tool call only by its id, since name and arguments are in the calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from goalmode.domain.messages import Assistant
from goalmode.model.wire.assembly import dicts

Block = Mapping[str, Any]

EXTRA = "anthropic"
"""The key in `Assistant.extra` under which the blocks are."""

_PLAIN = frozenset({"text", "tool_use"})
_THINKING = frozenset({"thinking", "redacted_thinking"})


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


def may_go_back(content: Sequence[Block], *, last: bool, open_server_calls: set[str]) -> bool:
    """Whether a provider takes these blocks as they are.

    Args:
        last: whether the conversation ends with them: a paused turn that is sent back.
        open_server_calls: calls of the provider's own tools in earlier messages that have no result yet.
    """
    if content and content[-1]["type"] in _THINKING:
        return False
    known = open_server_calls | set(server_calls(content))
    if not set(server_results(content)) <= known:
        return False
    # A result that is missing comes in the next reply: to the paused turn, or once our own tools are answered.
    waits = last or any(block["type"] == "tool_use" for block in content)
    return waits or set(server_calls(content)) <= set(server_results(content))


def server_calls(content: Iterable[Block]) -> Iterator[str]:
    """Ids of calls of the provider's own tools."""
    return (b["id"] for b in content if b["type"] in ("server_tool_use", "mcp_tool_use") and "id" in b)


def server_results(content: Iterable[Block]) -> Iterator[str]:
    """Ids of the provider's own calls that these blocks answer."""
    return (
        b["tool_use_id"]
        for b in content
        if b["type"].endswith("_tool_result") and isinstance(b.get("tool_use_id"), str)
    )


def _is_text(block: Block) -> bool:
    return bool(block["type"] == "text")
