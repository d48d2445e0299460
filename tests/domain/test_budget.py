"""Whether one more call is affordable: both sides of every limit, and that no verdict promises more than is left."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goalmode.domain.budget import (
    MIN_OUTPUT,
    Affordable,
    LimitHit,
    Limits,
    Spent,
    Verdict,
    next_call,
    reached,
)
from goalmode.domain.cost import Price
from goalmode.domain.messages import Usage

START = datetime(2026, 1, 1, tzinfo=UTC)


def verdict(limits: Limits, spent: Spent | None = None, **changes: Any) -> Verdict:
    values: dict[str, Any] = {
        "created_at": START,
        "input_tokens": 1_000,
        "cached_tokens": 0,
        "max_output": 4_000,
        **changes,
    }
    return next_call(limits, spent or Spent(), values.pop("now", START), **values)


@pytest.mark.parametrize(
    ("limits", "spent"),
    [
        (Limits(turns=3), Spent(turns=3)),
        (Limits(tokens=2_000), Spent(input_tokens=1_900, output_tokens=100)),
        (Limits(tokens=2_000), Spent(input_tokens=3_000, cached_input_tokens=1_100, output_tokens=100)),
        (Limits(active_seconds=60.0), Spent(active_seconds=60.0)),
        (Limits(deadline=START), Spent()),
        (Limits(turns=0), Spent()),
        (Limits(tokens=0), Spent()),
        (Limits(active_seconds=0.0), Spent()),
    ],
)
def test_a_limit_that_is_used_up_exactly_affords_nothing(limits: Limits, spent: Spent) -> None:
    """B25: a remainder of exactly 0, and a limit of 0, mean that no call is made; neither reads as unlimited."""
    found = verdict(limits, spent)

    assert (found.affordable, found.max_output) == (Affordable.NOTHING, 0)
    assert found.hit is not None


@pytest.mark.parametrize(
    ("limits", "spent"),
    [
        (Limits(turns=3), Spent(turns=2)),
        (Limits(tokens=2_000), Spent(input_tokens=1_899, output_tokens=100)),
        (Limits(active_seconds=60.0), Spent(active_seconds=59.9)),
        (Limits(deadline=START + timedelta(seconds=1)), Spent()),
    ],
)
def test_a_limit_is_not_reached_just_below_it(limits: Limits, spent: Spent) -> None:
    """One unit below its limit a goal is not out of budget."""
    assert reached(limits, spent, START) is None


def test_none_is_unlimited() -> None:
    """Without limits the whole allowance is affordable, whatever has been spent."""
    spent = Spent(turns=10**6, wakeups=10**4, input_tokens=10**12, active_seconds=1e9)

    assert Verdict(Affordable.WORK, 4_000) == verdict(Limits(), spent)


def test_the_last_turn_is_the_wrap_up() -> None:
    """Of a budget of N turns, N - 1 are work and the last one wraps up."""
    limits = Limits(turns=3)

    found = [verdict(limits, Spent(turns=n)).affordable for n in range(4)]

    assert found == [Affordable.WORK, Affordable.WORK, Affordable.WRAP_UP, Affordable.NOTHING]


def test_the_last_turn_of_the_last_wakeup_is_the_wrap_up() -> None:
    """Where the wakeup limit allows no further wakeup, the last turn of this one's quota wraps up."""
    limits, spent = Limits(wakeups=2), Spent(wakeups=2)

    found = [verdict(limits, spent, last_wakeup_turns_left=left) for left in (2, 1)]

    assert [v.affordable for v in found] == [Affordable.WORK, Affordable.WRAP_UP]
    assert LimitHit("wakeups", 2, 2) == found[1].hit
    assert Affordable.WORK is verdict(limits, spent, last_wakeup_turns_left=None).affordable


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        (1_000 + MIN_OUTPUT - 1, Affordable.NOTHING),
        (1_000 + MIN_OUTPUT, Affordable.WRAP_UP),
        (2_000 + 3 * MIN_OUTPUT - 1, Affordable.WRAP_UP),
        (2_000 + 3 * MIN_OUTPUT, Affordable.WORK),
    ],
)
def test_tokens_leave_room_for_a_wrap_up_after_work(left: int, expected: Affordable) -> None:
    """Work of 1,000 input tokens is affordable only if a wrap-up that reads it and its answer still is afterwards."""
    assert expected is verdict(Limits(tokens=50_000), Spent(input_tokens=50_000 - left)).affordable


