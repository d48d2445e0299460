"""One question to the model: how much likelier is it that it goes on than that it ends?

Where the server tells log-probabilities, one request has the answer. Elsewhere the same question is asked several times
at temperature 1, and counted.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import cast

from goalmode.domain.messages import NO_USAGE, Message, Request, Usage
from goalmode.domain.signals import ErrorKind
from goalmode.errors import BadInput, ModelError
from goalmode.evals.wording import FINAL, TOOL
from goalmode.model import first_token
from goalmode.model.port import Model, OpenModel

TOPS = (500, 20, 5)
"""Lengths of the list of first tokens that are tried: llama.cpp takes any, OpenAI at most 20, others 5."""

LEAST = 0.01
"""Probability of both words together below which the model has answered something else: sampled, it would say neither,
and how the remaining hair is split says nothing about what it does."""

WHOLE_CHARACTER = 4
"""Tokens of an answer whose first one matters: llama.cpp tells nothing of a token that is part of a character, as it
may be in Chinese, before the character is whole."""

_FIRST = re.compile(r"[^\W\d_\u2e80-\uffff]+|[^\W\d_]+")
"""A word ends where Chinese begins, which has no blanks: `tool表示继续` begins with `tool`."""

_REFUSALS = frozenset({ErrorKind.BAD_REQUEST, ErrorKind.NOT_FOUND})


class Method(StrEnum):
    """The words are stored."""

    LOGPROBS = "logprobs"
    SAMPLES = "samples"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model answered in one cell.

    Attributes:
        tool, final: log-probabilities, or numbers of answers; None where neither word was in the list.
        bound: the word that was not in the list, so that its log-probability is at most what stands here.
        other: sampled answers that were neither word.
        usage: of all requests together.
    """

    tool: float | None
    final: float | None
    bound: str = ""
    other: int = 0
    usage: Usage = field(default=NO_USAGE)

    def margin(self, method: Method) -> float | None:
        """How much tool is ahead; below 0 the model chose to end. None where it chose neither, or as good as neither.

        LOGPROBS: log p(tool) - log p(final). SAMPLES: the share of tool less the share of final, from -1 to 1.
        """
        if self.tool is None or self.final is None:
            return None
        if method is Method.LOGPROBS:
            something = math.exp(self.tool) + math.exp(self.final) >= LEAST
            return self.tool - self.final if something else None
        both = self.tool + self.final
        return (self.tool - self.final) / both if both else None


@dataclass(frozen=True, slots=True)
class Way:
    """How a model is asked.

    Attributes:
        top: tokens of the list; 0 for SAMPLES.
        samples: answers of one cell; 1 for LOGPROBS.
        answer_tokens: the allowance of one answer.
    """

    method: Method
    top: int
    samples: int
    answer_tokens: int


Open = Callable[[int], OpenModel]
"""Opens the model, given the length of the list; 0 for one that is only to answer."""


async def ask(model: Model, messages: tuple[Message, ...], way: Way) -> Answer:
    """Ask one cell's question.

    Raises:
        ModelError: the provider failed. BadInput: the model reasons and never comes to its answer.
    """
    if way.method is Method.LOGPROBS:
        reply = await model.complete(Request(messages, (), way.answer_tokens))
        top = cast(first_token.Top, reply.extra.get(first_token.EXTRA, ()))
        found = first_token.of_words(top, (TOOL, FINAL))
        if not found:
            return Answer(None, None, usage=reply.usage)
        bound = next((word for word, told in found.items() if told.bound), "")
        return Answer(found[TOOL].value, found[FINAL].value, bound, usage=reply.usage)
    said: list[str] = []
    usage = NO_USAGE
    for _ in range(way.samples):
        reply = await model.complete(Request(messages, (), way.answer_tokens))
        if not reply.text.strip() and reply.usage.output >= way.answer_tokens:
            expected = "more tokens: the model used all of them before it answered"
            raise BadInput("answer-tokens", way.answer_tokens, expected)
        said.append(chosen(reply.text))
        usage += reply.usage
    tool, final = said.count(TOOL), said.count(FINAL)
    return Answer(float(tool), float(final), other=len(said) - tool - final, usage=usage)


def chosen(text: str) -> str:
    """The word that an answer begins with, empty for any other."""
    found = _FIRST.search(text)
    word = found.group().casefold() if found else ""
    return word if word in (TOOL, FINAL) else ""


async def find_way(
    open: Open, tops: Sequence[int], wanted: Method | None, fallback: Way, probe: tuple[Message, ...]
) -> Way:
    """How this server can be asked: with the longest list it gives, else as `fallback` says.

    Args:
        tops: the lengths to try; none where the wire format has no such list.
        wanted: None for the best there is.

    Raises:
        ModelError: it does not answer at all. BadInput: log-probabilities were wanted, and there are none.
    """
    if wanted is not Method.SAMPLES:
        for top in tops:
            if await _lists(open, top, probe):
                return Way(Method.LOGPROBS, top, 1, WHOLE_CHARACTER)
        if wanted is Method.LOGPROBS:
            raise BadInput("method", wanted.value, "samples: this server tells no log-probabilities")
    return fallback


async def _lists(open: Open, top: int, probe: tuple[Message, ...]) -> bool:
    """Whether the server answers with a list, and with the first token of its answer, not of its reasoning."""
    model = open(top)
    try:
        reply = await model.complete(Request(probe, (), WHOLE_CHARACTER))
    except ModelError as error:
        if error.kind in _REFUSALS and error.status in (400, 404, 422, 501):
            return False
        raise
    finally:
        await model.aclose()
    return first_token.EXTRA in reply.extra and not reply.extra.get("reasoning_content")
