"""Asking one question: how a server can be asked, and what an answer is worth."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest

from goalmode.domain.clock import SystemClock
from goalmode.domain.messages import User
from goalmode.domain.profile import ModelProfile
from goalmode.errors import BadInput, ModelError
from goalmode.evals.measure import TOPS, Answer, Method, Open, Way, ask, chosen, find_way
from goalmode.testing import Stub, steps
from goalmode.testing.steps import Step
from goalmode.wiring import open_first_token
from tests.evals.builders import inclined, listed

QUESTION = (User("tool or final?"),)
SAMPLED = Way(Method.SAMPLES, 0, 4, 16)


def _with(script: Any, run: Callable[[Open], Any], **options: Any) -> Any:
    """What `run` makes of a provider, and the requests that it saw."""
    with Stub(script, **options) as stub:
        profile = ModelProfile("openai:m", "openai", "m", stub.base_url)

        def opened(top: int) -> Any:
            return open_first_token(profile, None, top=top, clock=SystemClock())

        async def main() -> Any:
            return await run(opened)

        made = anyio.run(main)
        assert stub.rejected == []
        return made, [seen.body for seen in stub.requests]


def _way(script: Any, wanted: Method | None = None, **options: Any) -> tuple[Way, list[Any]]:
    return _with(  # type: ignore[no-any-return]
        script, lambda opened: find_way(opened, TOPS, wanted, SAMPLED, QUESTION), **options
    )


def _answer(script: Sequence[Step], way: Way) -> Answer:
    async def run(opened: Open) -> Answer:
        model = opened(way.top)
        try:
            return await ask(model, QUESTION, way)
        finally:
            await model.aclose()

    return _with(script, run)[0]  # type: ignore[no-any-return]


def test_the_longest_list_that_the_server_gives_is_asked_for() -> None:
    """One that takes no more than 20 is asked for 20."""
    way, requests = _way(inclined)

    assert (way.method, way.top, way.samples) == (Method.LOGPROBS, 20, 1)
    assert [body["top_logprobs"] for body in requests] == [500, 20]


@pytest.mark.parametrize(
    "step", [steps.text("tool"), steps.status(400, {"error": {"message": "no logprobs"}})]
)
def test_a_server_without_log_probabilities_is_sampled(step: Step) -> None:
    """Whether it says so or tells none."""
    way, _ = _way([step], forever=True)

    assert way == SAMPLED


def test_a_server_without_log_probabilities_is_refused_where_they_are_wanted() -> None:
    """The line says what there is instead."""
    with pytest.raises(BadInput, match="samples: this server tells no log-probabilities"):
        _way([steps.text("tool")], Method.LOGPROBS, forever=True)


def test_samples_that_are_wanted_are_not_preceded_by_a_trial() -> None:
    """No request is spent on finding out what is not used."""
    assert _way([], Method.SAMPLES) == (SAMPLED, [])


def test_the_first_token_of_reasoning_is_no_answer() -> None:
    """A model that thinks first is sampled."""
    way, _ = _way([listed([("Hm", -0.1), ("tool", -3.0)], reasoning="Hm")], forever=True)

    assert way.method is Method.SAMPLES


@pytest.mark.parametrize("code", [401, 403])
def test_a_server_that_does_not_answer_at_all_is_told_as_it_is(code: int) -> None:
    """A wrong key has nothing to do with log-probabilities."""
    with pytest.raises(ModelError, match=str(code)):
        _way([steps.status(code, {"error": {"message": "no"}})])


def test_a_log_probability_answer() -> None:
    """Its margin is the difference of the two."""
    answer = _answer(
        [listed([("final", -1.0), ("tool", -3.0)], usage=steps.usage(30, 4, 20))],
        Way(Method.LOGPROBS, 5, 1, 4),
    )

    assert (answer.tool, answer.final, answer.bound) == (-3.0, -1.0, "")
    assert answer.margin(Method.LOGPROBS) == -2.0
    assert (answer.usage.input, answer.usage.cached, answer.usage.output) == (30, 20, 4)


def test_an_answer_with_neither_word_has_no_margin() -> None:
    """Whether the list has neither or is missing this once."""
    for step in (listed([("The", -0.1)]), steps.text("The")):
        answer = _answer([step], Way(Method.LOGPROBS, 5, 1, 4))
        assert (answer.tool, answer.margin(Method.LOGPROBS)) == (None, None)


def test_sampled_answers_are_counted() -> None:
    """Three for tool, one for final, and one for neither: a share of 3/4 less 1/4."""
    said = [
        steps.text(word, usage=steps.usage(10, 1))
        for word in ("tool", "Final.", "**Tool**", "Perhaps", "tool: go on")
    ]
    answer = _answer(said, Way(Method.SAMPLES, 0, 5, 16))

    assert (answer.tool, answer.final, answer.other) == (3, 1, 1)
    assert answer.margin(Method.SAMPLES) == 0.5
    assert (answer.usage.input, answer.usage.output) == (50, 5)


def test_samples_of_neither_word_have_no_margin() -> None:
    """There is no share of nothing."""
    assert _answer([steps.text("Well")], Way(Method.SAMPLES, 0, 1, 16)).margin(Method.SAMPLES) is None


def test_a_model_that_thinks_until_its_allowance_is_spent_is_not_counted_as_silent() -> None:
    """The user is told which option gives it more."""
    spent = steps.text("", reasoning="Hm", finish="length", usage=steps.usage(10, 16))
    with pytest.raises(BadInput, match="answer-tokens: '16' is not valid: more tokens"):
        _answer([spent], Way(Method.SAMPLES, 0, 1, 16))


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("tool", "tool"),
        (" Final!", "final"),
        ("`tool`", "tool"),
        ("tools", ""),
        ("The tool", ""),
        ("", ""),
        ("最终", ""),
        ("tool，因为", "tool"),
        ("final表示结束", "final"),
        ("选择tool", ""),
        ("toolé", ""),
    ],
)
def test_an_answer_is_its_first_word(text: str, word: str) -> None:
    """Whatever its dress."""
    assert chosen(text) == word


@pytest.mark.parametrize(("share", "counts"), [(0.011, True), (0.009, False)])
def test_what_is_left_beside_another_answer_does_not_count(share: float, counts: bool) -> None:
    """A hundredth for both words together is the least."""
    answer = Answer(math.log(share * 0.75), math.log(share * 0.25))

    assert answer.margin(Method.LOGPROBS) == (pytest.approx(math.log(3)) if counts else None)


def test_equal_probabilities_have_a_margin_of_nothing() -> None:
    """Which is no choice."""
    half = math.log(0.5)

    assert Answer(half, half).margin(Method.LOGPROBS) == 0
