"""What the stub's wire formats share: how an answer is cut into pieces, and where it stalls or breaks off. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from goalmode.testing.steps import Completion, Status

PIECE = 16
"""Characters of text or arguments in one event of a stream."""


class Mark(Enum):
    """A place in a stream where something happens."""

    STALL = "stall"
    CUT = "cut"


Event = Mapping[str, Any] | str | Mark
"""An object with its `type` as the event's name if it has one, raw data such as `[DONE]`, or a mark."""


def refused(status: int, message: str, word: str | None = None) -> Status:
    """An answer in OpenAI's shape to a request that is not taken."""
    code = word or ("invalid_api_key" if status == 401 else None)
    return Status(status, {"error": {"message": message, "type": "invalid_request_error", "code": code}})


@dataclass(frozen=True, slots=True)
class Wire:
    """One wire format as the stub speaks it.

    Attributes:
        path: of its endpoint.
        refusal: a strict provider's answer to a request that it does not take, None if it does.
        whole: (step, request, number) -> the body of an answer that is not a stream.
        stream: (step, request, number) -> the events of a stream.
        key: the header that carries a key, and what stands before the key in it.
        needs: a header that no request is taken without; empty for none.
        refused: (status, message) -> an answer in the format's shape.
    """

    path: str
    refusal: Callable[[Mapping[str, Any]], Status | None]
    whole: Callable[[Completion, Mapping[str, Any], int], Mapping[str, Any]]
    stream: Callable[[Completion, Mapping[str, Any], int], Iterator[Event]]
    key: tuple[str, str] = ("authorization", "Bearer ")
    needs: str = ""
    refused: Callable[[int, str], Status] = refused


def marked(events: Iterable[tuple[Mapping[str, Any], int]], step: Completion) -> Iterator[Event]:
    """The content's events, given each with its length in characters, and the marks where the step wants them.

    Nothing follows a `CUT`.
    """
    sent = 0
    for event, length in events:
        for mark, at in ((Mark.STALL, step.stall_after), (Mark.CUT, step.cut_after)):
            if at == sent and length:
                yield mark
        if step.cut_after == sent and length:
            return
        yield event
        sent += length
    if step.stall_after is not None and step.stall_after >= sent:
        yield Mark.STALL
    if step.cut_after is not None:
        yield Mark.CUT


def pieces(text: str, start: int, step: Completion) -> Iterator[str]:
    """`text`, which begins `start` characters into the answer, in pieces that end where something is to happen."""
    marks = [at for at in (step.stall_after, step.cut_after) if at is not None]
    ends = {*range(PIECE, len(text), PIECE), *(at - start for at in marks if 0 < at - start < len(text))}
    begin = 0
    for end in [*sorted(ends), len(text)]:
        if end > begin:
            yield text[begin:end]
        begin = end


def tokens(text: str) -> int:
    """A plausible count."""
    return max(1, math.ceil(len(text.encode("utf-8", "replace")) / 4))
