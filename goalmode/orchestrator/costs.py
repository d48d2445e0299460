"""A limit of money: how a user writes it, and that it holds only where the model has a price."""

from __future__ import annotations

import json

from goalmode.domain.budget import Limits
from goalmode.domain.cost import dollars, micro_dollars
from goalmode.domain.profile import ModelProfile
from goalmode.errors import BadInput


def parse_dollars(text: str, field: str) -> int:
    """Dollars as a user writes them (`2.50`, `$2.50`), in micro-dollars."""
    try:
        return micro_dollars(text.strip())
    except ValueError:
        expected = "dollars from 0, such as 2.50, with at most six digits after the point"
        raise BadInput(field, text, expected) from None


def refuse_unpriced(limits: Limits, profile: ModelProfile) -> None:
    """Nothing may be spent under a limit of money that cannot be counted.

    Raises:
        BadInput: the cost is limited, and the model has no price.
    """
    if limits.cost_micro is None or profile.price is not None:
        return
    table = f"[prices.{json.dumps(profile.name, ensure_ascii=False)}]"
    raise BadInput(
        "cost-budget",
        dollars(limits.cost_micro),
        f"{profile.name} has no price to count by; give it one in goalmode.toml: {table} with input and output, "
        "in dollars for a million tokens",
    )
