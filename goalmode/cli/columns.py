"""Text in columns, as wide as it looks: Chinese characters take two places, combining marks none."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

_GAP = "  "


def width_of(text: str) -> int:
    """The places that `text` takes on a terminal."""
    return sum(_places(char) for char in text)


def cut(text: str, width: int) -> str:
    """`text` in at most `width` places, ending in an ellipsis if something is missing."""
    if width_of(text) <= width:
        return text
    kept, used = [], 0
    for char in text:
        used += _places(char)
        if used > width - 1:
            break
        kept.append(char)
    return "".join(kept) + "…" if width > 0 else ""


def aligned(rows: Sequence[Sequence[str]], width: int | None = None) -> list[str]:
    """The rows as lines, each column as wide as its widest cell. With `width`, no line takes more places."""
    widths = [max(map(width_of, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [cell + " " * (size - width_of(cell)) for cell, size in zip(row, widths, strict=True)]
        line = _GAP.join(cells).rstrip()
        lines.append(line if width is None else cut(line, width))
    return lines


def _places(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
