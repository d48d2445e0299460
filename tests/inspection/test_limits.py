"""Limits in words, as `show` and the report tell them."""

from __future__ import annotations

from typing import Any

import pytest

from goalmode.inspection.limits import limits_told

NONE = dict.fromkeys(("turns", "wakeups", "tokens", "active_seconds", "deadline", "cost_micro"))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "none"),
        ({"turns": 1}, "1 turn"),
        ({"turns": 0, "wakeups": 1, "tokens": 200_000}, "0 turns, 1 wakeup, 200,000 tokens"),
        ({"active_seconds": 3_600.0}, "3,600 s of work"),
        ({"active_seconds": 0.5}, "0.5 s of work"),
        ({"deadline": "2030-01-01T18:00:00+00:00"}, "until 2030-01-01 18:00:00+00:00"),
        ({"cost_micro": 1_500_000}, "$1.50"),
    ],
)
def test_those_that_are_set_are_told(given: dict[str, Any], told: str) -> None:
    """Each in its own words; 0 is a limit, and what is not set is none."""
    assert limits_told({**NONE, **given}) == told
