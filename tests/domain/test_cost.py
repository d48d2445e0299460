"""Money: exact, rounded up per call, and a limit of it that holds to the micro-dollar."""

from __future__ import annotations

from datetime import UTC, datetime
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
    longest_answer,
    next_call,
    reached,
    used_now,
)
from goalmode.domain.cost import MAX_MICRO, Price, cost_of, dollars, micro_dollars
from goalmode.domain.messages import Usage

START = datetime(2026, 1, 1, tzinfo=UTC)

MINI = Price(input=250_000, cached=25_000, output=2_000_000, cache_write=250_000)
"""0.25, 0.025 and 2 dollars for a million tokens."""

FREE = Price(0, 0, 0, 0)


def verdict(limits: Limits, spent: Spent | None = None, **changes: Any) -> Verdict:
    values: dict[str, Any] = {
        "created_at": START,
        "input_tokens": 10_000,
        "cached_tokens": 0,
        "max_output": 4_000,
        "price": MINI,
        **changes,
    }
    return next_call(limits, spent or Spent(), START, **values)


@pytest.mark.parametrize(
    ("text", "micro"),
    [
        ("2.50", 2_500_000),
        ("$2.5", 2_500_000),
        ("0", 0),
        (".5", 500_000),
        ("3", 3_000_000),
        ("0.000001", 1),
        ("1.0000000", 1_000_000),
        ("2.5e-1", 250_000),
        ("1000000000", MAX_MICRO),
    ],
)
def test_dollars_are_read_exactly(text: str, micro: int) -> None:
    """To the micro-dollar, whatever a float would make of them."""
    assert micro_dollars(text) == micro


@pytest.mark.parametrize(
    "text",
    ["", "$", "-1", "+1", "0.0000001", "1.0000001", "2,50", "1,000", "1e999", "nan", "inf", "٣", "1_0", "2.50 USD",
     "1000000000.000001", "$$1", " 1", "0." + "0" * 60 + "1"],
)  # fmt: skip
def test_what_is_no_sum_is_refused(text: str) -> None:
    """No number, a negative one, one that is finer than a micro-dollar, or one beyond all sense."""
    with pytest.raises(ValueError):
        micro_dollars(text)


@pytest.mark.parametrize(
    ("micro", "shown"),
    [(0, "$0.00"), (1, "$0.000001"), (2_500_000, "$2.50"), (1_250_000, "$1.25"), (12_345_600, "$12.3456"),
     (MAX_MICRO - 1, "$999999999.999999")],
)  # fmt: skip
def test_dollars_are_shown_whole(micro: int, shown: str) -> None:
    """No digit is lost, and there are two at least; what is shown can be given again."""
    assert dollars(micro) == shown
    assert micro_dollars(shown) == micro


@pytest.mark.parametrize(
    ("usage", "micro"),
    [
        (Usage(), 0),
        (Usage(input=1), 1),
        (Usage(input=4), 1),
        (Usage(input=5), 2),
        (Usage(input=1_000_000, output=1_000_000), 2_250_000),
        (Usage(input=10_000, cached=8_000, output=500), 500 + 200 + 1_000),
    ],
)
def test_a_call_costs_its_tokens_rounded_up(usage: Usage, micro: int) -> None:
    """Input is the whole prompt: what was cached is a part of it, and cheaper."""
    assert cost_of(MINI, usage) == micro


def test_cache_writes_have_their_own_price() -> None:
    """They are a part of the input, and are not charged twice."""
    price = Price(input=1_000_000, cached=100_000, output=5_000_000, cache_write=1_250_000)

    assert cost_of(price, Usage(input=1_000, cached=600, cache_write=300, output=10)) == 100 + 60 + 375 + 50


def test_without_a_price_nothing_costs_anything() -> None:
    """And a price of zero is one."""
    usage = Usage(input=10**6, output=10**6)

    assert (cost_of(None, usage), cost_of(FREE, usage)) == (0, 0)


def test_an_absurd_count_is_bounded() -> None:
    """A provider that reports more tokens than there are does not make a number that no store holds."""
    assert cost_of(MINI, Usage(input=10**30)) == MAX_MICRO


