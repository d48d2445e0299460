"""What a user tells a goal of his own accord: notes, and the news that a running wakeup has yet to hear."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

MAX_NOTE = 10_000
"""Longest note, in characters. A longer one is refused, never cut."""


@dataclass(frozen=True, slots=True)
class Note:
    """A note as stored. Within a goal they are numbered from 1; a number is never used again.

    Attributes:
        replaced_by: number of the note that has taken its place.
        withdrawn: it was taken back, and nothing has taken its place.
    """

    number: int
    text: str
    at: datetime
    replaced_by: int | None = None
    withdrawn: bool = False

    @property
    def stands(self) -> bool:
        return self.replaced_by is None and not self.withdrawn


class NewsKind(StrEnum):
    NOTE = "note"
    WITHDRAWN = "withdrawn"
    """A note that the wakeup has heard is taken back."""
    ANSWER = "answer"
    """The user has answered a question, or has said something in place of an answer."""
    DEFAULT = "default"
    """A question's default stands, for its time had come."""


@dataclass(frozen=True, slots=True)
class News:
    """Something that was said to a goal and does not stand in the conversation of its wakeup yet.

    Attributes:
        text: of the note or the answer; of a note taken back, what it said.
        about: of a note, what the one said whose place it takes; of an answer, the question (`Q1: Which port?`).
    """

    kind: NewsKind
    text: str
    about: str = ""
