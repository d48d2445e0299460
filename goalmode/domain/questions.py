"""Questions to a person: what a goal waits for, and what was answered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

MAX_ANSWER = 10_000
"""Longest answer, in characters. A longer one is refused, never cut."""

MAX_OPTIONS = 20
MAX_OPTION = 500
"""Longest option, in characters."""


class QuestionKind(StrEnum):
    INPUT = "input"
    """The model, or a movement's `default_next`, asks for what only the user can tell."""
    HUMAN = "human"
    """A tool has handed over to a person (`waiting_human`)."""
    SIGN_OFF = "sign_off"
    """All else holds; a person has to accept the requirements that only a person can."""


class QuestionStatus(StrEnum):
    OPEN = "open"
    ANSWERED = "answered"
    WITHDRAWN = "withdrawn"
    """The goal was done or aborted before anybody answered."""


class AnsweredBy(StrEnum):
    USER = "user"
    DEFAULT = "default"
    """Nobody; the question's default stands, for its time had come."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A question that an ending puts to the user.

    Attributes:
        text: what is asked.
        why: why nobody else can say; empty where that is plain.
        options: answers to choose from; any other text is an answer too.
        default: the answer if nobody answers in time; empty for none.
        default_at: aware UTC, when `default` answers by itself; None: never.
        session_id: of a tool that waits for a person.
    """

    kind: QuestionKind
    text: str
    why: str = ""
    options: tuple[str, ...] = ()
    default: str = ""
    default_at: datetime | None = None
    session_id: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """A question as stored. Within a goal they are numbered from 1; the same text asked again is another question.

    Attributes:
        wakeup: sequence number of the wakeup that asked.
        answered_by: None as long as nobody and nothing has answered.
    """

    number: int
    asking: Asking
    status: QuestionStatus
    wakeup: int
    asked_at: datetime
    answer: str = ""
    answered_by: AnsweredBy | None = None
    answered_at: datetime | None = None

    @property
    def label(self) -> str:
        return f"Q{self.number}"

    @property
    def is_open(self) -> bool:
        return self.status is QuestionStatus.OPEN
