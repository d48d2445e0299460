"""A document as a row of blocks, before it is written in any language. Texts in it are data, as they are stored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Heading:
    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Line:
    """One line of running text."""

    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """A text of several lines, shown as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class Items:
    """A list; what is inside an item is shown under it, as it is."""

    items: Sequence[Item]


@dataclass(frozen=True, slots=True)
class Item:
    text: str
    inside: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    head: Sequence[str]
    rows: Sequence[Sequence[str]]


Block = Heading | Line | Text | Items | Table


@dataclass(frozen=True, slots=True)
class Document:
    title: str
    blocks: Sequence[Block]