def test_cached_input_of_the_last_call_is_not_charged_again() -> None:
    """B27: tokens are input - cached input + output in the gate too."""
    limits, spent = Limits(tokens=1_500), Spent()

    assert Affordable.WRAP_UP is verdict(limits, spent, input_tokens=1_200).affordable
    assert Affordable.WORK is verdict(limits, spent, input_tokens=1_200, cached_tokens=1_100).affordable


def test_the_allowance_shrinks_to_what_is_left() -> None:
    """A wrap-up may use all that is left beside its input, and no more."""
    found = verdict(Limits(tokens=2_000))

    assert Verdict(Affordable.WRAP_UP, 1_000, LimitHit("tokens", 2_000, 0)) == found


@pytest.mark.parametrize(
    ("limit", "used", "expected"),
    [
        (100.0, 89.9, Affordable.WORK),
        (100.0, 90.0, Affordable.WRAP_UP),
        (3_600.0, 3_539.0, Affordable.WORK),
        (3_600.0, 3_540.0, Affordable.WRAP_UP),
    ],
)
def test_time_wraps_up_with_a_tenth_or_a_minute_left(limit: float, used: float, expected: Affordable) -> None:
    """A time limit wraps up when 10 % of it is left, or 60 s of a long one; active time and deadline alike."""
    deadline = Limits(deadline=START + timedelta(seconds=limit))

    assert expected is verdict(Limits(active_seconds=limit), Spent(active_seconds=used)).affordable
    assert expected is verdict(deadline, now=START + timedelta(seconds=used)).affordable


def test_a_closed_laptop_uses_no_active_time() -> None:
    """B30: wall time says nothing about active time, and only a deadline cares about it."""
    limits, spent = Limits(active_seconds=60.0), Spent(active_seconds=2.0)

    assert Affordable.WORK is verdict(limits, spent, now=START + timedelta(hours=17)).affordable


def test_a_hit_names_limit_and_value() -> None:
    """The reason of an ending says which limit, its value and what was used."""
    assert str(LimitHit("active_seconds", 60, 61.5)) == "active seconds limit 60, used 61.5"


_some = st.none() | st.integers(0, 20_000)


@given(
    limit=_some,
    turns=st.none() | st.integers(0, 5),
    spent_input=st.integers(0, 20_000),
    spent_output=st.integers(0, 5_000),
    spent_turns=st.integers(0, 5),
    input_tokens=st.integers(0, 20_000),
    cached=st.integers(0, 20_000),
    max_output=st.integers(1, 10_000),
)
def test_no_verdict_promises_more_than_is_left(
    limit: int | None,
    turns: int | None,
    spent_input: int,
    spent_output: int,
    spent_turns: int,
    input_tokens: int,
    cached: int,
    max_output: int,
) -> None:
    """Whatever is affordable stays within the token limit, prompt and whole allowance together, and has a turn left."""
    spent = Spent(turns=spent_turns, input_tokens=spent_input, output_tokens=spent_output)
    limits = Limits(tokens=limit, turns=turns)

    found = verdict(limits, spent, input_tokens=input_tokens, cached_tokens=cached, max_output=max_output)

    if found.affordable is Affordable.NOTHING:
        assert (found.max_output, found.hit is not None) == (0, True)
        return
    assert 0 < found.max_output <= max_output
    assert turns is None or spent_turns < turns
    charge = max(0, input_tokens - cached)
    assert limit is None or spent.tokens + charge + found.max_output <= limit
    if limit is None and turns is None:
        assert Verdict(Affordable.WORK, max_output) == found
    if limit is not None and found.affordable is Affordable.WORK:
        # What the call reads, its answer, and a wrap-up that reads both and answers with the least allowance.
        assert spent.tokens + 2 * (charge + found.max_output) + MIN_OUTPUT <= limit


