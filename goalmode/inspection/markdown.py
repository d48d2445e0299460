"""A document as Markdown. Nothing of its texts is taken for Markdown or HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import assert_never

from goalmode.domain.text import one_line, safe
from goalmode.inspection.document import Block, Document, Heading, Item, Items, Line, Table, Text

_MEANT = re.compile(r"[\\`*\[\]<|~$]|(?<!\w)_|_(?!\w)|&(?=[#\w])")
"""What means something anywhere in a line."""

_AT_THE_BEGINNING = re.compile(r"^([-+=:>#]|\d{1,9}[.)])")


def markdown(document: Document) -> str:
    """The whole document; ends in one newline."""
    parts = [f"# {_line(document.title)}", *("\n".join(_block(block)) for block in document.blocks)]
    return "\n\n".join(parts) + "\n"


def _block(block: Block) -> Iterator[str]:
    match block:
        case Heading(text, level):
            yield f"{'#' * level} {_line(text)}"
        case Line(text):
            yield _line(text)
        case Text(text):
            yield from _fenced(text)
        case Items(items):
            for item in items:
                yield from _item(item)
        case Table(head, rows):
            yield _row(head)
            yield f"| {' | '.join('---' for _ in head)} |"
            for row in rows:
                yield _row(row)
        case never:
            assert_never(never)


def _item(item: Item) -> Iterator[str]:
    yield f"- {_line(item.text)}"
    if item.inside:
        yield ""
        for line in _fenced(item.inside):
            yield f"  {line}".rstrip()
        yield ""


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_inline, cells))} |"


def _fenced(text: str) -> Iterator[str]:
    """As it is, behind a fence that is longer than any in it."""
    shown = safe(text)
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    yield fence
    yield from shown.split("\n")
    yield fence


def _line(text: str) -> str:
    """A line of its own, or an item's."""
    return _AT_THE_BEGINNING.sub(lambda m: f"{m.group()[:-1]}\\{m.group()[-1]}", _inline(text))


def _inline(text: str) -> str:
    return _MEANT.sub(lambda m: f"\\{m.group()}", one_line(text).strip())
