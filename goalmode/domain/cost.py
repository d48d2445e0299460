"""What a model call costs: integer micro-dollars, rounded up per call, so that cheap calls never round to nothing."""

from __future__ import annotations

from dataclasses import dataclass

from goalmode.domain.messages import Usage

MICRO = 1_000_000
"""Micro-dollars of a dollar; also the tokens that a price is for."""


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
        return -(-total // MICRO)


def cost_of(price: Price | None, usage: Usage) -> int:
    """Micro-dollars of one call; 0 where there is no price."""
    return 0 if price is None else price.cost(usage)


def dollars(micro: int) -> str:
    """Micro-dollars as people write them: `$1.25`, and as many digits as a small sum needs."""
    text = f"{micro / MICRO:.6f}".rstrip("0")
    whole, _, digits = text.partition(".")
    return f"${whole}.{digits:0<2}"
