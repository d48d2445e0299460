"""What a model call costs: integer micro-dollars, rounded up per call, so that cheap calls never round to nothing."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact

from goalmode.domain.messages import Usage

MICRO = 1_000_000
"""Micro-dollars of a dollar; also the tokens that a price is for."""

MAX_MICRO = 10**15
"""A thousand million dollars: no amount is larger, and sums of many still are numbers that a store holds."""

_AMOUNT = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,2})?")
_EXACT = Context(prec=50, traps=[Inexact])


@dataclass(frozen=True, slots=True)
class Price:
    """Micro-dollars for a million tokens: 2.50 dollars are 2_500_000.

    Attributes:
        input: of tokens that are not in the provider's cache.
        cached: of tokens read from it. cache_write: of tokens written to it.
    """

    input: int
    cached: int
    output: int
    cache_write: int

    def cost(self, usage: Usage) -> int:
        """Micro-dollars of one call, rounded up. `usage.input` is the whole prompt, cache reads and writes included."""
        fresh = max(0, usage.input - usage.cached - usage.cache_write)
        total = (
            fresh * self.input
            + usage.cached * self.cached
            + usage.cache_write * self.cache_write
            + usage.output * self.output
        )
        return min(-(-total // MICRO), MAX_MICRO)

    def at_most(self, usage: Usage) -> int:
        """Micro-dollars of a call that is not made yet: what it does not read from the cache may be written to it."""
        return Price(self.new, self.cached, self.output, self.new).cost(usage)

    @property
    def new(self) -> int:
        """The dearer of the ways in which a token is read that is not in the cache."""
        return max(self.input, self.cache_write)


def cost_of(price: Price | None, usage: Usage) -> int:
    """Micro-dollars of one call; 0 where there is no price."""
    return 0 if price is None else price.cost(usage)


def reserve_of(price: Price | None, usage: Usage) -> int:
    """Micro-dollars to reserve for a call that may use as much; 0 where there is no price."""
    return 0 if price is None else price.at_most(usage)


def micro_dollars(amount: str) -> int:
    """Dollars as people write them (`2.50`, `$2.50`), exactly, in micro-dollars.

    Raises:
        ValueError: it is no number from 0, is finer than a micro-dollar, or above `MAX_MICRO`.
    """
    plain = amount.removeprefix("$")
    if not _AMOUNT.fullmatch(plain):
        raise ValueError(amount)
    try:
        micro = _EXACT.multiply(Decimal(plain), Decimal(MICRO))
    except Inexact:
        raise ValueError(amount) from None
    if micro > MAX_MICRO or micro != int(micro):
        raise ValueError(amount)
    return int(micro)


def dollars(micro: int) -> str:
    """Micro-dollars as people write them: `$1.25`, and as many digits as a small sum needs."""
    digits = f"{micro % MICRO:06}".rstrip("0")
    return f"${micro // MICRO}.{digits:0<2}"
