"""What a context tells of time and limits."""

import pytest

from goalmode.context.budgets import budget_lines
from goalmode.context.render import package_prompts
from goalmode.domain.budget import Limits
from tests.context.builders import minimal


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        *((0, "0s"), (59.9, "59s"), (60, "1m"), (3_599, "59m"), (3_600, "1h 00m"), (86_399, "23h 59m")),
        *((86_400, "1d 00h 00m"), (10**15, "11574074074d 01h 46m")),
    ],
)
def test_time_is_told_in_its_largest_units(seconds: float, shown: str) -> None:
    """Whatever limit a program sets, also one that is longer than any calendar."""
    snapshot = minimal(limits=Limits(active_seconds=seconds))

    told = budget_lines(snapshot, package_prompts().words("en"), 5)

    assert f"Working time of the goal: 0s used of {shown}, {shown} left." in told
