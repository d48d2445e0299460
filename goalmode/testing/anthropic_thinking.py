"""Signatures of thinking, as strict as the provider's: bound to the thought and to everything that was said before it.

Cache marks are not part of what was said.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Block = Mapping[str, Any]


def signature(request: Mapping[str, Any], before: Iterable[Block], thinking: str) -> str:
    """What thinking is signed with in the answer to `request`, after the blocks `before` of the same answer."""
    heard = _Heard(request)
    for role, block in (*_said(request), *(("assistant", block) for block in before)):
        heard.add(role, block)
    return heard.signed(thinking)


def misplaced(request: Mapping[str, Any]) -> list[str]:
    """What is wrong with the thinking in a request, in the provider's words."""
    heard = _Heard(request)
    found = []
    for role, block in _said(request):
        if block["type"] == "thinking" and block["signature"] != heard.signed(block["thinking"]):
            found.append(
                "Invalid `signature` in `thinking` block. The block is bound to a different conversation."
            )
        heard.add(role, block)
    return found


class _Heard:
    """A fingerprint of all that was said so far, beginning with the system prompt."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        system = request.get("system") or ()
        prompt = [system] if isinstance(system, str) else [block["text"] for block in system]
        self._hash = hashlib.sha256(json.dumps(prompt).encode())

    def add(self, role: str, block: Block) -> None:
        unmarked = {key: value for key, value in block.items() if key != "cache_control"}
        self._hash.update(json.dumps([role, unmarked], sort_keys=True).encode())

    def signed(self, thinking: str) -> str:
        whole = self._hash.copy()
        whole.update(json.dumps(thinking).encode())
        return whole.hexdigest()


def _said(request: Mapping[str, Any]) -> Iterator[tuple[str, Block]]:
    for message in request["messages"]:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        yield from ((message["role"], block) for block in blocks)
