"""What the replies of all wire formats share while they arrive: bounds, counts, and the reading of odd values. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from goalmode.domain.messages import Reply, Usage
from goalmode.domain.signals import StopReason

MAX_CHARACTERS = 4 * 1024 * 1024
"""Of text, reasoning and arguments of one reply together."""
MAX_CALLS = 512
"""Of one reply; where a format has other items beside them, of all of these together."""

Estimate = Callable[[str], int]
"""Tokens of a text."""


class TooLarge(Exception):
    """The reply is larger than any honest one."""


class ErrorInside(Exception):
    """The answer began as a success and holds an error. `error` is the provider's object."""

    def __init__(self, error: object) -> None:
        self.error = error
        super().__init__(str(error))


class Assembly(Protocol):
    """One reply while it arrives."""

    began: bool
    """Whether anything of it has arrived."""

    @property
    def ended(self) -> bool:
        """Whether nothing more of it is to come, whatever the connection does."""
        ...

    @property
    def stop(self) -> StopReason:
        """The provider's word so far, before the content is looked at."""
        ...

    def absorb(self, value: object) -> None:
        """Take one parsed event of a stream, or a whole answer.

        Raises:
            TooLarge: beyond the bounds above. ErrorInside: it is an error.
        """
        ...

    def counted(self, estimate: Estimate, request_body: bytes) -> Usage:
        """What the reply cost: as reported, or as estimated where nothing usable was. Never zero."""
        ...

    def reply(self, *, used_ids: Iterable[str], usage: Usage, max_output: int) -> Reply:
        """The reply, its ending reconciled with its content."""
        ...


@dataclass(slots=True)
class Size:
    """How much of one reply has arrived."""

    characters: int = 0

    def add(self, parts: list[str], text: str) -> None:
        """Append `text` to `parts`.

        Raises:
            TooLarge: the reply is beyond its bound.
        """
        if text:
            parts.append(text)
            self.grow(len(text))

    def grow(self, characters: int) -> None:
        """So many more have arrived.

        Raises:
            TooLarge: the reply is beyond its bound.
        """
        self.characters += characters
        if self.characters > MAX_CHARACTERS:
            raise TooLarge(f"more than {MAX_CHARACTERS} characters")


def usage(
    *,
    prompt: int | None,
    completion: int | None,
    cached: int = 0,
    cache_write: int = 0,
    generated: str,
    estimate: Estimate,
    request_body: bytes,
) -> Usage:
    """Usage as reported; what was not, or cannot be, is estimated and flagged.

    Args:
        prompt: the whole prompt as reported, cache reads and writes included; None where it was not.
        generated: all text of the reply.
    """
    # A count of 0 for something that was there is no count.
    guess_input, guess_output = not prompt, completion is None or (completion == 0 and bool(generated))
    whole = max(1, estimate(request_body.decode())) if guess_input else prompt or 0
    return Usage(
        input=whole,
        cached=0 if guess_input else min(cached, whole),
        cache_write=0 if guess_input else min(cache_write, whole),
        output=estimate(generated) if guess_output else completion or 0,
        estimated=guess_input or guess_output,
    )


def count(value: object) -> int | None:
    """A number of tokens, None if it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def string(value: object) -> str:
    """A string, empty for anything else."""
    return value if isinstance(value, str) else ""


def dicts(value: object) -> list[dict[str, Any]]:
    """The objects in a list; empty for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
