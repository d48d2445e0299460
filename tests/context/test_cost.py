"""Money as the model sees it: in dollars, in both languages."""

from __future__ import annotations

import pytest

from goalmode.context.budgets import budget_lines
from goalmode.context.render import package_prompts, render_prompt
from goalmode.domain.budget import Limits, Spent
from tests.context.builders import minimal


@pytest.mark.parametrize(
    ("lang", "line"),
    [
        ("en", "Cost of the goal: $2.60 used of $2.50, $0.00 left."),
        ("zh", "目标总费用：上限 $2.50，已用 $2.60，剩余 $0.00。"),
    ],
)
def test_what_is_left_is_never_negative(lang: str, line: str) -> None:
    """The last call may cost a little more than was left."""
    limits, spent = Limits(cost_micro=2_500_000), Spent(cost_micro=2_600_000)
    snapshot = minimal(lang=lang, limits=limits, spent=spent)

    assert line in budget_lines(snapshot, package_prompts().words(lang), 5)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_without_a_limit_no_money_is_told(lang: str) -> None:
    """Only limits are the model's business."""
    snapshot = minimal(lang=lang, spent=Spent(cost_micro=2_600_000))

    assert "$" not in "".join(budget_lines(snapshot, package_prompts().words(lang), 5))


@pytest.mark.parametrize(
    ("lang", "told"), [("en", "cost: $2.31 used of $2.50"), ("zh", "费用：上限 $2.50，已用 $2.31")]
)
def test_a_wrap_up_names_the_money(lang: str, told: str) -> None:
    """As the limit that makes it the last call."""
    assert told in render_prompt("wrap_up", lang, kind="cost", limit="$2.50", used="$2.31")
