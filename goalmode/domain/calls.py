"""One tool call, from what a tool may do to what became of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from goalmode.domain.exits import Exit
from goalmode.domain.work import StatePatch


class Effect(StrEnum):
    """What a tool does. A successful READ or WRITE call is *substantive*; STATE and CONTROL calls are not."""

    READ = "read"
    WRITE = "write"
    STATE = "state"
    CONTROL = "control"


SUBSTANTIVE = frozenset({Effect.READ, Effect.WRITE})


class CallOutcome(StrEnum):
    """Every tool call gets exactly one."""

    SUCCESS = "success"
    FAILED = "failed"
    DENIED = "denied"
    INTERRUPTED = "interrupted"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class CacheUse:
    """What the wakeup's cache had for a call: the result that turn `turn` got, or nothing (None)."""

    turn: int | None = None

    @property
    def kind(self) -> str:
        """The event's name."""
        return "cache_miss" if self.turn is None else "cache_hit"


@dataclass(frozen=True, slots=True)
class CallRecord:
    """What became of one call of one reply.

    Attributes:
        position: in the reply, from 0.
        effect: None where the tool is unknown.
        shown: the result as the model sees it: redacted, cleaned, cut to head and tail.
        body: the result as stored: redacted, whole up to the store's cap.
        size: of the whole result in bytes, before any cut.
        brief: the call's subject in at most 200 characters: a command line, a path.
        arguments_sha, result_sha: by which equal calls and equal results are known; empty where nobody compares them.
        redactions: how many secrets were struck out.
        patch: a change of the work state that the call asks for.
        exit: an ending of the wakeup that the call asks for (`wait`, a tool that hands over to a person).
        cache: of a call that the wakeup's cache was asked for, else None.
    """

    position: int
    call_id: str
    tool: str
    effect: Effect | None
    outcome: CallOutcome
    shown: str
    body: str = ""
    size: int = 0
    exit_code: int | None = None
    milliseconds: int = 0
    brief: str = ""
    arguments_sha: str = ""
    result_sha: str = ""
    redactions: int = 0
    patch: StatePatch | None = None
    exit: Exit | None = None
    cache: CacheUse | None = None

    @property
    def substantive(self) -> bool:
        return self.outcome is CallOutcome.SUCCESS and self.effect in SUBSTANTIVE

    @property
    def shown_whole(self) -> bool:
        """Whether what the model sees is what is stored."""
        return self.body in ("", self.shown) and self.outcome is not CallOutcome.SKIPPED

    @property
    def cached(self) -> bool:
        """Whether the call did not run: an equal one's result was served."""
        return self.cache is not None and self.cache.turn is not None


def digest(text: str) -> str:
    """SHA-256 of `text`, in hexadecimal. Equal texts are known by it, sendable or not."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def arguments_digest(raw: str) -> str:
    """By what equal arguments are known: as values, in whatever order; as they are written where they are none."""
    return _remembered_digest(raw) if len(raw) <= REMEMBERED_LENGTH else _arguments_digest(raw)


REMEMBERED_LENGTH = 2_000
"""Characters of arguments whose digest is remembered: it is asked for four times a turn."""


def _arguments_digest(raw: str) -> str:
    try:
        value = json.loads(raw) if raw.strip() else {}
        return digest(json.dumps(value, sort_keys=True, separators=(",", ":")))
    except (ValueError, RecursionError):
        return digest(raw)


_remembered_digest = lru_cache(64)(_arguments_digest)