@pytest.mark.parametrize(
    ("limit", "used", "hit"),
    [(0, 0, True), (1, 0, False), (2_500_000, 2_499_999, False), (2_500_000, 2_500_000, True), (5, 6, True)],
)
def test_a_limit_is_reached_exactly_at_it(limit: int, used: int, hit: bool) -> None:
    """B25: zero is zero, and the last micro-dollar is the limit's."""
    found = reached(Limits(cost_micro=limit), Spent(cost_micro=used), START)

    assert (found is not None) is hit
    if found is not None:
        assert found == LimitHit("cost", dollars(limit), dollars(used))
        assert str(found) == f"cost limit {dollars(limit)}, used {dollars(used)}"


PROMPT = 2_500
"""Micro-dollars of a prompt of 10,000 tokens."""

LEAST = 512
"""And of the shortest answer that is worth a call."""

ANSWER_READ = 64
"""And of reading that answer again."""


@pytest.mark.parametrize(
    ("left", "expected"),
    [
        (PROMPT + LEAST - 1, Affordable.NOTHING),
        (PROMPT + LEAST, Affordable.WRAP_UP),
        (2 * (PROMPT + LEAST) + ANSWER_READ, Affordable.WRAP_UP),
        (2 * (PROMPT + LEAST) + ANSWER_READ + 1, Affordable.WORK),
    ],
)
def test_work_leaves_room_for_a_wrap_up(left: int, expected: Affordable) -> None:
    """Of money too: it reads what this call reads, and its answer. One micro-dollar is lost in rounding."""
    found = verdict(Limits(cost_micro=9_000_000), Spent(cost_micro=9_000_000 - left))

    assert found.affordable is expected
    assert (found.hit is None) is (expected is Affordable.WORK)


def test_cached_input_is_cheap_but_not_free() -> None:
    """The gate reckons with what the last call read from the cache (B27)."""
    limits = Limits(cost_micro=1_500)

    assert verdict(limits).affordable is Affordable.NOTHING
    assert verdict(limits, cached_tokens=9_000).affordable is Affordable.WRAP_UP
    assert verdict(limits, cached_tokens=9_000).max_output == (1_500 - 250 - 225) // 2


def test_new_input_may_be_written_to_the_cache() -> None:
    """Where that is dearer, the gate reckons with it."""
    price = Price(input=250_000, cached=25_000, output=2_000_000, cache_write=500_000)

    assert verdict(Limits(cost_micro=PROMPT * 2 + LEAST - 1), price=price).affordable is Affordable.NOTHING
    assert verdict(Limits(cost_micro=PROMPT * 2 + LEAST), price=price).affordable is Affordable.WRAP_UP


def test_a_wrap_up_that_begins_anew_reads_everything_at_full_price() -> None:
    """What was cached helps this call and not the next, if the conversation begins anew before that one."""
    limits = Limits(cost_micro=3_500)
    cached = {"cached_tokens": 9_900}

    assert verdict(limits, **cached).affordable is Affordable.WORK
    assert verdict(limits, **cached, afresh_tokens=12_000).affordable is Affordable.WRAP_UP


def test_the_answer_shrinks_to_what_the_money_allows() -> None:
    """And to what the tokens allow, whichever is less."""
    assert verdict(Limits(cost_micro=4_500)).max_output == 1_000
    assert verdict(Limits(cost_micro=4_500, tokens=10_300)).max_output == 300
    assert verdict(Limits(cost_micro=4_500, tokens=10_300)).hit == LimitHit("tokens", 10_300, 0)


def test_a_free_model_is_bound_by_no_sum() -> None:
    """Only a limit of zero stops it."""
    assert verdict(Limits(cost_micro=1), price=FREE) == Verdict(Affordable.WORK, 4_000)
    assert verdict(Limits(cost_micro=0), price=FREE).affordable is Affordable.NOTHING


def test_a_limit_that_cannot_be_counted_is_not_unlimited() -> None:
    """A price that is gone while a goal runs affords nothing; it is not read as free."""
    found = verdict(Limits(cost_micro=10**9), price=None)

    assert found.affordable is Affordable.NOTHING
    assert "its model has no price" in str(found.hit)


def test_what_a_wrap_up_used_is_told_as_money() -> None:
    """The same limit, with what is spent afterwards."""
    hit = used_now(LimitHit("cost", "$2.50", "$2.31"), Spent(cost_micro=2_480_001), START)

    assert hit == LimitHit("cost", "$2.50", "$2.480001")


