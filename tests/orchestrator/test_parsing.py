"""Numbers, spans and times as users write them, and limits that are raised."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goalmode.domain.budget import Limits
from goalmode.errors import BadInput
from goalmode.orchestrator.goals import (
    parse_count,
    parse_deadline,
    parse_seconds,
    raised,
)
from goalmode.state.store import Store
from goalmode.testing import ManualClock


def test_limits_are_set_or_added_to(store: Store, workspace: Path) -> None:
    """`N` sets, `+N` adds; adding to no limit is refused; other limits stay."""
    limits = Limits(turns=5, active_seconds=60.0)

    assert raised(limits, {"turns": "+3", "tokens": "2k"}) == Limits(
        turns=8, tokens=2_000, active_seconds=60.0
    )
    assert raised(limits, {"turns": "3", "active_seconds": "+1m"}) == Limits(turns=3, active_seconds=120.0)
    with pytest.raises(BadInput, match="nothing can be added"):
        raised(limits, {"tokens": "+5"})
    with pytest.raises(BadInput, match="turn-budget: '-5'"):
        raised(limits, {"turns": "-5"})
    with pytest.raises(BadInput, match="time-budget: '5x'"):
        raised(limits, {"active_seconds": "5x"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0), ("500", 500), ("200k", 200_000), ("2M", 2_000_000), (" 1_000 ", 1_000), ("1,000", 1_000)],
)
def test_counts_as_users_write_them(text: str, expected: int) -> None:
    """Plain, with separators, with k or m."""
    assert parse_count(text, "turns") == expected


@pytest.mark.parametrize(
    "text", ["", "k", "-1", "+1", "1.5", "1e3", "ten", "５", "0x10", "9" * 16, "1 000 k k"]
)
def test_what_is_no_count_is_refused(text: str) -> None:
    """Never guessed at."""
    with pytest.raises(BadInput, match="turns"):
        parse_count(text, "turns")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("90", 90), ("90s", 90), ("15m", 900), ("3h", 10_800), ("1d", 86_400), ("0.5h", 1_800), ("0", 0)],
)
def test_time_spans_as_users_write_them(text: str, expected: float) -> None:
    """Seconds, or with a unit."""
    assert parse_seconds(text, "time") == expected


@pytest.mark.parametrize("text", ["", "h", "-1h", "nan", "inf", "1e400", "3 hours", "1w", ".", "5hh"])
def test_what_is_no_time_span_is_refused(text: str) -> None:
    """Never guessed at."""
    with pytest.raises(BadInput, match="time"):
        parse_seconds(text, "time")


def test_deadlines_as_users_write_them(clock: ManualClock) -> None:
    """An ISO time in the future; without an offset it is local."""
    assert parse_deadline("2035-01-31T18:00+01:00", "deadline", clock.now()).utcoffset() == timedelta(hours=1)
    assert parse_deadline("2035-01-31", "deadline", clock.now()).tzinfo is not None


@pytest.mark.parametrize(
    "bad", ["tomorrow", "", "2001-01-01", "2035-13-01", "0001-01-01", "0001-01-01T00:00+14:00"]
)
def test_what_is_no_deadline_is_refused(clock: ManualClock, bad: str) -> None:
    with pytest.raises(BadInput, match="deadline"):
        parse_deadline(bad, "deadline", clock.now())


@given(st.text(max_size=12))
def test_no_text_breaks_the_parsers(text: str) -> None:
    """Whatever is typed, there is a number from 0 or a refusal."""
    for parse in (parse_count, parse_seconds):
        with suppress(BadInput):
            assert parse(text, "field") >= 0
