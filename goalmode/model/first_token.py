"""The first word of a reply, and which others were as good as said: what a server tells with `logprobs`. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Top = tuple[tuple[str, float], ...]
"""The likeliest first tokens with their natural log-probabilities, as the server lists them."""

EXTRA = "first_token"
"""The key of a reply's `extra` that holds the `Top`; absent where the server told none."""

SHORTEST_PIECE = 3
"""Letters of a word that stand for it, where a vocabulary has it in pieces: `fin` is `final`, `f` may be anything."""


@dataclass(frozen=True, slots=True)
class LogProb:
    """Attributes:
    value: of all tokens that begin the word, together.
    bound: the word is not in the list; its value is that of the list's end, and the true one is lower.
    """

    value: float
    bound: bool = False


def of_words(top: Top, words: Sequence[str]) -> dict[str, LogProb]:
    """The log-probability that the reply begins with each word; empty if none of them is in the list."""
    found = {word: [value for token, value in top if _begins(token, word)] for word in words}
    if not any(found.values()):
        return {}
    end = min(value for _, value in top)
    return {
        word: LogProb(_together(values)) if values else LogProb(end, bound=True)
        for word, values in found.items()
    }


def read(choice: Mapping[str, Any]) -> Top:
    """The list of the first token in a choice's `logprobs`, empty if there is none."""
    told = choice.get("logprobs")
    content = told.get("content") if isinstance(told, dict) else None
    first = content[0] if isinstance(content, list) and content else None
    listed = first.get("top_logprobs") if isinstance(first, dict) else None
    return tuple(_entries(listed if isinstance(listed, list) else ()))


def _entries(listed: Iterable[object]) -> Iterable[tuple[str, float]]:
    for entry in listed:
        if not isinstance(entry, dict):
            continue
        token, value = entry.get("token"), entry.get("logprob")
        # Some servers send a null or a huge negative number for what is impossible.
        if isinstance(token, str) and isinstance(value, int | float) and math.isfinite(value):
            yield token, float(value)


def _begins(token: str, word: str) -> bool:
    plain = token.strip(" \t\r\n\"'`*▁Ġ").casefold()
    return plain == word or (len(plain) >= SHORTEST_PIECE and word.startswith(plain))


def _together(values: Sequence[float]) -> float:
    """The logarithm of the sum of the probabilities."""
    most = max(values)
    return most + math.log(sum(math.exp(value - most) for value in values))
