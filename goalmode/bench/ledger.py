"""What a provider would charge for the requests of one goal, beside what the same goal would cost replayed in full.

Counted here from what was sent, not taken from what goalmode says of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from statistics import median
from typing import Any

from goalmode.context.tokens import CALL_OVERHEAD, MESSAGE_OVERHEAD, REPLY_OVERHEAD, counter

CACHED_PRICE = 0.1
"""Of a token that the provider has in its cache, beside one that it has not."""

SAVING = "update_working_checkpoint"
"""Calls that a replayed conversation would not need."""


class Ledger:
    """Notes each request of a goal.

    Args:
        bound: tokens that a request may have.
    """

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._count = lru_cache(8_192)(counter("o200k_base").count)
        self._previous = b""
        self._shares: list[float] = []
        self._newest = ""
        self._opening = self._first_bytes = self._turns = self._worked = 0
        self._sums: dict[str, float] = dict.fromkeys(
            ("requests", "tokens", "cached", "cost", "bytes", "repeated", "over", "largest"), 0
        )
        self._replay: dict[str, float] = {"tokens": 0, "cost": 0, "previous": 0}

    def note(self, body: bytes) -> dict[str, Any]:
        """One request. Returns its usage, as a provider with a prefix cache reports it."""
        request = json.loads(body)
        tokens = self.tokens(request)
        same = repeated_prefix(self._previous, body)
        cached = tokens * same // len(body)
        self._previous = body
        self._shares.append(same / len(body))
        for name, more in (
            ("requests", 1),
            ("tokens", tokens),
            ("cached", cached),
            ("cost", tokens - (1 - CACHED_PRICE) * cached),
            ("bytes", len(body)),
            ("repeated", same),
            ("over", tokens > self._bound),
        ):
            self._sums[name] += more
        self._sums["largest"] = max(self._sums["largest"], tokens)
        self._replayed(request["messages"], tokens)
        return {
            "prompt_tokens": tokens,
            "prompt_tokens_details": {"cached_tokens": cached},
            "completion_tokens": 100,
            "total_tokens": tokens + 100,
        }

    def tokens(self, request: Mapping[str, Any]) -> int:
        """Tokens of a request: every text in it, what a message and a call cost beside, and the tools as JSON."""
        tools = sum(
            CALL_OVERHEAD + self._count(json.dumps(one["function"])) for one in request.get("tools", ())
        )
        return tools + sum(map(self._message, request["messages"])) + REPLY_OVERHEAD

    def summary(self) -> dict[str, float]:
        """The sums so far.

        `tokens`, `cached` and `cost` (in uncached tokens) of all requests, `replay_tokens` and `replay_cost` of the
        same work replayed in full, `over`: requests above the bound, `opening`: tokens of the first
        request, `turn`: of a turn of work, `share` of the bytes that repeat the previous
        request's prefix, `median_share` of a request's.
        """
        sums = self._sums
        return {
            **sums,
            "opening": self._opening,
            "turn": self._turns / max(1, self._worked),
            "replay_tokens": self._replay["tokens"],
            "replay_cost": self._replay["cost"],
            # The first request has none before it that it could repeat.
            "share": sums["repeated"] / max(1, sums["bytes"] - self._first_bytes),
            "median_share": median(self._shares[1:] or [0.0]),
        }

    def _replayed(self, messages: list[Mapping[str, Any]], tokens: int) -> None:
        """What this request would have been if nothing were ever left out: the first one, and all turns since."""
        if not self._opening:
            self._opening, self._first_bytes = tokens, len(self._previous)
        turn = _last_turn(messages)
        if turn and turn[0]["tool_calls"][0]["id"] != self._newest:
            self._newest = turn[0]["tool_calls"][0]["id"]
            self._turns += sum(map(self._message, turn))
            self._worked += 1
        if _is_prompt(messages):
            return  # It would not have been sent.
        whole = self._opening + self._turns
        self._replay["tokens"] += whole
        self._replay["cost"] += whole - (1 - CACHED_PRICE) * self._replay["previous"]
        self._replay["previous"] = whole

    def _message(self, message: Mapping[str, Any]) -> int:
        texts: list[str] = [message.get("content") or "", message.get("tool_call_id") or ""]
        calls = message.get("tool_calls") or ()
        for call in calls:
            texts += [call["id"], call["function"]["name"], call["function"]["arguments"]]
        boxes = len(calls) + int(message["role"] == "tool")
        return MESSAGE_OVERHEAD + CALL_OVERHEAD * boxes + sum(map(self._count, texts))


def repeated_prefix(before: bytes, after: bytes) -> int:
    """Bytes at the beginning of `after` that are also those at the beginning of `before`."""
    low, high = 0, min(len(before), len(after))
    while low < high:
        middle = (low + high + 1) // 2
        if before[low:middle] == after[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def _last_turn(messages: list[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    """The last reply and its results; nothing where it only saved, or where no turn is there yet."""
    replies = [n for n, message in enumerate(messages) if message["role"] == "assistant"]
    if not replies:
        return ()
    reply, *rest = messages[replies[-1] :]
    if any(call["function"]["name"] == SAVING for call in reply.get("tool_calls") or ()):
        return ()
    return (reply, *(message for message in rest if message["role"] == "tool"))


def _is_prompt(messages: list[Mapping[str, Any]]) -> bool:
    return messages[-1]["role"] == "user" and any(message["role"] == "tool" for message in messages)
