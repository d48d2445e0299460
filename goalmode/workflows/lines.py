"""Where in a workflow's TOML a field stands: `tomllib` knows the line of a syntax error only."""

from __future__ import annotations

import re

_OPAQUE = re.compile(
    r"\"\"\"(?:\\.|[^\\])*?\"{3,5}|'''.*?'{3,5}|\"(?:\\.|[^\"\\\n])*\"|'[^'\n]*'|#[^\n]*", re.DOTALL
)
"""Strings and comments. What looks like a key in one is none."""

_MOVEMENT = re.compile(r"^[ \t]*\[\[[ \t]*movement[ \t]*\]\]", re.MULTILINE)
_TABLE = re.compile(r"^[ \t]*\[", re.MULTILINE)


def line_of(text: str, movement: int | None, field: str) -> int:
    """The line, from 1, of `field` in the table of the movement at that position, or at the top for None.

    Where it is not there, or is written in another way than `key = …` below `[[movement]]`: the line of the table,
    or of the key that the movements are in.
    """
    bare = _OPAQUE.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
    start, end = 0, len(bare)
    heads = list(_MOVEMENT.finditer(bare))
    if movement is None:
        first = _TABLE.search(bare)
        end = first.start() if first else end
    elif movement < len(heads):
        start = heads[movement].end()
        following = _TABLE.search(bare, start)
        end = following.start() if following else end
    key = re.compile(rf"^[ \t]*{re.escape(field)}[ \t]*=", re.MULTILINE).search(bare, start, end)
    if key is not None:
        at = key.start()
    elif movement is not None and movement < len(heads):
        at = start
    else:
        inline = re.compile(r"^[ \t]*movement[ \t]*=", re.MULTILINE).search(bare)
        at = inline.start() if inline else 0
    return text.count("\n", 0, at) + 1
