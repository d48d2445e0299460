"""Server-sent events (WHATWG HTML, 9.2), as far as model providers use them: the data of each event. Pure."""

from __future__ import annotations

import codecs
import io

MAX_EVENT = 8 * 1024 * 1024
"""Characters of one event of a stream."""
MAX_STREAM = 128 * 1024 * 1024
"""Characters of a whole stream. The longest honest replies take a third of it, mostly the events' own clothing."""


class StreamTooLong(Exception):
    """An event, or a stream, is beyond its bound."""


class Events:
    """Cuts a stream into events, whatever pieces it arrives in. Bytes that are not UTF-8 are replaced."""

    def __init__(self) -> None:
        utf8 = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._text = io.IncrementalNewlineDecoder(utf8, translate=True)
        self._rest: list[str] = []
        self._data: list[str] = []
        self._of_rest = self._of_event = self._of_stream = 0

    def feed(self, piece: bytes) -> list[str]:
        """The data of the events that end in `piece`; events without data are none.

        Raises:
            StreamTooLong: one event passes `MAX_EVENT`, or all of them `MAX_STREAM`.
        """
        return self._cut(self._text.decode(piece))

    def end(self) -> list[str]:
        """The data of the last event, where the stream ends without ending it."""
        return self._cut(self._text.decode(b"", final=True) + "\n\n")

    def _cut(self, text: str) -> list[str]:
        self._of_stream += len(text)
        found: list[str] = []
        *lines, rest = text.split("\n")
        if lines:
            lines[0] = "".join((*self._rest, lines[0]))
            self._rest, self._of_rest = [], 0
        for line in lines:
            self._take(line, found)
        self._rest.append(rest)
        self._of_rest += len(rest)
        if self._of_event + self._of_rest > MAX_EVENT:
            raise StreamTooLong(f"more than {MAX_EVENT} characters in one piece")
        if self._of_stream > MAX_STREAM:
            raise StreamTooLong(f"more than {MAX_STREAM} characters")
        return found

    def _take(self, line: str, found: list[str]) -> None:
        """One whole line: a blank one ends the event."""
        if not line:
            if any(self._data):
                found.append("\n".join(self._data))
            self._data, self._of_event = [], 0
            return
        self._of_event += len(line)
        name, _, value = line.partition(":")
        if name == "data":
            self._data.append(value.removeprefix(" "))
