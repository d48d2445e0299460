"""The texts that are compared: alike in everything but what they say."""

from __future__ import annotations

import pytest

from goalmode.context.phrases import completion_phrases
from goalmode.context.tokens import O200k
from goalmode.evals.wording import FINAL, LANGS, TOOL, Turn, wording

TURNS = [(lang, turn) for lang in LANGS for turn in wording(lang).turns]


@pytest.mark.parametrize(("lang", "turn"), TURNS)
def test_a_turn_has_as_many_tokens_in_both_wordings(lang: str, turn: Turn) -> None:
    """What differs behind them is what was said, not how much."""
    count = O200k().count

    assert count(turn.completion) == count(turn.progress)


@pytest.mark.parametrize(("lang", "turn"), TURNS)
def test_only_the_completion_wording_claims_completion(lang: str, turn: Turn) -> None:
    """Each claim is one that goalmode itself knows as such, and no control is."""
    assert completion_phrases(turn.completion) > 0
    assert completion_phrases(turn.progress) == 0


@pytest.mark.parametrize(("lang", "turn"), TURNS)
def test_no_turn_holds_a_word_that_is_chosen_between(lang: str, turn: Turn) -> None:
    """A word that stands in the history is likelier by itself."""
    for text in (turn.completion, turn.progress):
        assert not any(word in text.lower() for word in (TOOL, FINAL))


def test_the_languages_are_in_step() -> None:
    """The same goals in the same order, with the same files and commands; as many turns."""
    english, chinese = (wording(lang) for lang in LANGS)

    def shape(goals: object) -> list[tuple[object, ...]]:
        return [(g.id, g.deliverable, g.commands) for g in goals]  # type: ignore[attr-defined]

    assert shape(english.goals) == shape(chinese.goals)
    assert len(english.turns) == len(chinese.turns) == len(set(english.turns))
    assert len({goal.id for goal in english.goals}) == len(english.goals) == 12


@pytest.mark.parametrize("lang", LANGS)
def test_the_question_names_both_words_in_both_orders(lang: str) -> None:
    """Only the order differs: in the list of meanings, and where the words are named."""
    first, second = (wording(lang).question(tool_first=tool_first) for tool_first in (True, False))

    for question, words in ((first, [TOOL, FINAL]), (second, [FINAL, TOOL])):
        lines = question.splitlines()
        assert [line[:4] for line in lines[1:3]] == [word[:4] for word in words]
        assert lines[3].index(words[0]) < lines[3].index(words[1])
    assert sorted(first) == sorted(second)
