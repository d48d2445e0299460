"""Large results within bounds: head and tail are kept, and what is left out is told with its size."""

from __future__ import annotations

import codecs

from goalmode.domain.redact import Redactor

MARGIN = 4096
"""Bytes on each side of a cut that are read for secrets and then dropped, so that no half of one stays at the edge."""


class HeadTail:
    """The first two thirds and the last third of a stream of bytes, within about `limit` bytes.

    Attributes:
        size: bytes fed so far.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._margin = min(MARGIN, limit // 8)
        self._head_limit = limit * 2 // 3 + self._margin
        self._tail_limit = limit - limit * 2 // 3 + self._margin
        self._head, self._tail = bytearray(), bytearray()
        self.size = 0

    def feed(self, data: bytes) -> None:
        self.size += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * self._tail_limit:
            del self._tail[: -self._tail_limit]

    def text(self, redact: Redactor | None = None) -> tuple[str, int]:
        """The stream as text, bytes that are not UTF-8 replaced, and how many secrets were struck out.

        Secrets are struck out only where something is cut: before the cut, which could leave half of one.
        """
        if self.size <= self._limit:
            return bytes(self._head + self._tail).decode("utf-8", "replace"), 0
        redact = redact or Redactor()
        head, in_head = redact.count(_without_split_end(self._head))
        tail, in_tail = redact.count(_without_split_start(self._tail[-self._tail_limit :]))
        head, tail = head[: -self._margin or None], tail[self._margin :]
        kept = len(head.encode("utf-8", "replace")) + len(tail.encode("utf-8", "replace"))
        gap = f"\n[… about {max(0, self.size - kept)} bytes left out of {self.size} …]\n"
        return head + gap + tail, in_head + in_tail


def capped(text: str, limit: int) -> str:
    """`text` within about `limit` bytes of UTF-8, head and tail."""
    if len(text) * 4 <= limit:
        return text
    whole = HeadTail(limit)
    whole.feed(text.encode("utf-8", "replace"))
    return whole.text()[0]


def shown(text: str, limit: int, size: int) -> str:
    """`text` within about `limit` characters, head and tail, with the whole's `size` in bytes where it is cut."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    gap = f"\n[… cut here: the whole result is {size} bytes, its middle is left out …]\n"
    return text[:head] + gap + text[head - limit :]


def _without_split_end(data: bytearray) -> str:
    """Decoded, without the last character if the end of the data splits it."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(bytes(data), final=False)


def _without_split_start(data: bytearray) -> str:
    """Decoded, without the first character if the start of the data splits it."""
    start = 0
    while start < min(3, len(data)) and data[start] & 0xC0 == 0x80:
        start += 1
    return bytes(data[start:]).decode("utf-8", "replace")