@given(
    limit=st.integers(1, 60),
    prompt=st.integers(1, 3_000),
    answer=st.integers(1, 2_000),
    cap=st.integers(256, 4_000),
)
def test_a_goal_never_spends_beyond_its_token_limit_and_always_ends(
    limit: int, prompt: int, answer: int, cap: int
) -> None:
    """Calls that use up to their whole allowance stay within the limit, and work leaves room for a wrap-up."""
    limits, spent, said = Limits(tokens=limit * 1_000), Spent(), []
    while True:
        found = verdict(limits, spent, input_tokens=prompt, max_output=cap)
        said.append(found.affordable)
        if found.affordable is not Affordable.WORK:
            break
        used = min(answer, found.max_output)
        spent = Spent(input_tokens=spent.input_tokens + prompt, output_tokens=spent.output_tokens + used)
        assert spent.tokens <= limit * 1_000

    assert Affordable.WORK not in said[-1:]
    if len(said) > 1 and prompt:
        # The conversation did not grow here, so the wrap-up that work left room for is still there.
        assert said[-1] is Affordable.WRAP_UP


@given(
    limit=st.integers(0, 60_000),
    input_tokens=st.integers(0, 10_000),
    cached=st.integers(0, 10_000),
    max_output=st.integers(256, 6_000),
    keep=st.integers(1, 4_000),
    price=st.none() | st.builds(Price, *[st.integers(0, 20_000_000)] * 4),
)
def test_settlement_is_affordable_behind_the_wrap_up(
    limit: int,
    input_tokens: int,
    cached: int,
    max_output: int,
    keep: int,
    price: Price | None,
) -> None:
    """Work that is affordable leaves the wrap-up and one call more, whatever of its allowance it uses, in tokens and
    in money. What cannot be left takes nothing away from the wrap-up itself."""
    limits = Limits(tokens=limit) if price is None else Limits(cost_micro=limit)
    asked = {"input_tokens": input_tokens, "cached_tokens": cached, "max_output": max_output}

    found = verdict(limits, price=price, keep_tokens=keep, **asked)

    plain = verdict(limits, price=price, **asked)
    assert (found.affordable is Affordable.NOTHING) == (plain.affordable is Affordable.NOTHING)
    if found.affordable is not Affordable.WORK:
        return
    spent = Spent().plus(_used(input_tokens, cached, found.max_output), price)
    cached = min(cached, input_tokens)
    again = input_tokens + found.max_output
    wrap_up = verdict(
        limits,
        spent,
        price=price,
        keep_tokens=keep,
        **{**asked, "input_tokens": again, "cached_tokens": cached},
    )
    assert wrap_up.affordable is not Affordable.NOTHING
    spent = spent.plus(_used(again, cached, wrap_up.max_output), price)
    again += wrap_up.max_output + keep
    last = verdict(limits, spent, price=price, input_tokens=again, cached_tokens=cached)
    assert last.affordable is not Affordable.NOTHING
    assert last.max_output >= MIN_OUTPUT


def _used(prompt: int, cached: int, output: int) -> Usage:
    return Usage(prompt, min(cached, prompt), 0, output)


def test_time_is_kept_for_settlement_too() -> None:
    """Where a call follows the wrap-up, that comes a second tenth, or a second minute, earlier."""
    limits = Limits(active_seconds=100.0)

    found = [
        verdict(limits, Spent(active_seconds=used), keep_tokens=keep).affordable
        for used, keep in ((80.0, 0), (79.9, 1), (80.0, 1))
    ]

    assert found == [Affordable.WORK, Affordable.WORK, Affordable.WRAP_UP]
