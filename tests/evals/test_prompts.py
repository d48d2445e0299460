"""What is sent: goalmode's own contexts, alike but for what is compared."""

from __future__ import annotations

from itertools import groupby

import pytest

from goalmode.context.phrases import completion_phrases
from goalmode.domain.messages import Assistant, User
from goalmode.evals.design import QUICK_GOALS, QUICK_TURNS, TURNS, Cell, Condition, Design
from goalmode.evals.pollution import plan
from goalmode.evals.prompts import Prompt, TooLong
from tests.evals.builders import cell, renderer


def _replies(prompt: Prompt) -> list[str]:
    return [message.text for message in prompt.messages if isinstance(message, Assistant)]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("turns", [1, 5, 20, 60])
def test_a_replay_and_its_control_differ_in_the_replies_alone(lang: str, turns: int) -> None:
    """As many turns, as many tokens, and the same words from the user."""
    a, c = (renderer().prompt(cell(condition, turns, lang)) for condition in "AC")

    assert a.tokens == c.tokens
    assert len(_replies(a)) == len(_replies(c)) == turns
    assert all(map(completion_phrases, _replies(a)))
    assert not any(map(completion_phrases, _replies(c)))
    assert [m for m in a.messages if isinstance(m, User)] == [m for m in c.messages if isinstance(m, User)]


def test_the_rebuilt_context_holds_no_claim() -> None:
    """The last summary that was saved claims completion: its wording is withheld, what is pending is shown."""
    rebuilt = renderer().prompt(cell("B", 20))
    text = "\n".join(message.text for message in rebuilt.messages[1:])

    assert completion_phrases(text) == 0
    assert "[unverified claim]" in text
    assert "W2" in text
    assert _replies(rebuilt) == []


def test_neither_is_the_goal_alone() -> None:
    """The same prompt whatever stands in the other contexts, and shorter than any of them."""
    neither = renderer().prompt(cell("N", 0))

    assert len(neither.messages) == 2
    assert neither.tokens < min(renderer().prompt(cell(c, 1)).tokens for c in "ABC")


def test_the_order_of_the_alternatives_is_all_that_differs_between_the_orders() -> None:
    """The same tokens in another order."""
    first, second = (renderer().prompt(cell(tool_first=tool_first)) for tool_first in (True, False))

    assert first.messages[:-1] == second.messages[:-1]
    assert sorted(first.messages[-1].text) == sorted(second.messages[-1].text)
    assert first.digest != second.digest


def test_goals_begin_behind_different_sentences() -> None:
    """A sentence alone would be the whole of one replayed turn."""
    first = {
        _replies(renderer().prompt(cell("A", 1, goal=goal)))[0] for goal in ("survey", "tides", "parser")
    }

    assert len(first) == 3


@pytest.mark.parametrize(("window", "fits"), [(8_000, True), (2_900, False)])
def test_turns_that_the_window_does_not_hold_are_too_long(window: int, fits: bool) -> None:
    """They are never cut in silence: fewer turns would be another question."""
    made = renderer(window=window, max_output=64, context_tokens=1_200)
    if fits:
        assert len(_replies(made.prompt(cell("A", 60)))) == 60
    else:
        with pytest.raises(TooLong, match="60 turns do not fit into its window of 2900 tokens"):
            made.prompt(cell("A", 60))


def test_the_plan_says_what_is_left_out() -> None:
    """Short histories are still asked about."""
    made = plan(
        Design(turns=(1, 60), langs=("en",), goals=1),
        renderer(window=2_900, max_output=64, context_tokens=1_200),
    )

    assert {c.block for c in made.too_long} == {"A60 en", "C60 en"}
    assert {c.block for c, _ in made.asked} == {"N0 en", "B1 en", "B60 en", "A1 en", "C1 en"}


def test_every_cell_is_asked_once_and_quick_asks_some_of_them() -> None:
    """The quick answers count for the whole evaluation too."""
    whole, quick = list(Design().cells()), list(Design(turns=QUICK_TURNS, goals=QUICK_GOALS).cells())

    # 2 languages, 12 goals, 2 orders; N once, B for each number of turns, A and C for each but 0.
    assert len(whole) == 2 * 12 * 2 * (1 + len(TURNS) + 2 * (len(TURNS) - 1)) == len({c.key for c in whole})
    assert set(quick) < set(whole)
    assert not any(c.turns == 0 for c in whole if c.condition in (Condition.REPLAY, Condition.CONTROL))


def test_cells_with_the_same_beginning_follow_each_other() -> None:
    """A server with one prefix cache reads each history a few times, not once for every goal."""

    def beginning(c: Cell) -> object:
        return renderer_.prompt(c).messages[:-1]

    renderer_ = renderer()
    cells = [c for c in Design(turns=(1,), langs=("en",)).cells() if c.condition is Condition.REPLAY]

    assert len(list(groupby(cells, beginning))) == 3
