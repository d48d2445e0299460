"""Numbers as pages show them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from goalmode.web.figures import Spend, count, span, until

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"),
        (0.4, "0 s"),
        (59.6, "1 min"),
        (61, "1 min 1 s"),
        (3600, "1 h"),
        (3661, "1 h 1 min"),
        (90_061, "1 d 1 h"),
        (86_400 * 400, "400 d"),
    ],
)
def test_spans_have_two_units_at_most(seconds: float, shown: str) -> None:
    """The largest two that there are."""
    assert span(seconds) == shown


@pytest.mark.parametrize(("number", "shown"), [(0, "0"), (999, "999"), (1_234_567, "1,234,567")])
def test_numbers_have_their_thousands_apart(number: int, shown: str) -> None:
    """Nobody counts digits."""
    assert count(number) == shown


@pytest.mark.parametrize(
    ("share", "state"), [(0, "fine"), (0.79, "fine"), (0.8, "near"), (0.99, "near"), (1, "reached")]
)
def test_a_limit_is_near_before_it_is_reached(share: float, state: str) -> None:
    """Said by a colour, and by the figures beside it."""
    assert Spend("turns", "1", "2", share).state == state


@pytest.mark.parametrize(("seconds", "shown"), [(None, ""), (-5, ""), (0, ""), (90, "1 min 30 s")])
def test_what_is_due_is_not_in_the_future(seconds: float | None, shown: str) -> None:
    """Nothing is "in 0 s"."""
    assert until(None if seconds is None else NOW + timedelta(seconds=seconds), NOW) == shown
    assert until((NOW + timedelta(seconds=90)).isoformat(), NOW) == "1 min 30 s"