def test_a_reservation_is_no_longer_than_the_money() -> None:
    """Nor is it negative where there is none."""

    def longest(limit: int) -> int:
        return longest_answer(Limits(cost_micro=limit), Spent(), MINI, input_tokens=10_000, max_output=4_000)

    assert [longest(limit) for limit in (0, PROMPT, PROMPT + 2, PROMPT + 20_000)] == [0, 0, 1, 4_000]


prices = st.builds(Price, *[st.integers(0, 20_000_000)] * 4)
tokens = st.integers(0, 200_000)


@given(
    limit=st.integers(0, 5_000_000),
    used=st.integers(0, 5_000_000),
    prompt=tokens,
    cached=tokens,
    afresh=tokens,
    price=prices,
    answer=st.integers(0, 10_000),
)
def test_what_is_allowed_can_be_paid(
    limit: int, used: int, prompt: int, cached: int, afresh: int, price: Price, answer: int
) -> None:
    """A call as it was reckoned with never costs more than is left; after work, its wrap-up can be paid too."""
    limits, cached = Limits(cost_micro=limit), min(cached, prompt)
    spent = Spent(cost_micro=used)
    reckoned = {"input_tokens": prompt, "cached_tokens": cached, "afresh_tokens": afresh, "price": price}
    found = verdict(limits, spent, **reckoned)
    if found.affordable is Affordable.NOTHING:
        return

    said = min(answer, found.max_output)
    later = spent.plus(Usage(prompt, cached, output=said), price)
    dearest = spent.plus(Usage(prompt, cached, prompt - cached, said), price)

    assert MIN_OUTPUT <= found.max_output <= 4_000
    assert max(later.cost_micro, dearest.cost_micro) <= limit
    if found.affordable is Affordable.WORK:
        anew = max(
            Usage(prompt + said, cached), Usage(afresh + said), key=lambda usage: cost_of(price, usage)
        )
        wrap_up = Usage(anew.input, anew.cached, output=MIN_OUTPUT)
        assert cost_of(price, wrap_up) <= limit - later.cost_micro


@given(
    limit=st.integers(0, 5_000_000),
    more=st.integers(0, 1_000_000),
    used=st.integers(0, 5_000_000),
    prompt=tokens,
    price=prices,
)
def test_more_money_never_allows_less(limit: int, more: int, used: int, prompt: int, price: Price) -> None:
    """A higher limit affords at least as much; so does the same one with less spent."""
    rank = [Affordable.NOTHING, Affordable.WRAP_UP, Affordable.WORK]

    def at(limit: int, used: int) -> Verdict:
        return verdict(Limits(cost_micro=limit), Spent(cost_micro=used), input_tokens=prompt, price=price)

    less, better = at(limit, used + more), at(limit + more, used)
    between = at(limit, used)

    assert rank.index(less.affordable) <= rank.index(between.affordable) <= rank.index(better.affordable)


@given(
    limits=st.builds(Limits, turns=st.none() | st.integers(0, 5), tokens=st.none() | st.integers(0, 100_000)),
    price=st.none() | prices,
    used=st.integers(0, 10**12),
    prompt=tokens,
)
def test_without_a_limit_of_money_a_price_changes_nothing(
    limits: Limits, price: Price | None, used: int, prompt: int
) -> None:
    """Whatever has been spent: None is unlimited."""
    spent = Spent(cost_micro=used)

    assert verdict(limits, spent, input_tokens=prompt, price=price) == verdict(
        limits, input_tokens=prompt, price=None
    )


@given(price=prices, calls=st.lists(st.builds(Usage, tokens, st.just(0), st.just(0), tokens), max_size=20))
def test_sums_of_calls_are_what_is_spent(price: Price, calls: list[Usage]) -> None:
    """Each call is rounded up by itself, and the total is their sum: nothing drifts."""
    spent = Spent()
    for usage in calls:
        spent = spent.plus(usage, price)

    assert spent.cost_micro == sum(cost_of(price, usage) for usage in calls)
    assert all(cost_of(price, usage) * 10**6 >= usage.output * price.output for usage in calls)
