"""Text from outside, made safe to send, to store and to show. Pure functions; each says for whom it is."""

from __future__ import annotations

import re
import unicodedata

_UNSENDABLE = re.compile("[\x00\ud800-\udfff]")
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and newline, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional marks, embeddings, overrides, isolates
    "\u2028\u2029\ufeff\ud800-\udfff]"
)


def sendable(text: str) -> str:
    """`text` with what no strict JSON parser or database accepts made visible: NUL as ␀, lone surrogates as U+FFFD.

    Surrogate pairs (two escapes of one character) are joined first, so that no real character is lost.
    """
    if not _UNSENDABLE.search(text):
        return text
    joined = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return joined.replace("\x00", "␀")


def safe(text: str) -> str:
    """`text` for a terminal or a rendered context: control and bidirectional characters become visible escapes.

    Newlines and tabs stay. Nothing that is left can move a cursor, colour a line or reorder text.
    """
    return _CONTROL.sub(lambda m: _escape(m.group()), text)


def one_line(text: str, limit: int = 0) -> str:
    """`safe(text)` on one line, cut to `limit` characters (0: not cut) with an ellipsis."""
    line = safe(text).replace("\n", "\\n").replace("\t", " ")
    return f"{line[: limit - 1]}…" if limit and len(line) > limit else line


def head_tail(text: str, limit: int) -> str:
    """`text` cut to about `limit` characters: head and tail, with the elided size between them."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    tail = limit - head
    elided = len(text) - head - tail
    return f"{text[:head]}\n[… {elided} characters left out of {len(text)} …]\n{text[len(text) - tail :]}"


def counted(number: int, noun: str, many: str = "") -> str:
    """How many of something, as people say it: `1 turn`, `2,500 turns`.

    Args:
        many: the noun of more than one, where it is not `noun` with an s.
    """
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"


def is_blank(text: str) -> bool:
    """Whether a person would see nothing: white space, control and zero-width characters only."""
    return not any(char.isprintable() and not char.isspace() for char in text)


def same_name(a: str, b: str) -> bool:
    """Whether two file names are equal once composed and decomposed Unicode forms are told no longer apart."""
    return unicodedata.normalize("NFC", a) == unicodedata.normalize("NFC", b)


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
