"""How long a goal that could not be woken is left alone."""

from __future__ import annotations

from goalmode.scheduler.patience import FIRST_SECONDS, LONGEST_SECONDS, Patience


def test_each_time_it_is_twice_as_long_up_to_a_bound() -> None:
    """It is passed over until then, and not a moment longer."""
    patience, now, seen = Patience(), 100.0, []
    for _ in range(9):
        patience.pass_over(1, "no model", now)
        seconds = next(s for s in (5, 10, 20, 40, 80, 160, 300) if 1 not in patience.passed_over(now + s))
        assert 1 in patience.passed_over(now + seconds - 0.001)
        seen.append(seconds)
        now += seconds

    assert seen == [5, 10, 20, 40, 80, 160, 300, 300, 300]
    assert (seen[0], seen[-1]) == (FIRST_SECONDS, LONGEST_SECONDS)


def test_a_cause_is_new_once() -> None:
    """Until another one comes, or the goal was woken in between; goals do not share causes."""
    patience = Patience()

    told = [patience.pass_over(1, cause, 0) for cause in ("a", "a", "b", "a")]
    assert told == [True, False, True, True]
    assert patience.pass_over(2, "a", 0)
    patience.forget(1)
    assert patience.passed_over(0) == {2}
    assert patience.pass_over(1, "a", 0)
    patience.forget(3)
