"""What is kept of a conversation that begins anew: whole turns, newest first, within their room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goalmode.context.cut import to_tokens
from goalmode.context.overflow.sawtooth import (
    Outgrown,
    complete_turns,
    context_share,
    kept_share,
    last_turns,
    shortened,
    work_window,
)
from goalmode.context.rebuild import rebuild
from goalmode.context.tokens import UpperBound, counter, message_tokens
from goalmode.domain.goal import ContextPolicy, GoalSettings
from goalmode.domain.messages import Assistant, Message, System, ToolCall, ToolResult, User
from goalmode.errors import ContextDoesNotFit
from goalmode.model.lint import lint
from goalmode.model.wire import openai_messages
from tests.context.builders import PROFILE, TOOLS, full, make_goal, minimal

BYTES = UpperBound()
COST = partial(message_tokens, BYTES)
O200K = counter("o200k_base")
CONTEXT: tuple[Message, ...] = (System("be good"), User("the state"))


def turn(name: str, *results: str, prose: str = "I look.") -> list[Message]:
    """A reply with a call for each result, and the results."""
    ids = [f"{name}{n}" for n in range(len(results))]
    calls = tuple(ToolCall(id_, "look", '{"page":1}') for id_ in ids)
    answers = [ToolResult(id_, "look", text) for id_, text in zip(ids, results, strict=True)]
    return [Assistant(prose, calls, {"thinking": "signed"}), *answers]


def kept(conversation: Sequence[Message], room: int) -> tuple[Message, ...]:
    return last_turns(conversation, room, COST, BYTES.count)


def size(messages: Sequence[Message]) -> int:
    return sum(map(COST, messages))


def ids(messages: Sequence[Message]) -> list[str]:
    return [call.id for m in messages if isinstance(m, Assistant) for call in m.calls]


words = st.text("ab …[]\n", max_size=400)
turns = st.lists(
    st.one_of(
        st.lists(words, max_size=4).map(lambda texts: ("turn", texts)),
        st.lists(words, min_size=1, max_size=3).map(lambda texts: ("unanswered", texts)),
        words.map(lambda text: ("prompt", [text])),
    ),
    max_size=12,
)


def conversation_of(kinds: Sequence[tuple[str, Sequence[str]]]) -> list[Message]:
    made: list[Message] = list(CONTEXT)
    for number, (kind, texts) in enumerate(kinds):
        match kind:
            case "turn":
                made += turn(f"t{number}_", *texts)
            case "unanswered":
                made += turn(f"t{number}_", *texts)[:-1]
            case _:
                made.append(User(texts[0]))
    return made


@given(turns, st.integers(0, 3_000))
def test_what_is_kept_is_valid_newest_and_within_its_room(
    kinds: list[tuple[str, list[str]]], room: int
) -> None:
    """Whatever the conversation: only complete turns, the newest of them without a gap, and never above the room."""
    conversation = conversation_of(kinds)
    messages = kept(conversation, room)

    assert size(messages) <= room
    complete = [reply for reply, _ in complete_turns(conversation)]
    replies = [m for m in messages if isinstance(m, Assistant)]
    assert replies == complete[len(complete) - len(replies) :]
    assert ids(messages) == [m.call_id for m in messages if isinstance(m, ToolResult)]
    assert lint(openai_messages.messages((*CONTEXT, *messages))) == []


def test_prose_and_signed_reasoning_are_left_out() -> None:
    """Of a turn stay the calls and their results; a reply without calls, and what was said to it, does not stay."""
    conversation = [
        *CONTEXT,
        *turn("a", "one"),
        Assistant("All done."),
        User("Go on."),
        *turn("b", "two", "three"),
    ]

    assert kept(conversation, 10_000) == (
        Assistant("", (ToolCall("a0", "look", '{"page":1}'),)),
        ToolResult("a0", "look", "one"),
        Assistant("", (ToolCall("b0", "look", '{"page":1}'), ToolCall("b1", "look", '{"page":1}'))),
        ToolResult("b0", "look", "two"),
        ToolResult("b1", "look", "three"),
    )


def test_a_prompt_that_no_reply_has_followed_stays() -> None:
    """What the host said last still has to be answered; the context itself is never taken for a prompt."""
    told = User("Do a substantive check.")

    assert kept([*CONTEXT, *turn("a", "one"), Assistant("Done."), told], 10_000)[-1] == told
    assert kept([*CONTEXT, Assistant("Done."), told], 10_000) == (told,)
    assert kept(CONTEXT, 10_000) == ()


def test_a_paused_or_cut_turn_is_never_half_kept() -> None:
    """A turn whose calls have not all their results is dropped whole."""
    paused = turn("b", "two", "three")[:2]

    assert ids(kept([*CONTEXT, *turn("a", "one"), *paused], 10_000)) == ["a0"]


def test_results_too_large_for_the_room_are_cut_and_told() -> None:
    """B64: ten huge results of one reply stay ten results: head and tail of each, with the size, in equal shares."""
    note = "[… cut here: the whole result is 200000 bytes, its middle is left out …]"
    whole = f"begin{'x' * 16_000}\n{note}\n{'y' * 8_000}end"
    conversation = [*CONTEXT, *turn("old", "one"), *turn("t", *[whole] * 9, "short")]

    messages = kept(conversation, 12_000)

    results = [m.text for m in messages if isinstance(m, ToolResult)]
    assert len(results) == 10
    assert results[-1] == "short"
    for text in results[:-1]:
        assert text.startswith("begin")
        assert text.endswith("end")
        assert "the whole result is 200000 bytes" in text
        assert "characters left out of 24" in text
    assert 10_000 < size(messages) <= 12_000


def test_a_turn_whose_calls_alone_are_too_large_is_left_out() -> None:
    """Arguments are not cut: such a turn is told of by the recent actions only."""
    huge = Assistant("", (ToolCall("w", "write_file", f'{{"content":"{"x" * 5_000}"}}'),))
    conversation = [*CONTEXT, *turn("a", "one"), huge, ToolResult("w", "write_file", "written")]

    assert kept(conversation, 2_000) == ()


def test_a_cut_text_costs_what_it_may() -> None:
    """Cutting to tokens ends within the cap for any text that is worth a cut, in any script."""
    for text in ("word " * 9_000, "潮汐报告" * 4_000, "{" * 20_000, "a\n" * 9_000):
        for cap in (60, 500, 3_000):
            assert O200K.count(to_tokens(text, cap, O200K.count, shortened)) <= cap


def test_the_work_window_is_bounded_by_the_models() -> None:
    """70 % of the model's window and at most 64,000 tokens; what a goal says wins, as far as a reply still fits."""
    small, large = replace(PROFILE, window=10_000), replace(PROFILE, window=1_000_000)

    assert work_window(GoalSettings(), small) == 7_000
    assert work_window(GoalSettings(), large) == 64_000
    assert work_window(GoalSettings(work_window=200_000), large) == 200_000
    assert work_window(GoalSettings(work_window=200_000), small) == 10_000 - 1_024
    assert work_window(GoalSettings(policy=ContextPolicy.REPLAY), small) is None


@pytest.mark.parametrize("window", [1_000, 6_000, 12_000, 64_000, 500_000])
def test_a_context_and_its_turns_leave_room_for_work(window: int) -> None:
    """However large the context, it and the kept turns fill at most seven eighths of the work window."""
    for context in range(0, context_share(window) + 1, max(1, window // 50)):
        assert context + kept_share(window, context) <= window * 7 // 8 + 1
        assert kept_share(window, context) <= window // 4


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_context_rendered_anew_is_the_state_and_the_last_turns(lang: str) -> None:
    """It begins like any other context, so that caches hold, says that the wakeup goes on, and ends with the turns."""
    first = rebuild(full(lang=lang), PROFILE, TOOLS, counter=O200K)
    outgrown = Outgrown((*first.messages, *turn("a", "one"), *turn("b", "two")), 20_000)

    anew = rebuild(full(lang=lang), PROFILE, TOOLS, counter=O200K, turns_left=7, outgrown=outgrown)

    assert anew.messages[0] == first.messages[0]
    assert anew.messages[1].text.startswith(first.messages[1].text[:400])
    assert ids(anew.messages) == ["a0", "b0"]
    assert "I look." not in anew.text
    assert (anew.budget, anew.sections[0].name) == (20_000, "objective")
    remark = anew.messages[1].text.rsplit("\n\n", 1)[-1]
    assert ("This wakeup goes on" in remark) if lang == "en" else ("本次唤醒仍在继续" in remark)
    assert [s.text for s in anew.sections if "7" in s.text and s.name == "time_and_budgets"]


def test_a_context_rendered_anew_counts_what_it_holds() -> None:
    """Its tokens are those of the whole request, and its hash is of exactly what the model sees."""
    outgrown = Outgrown((*CONTEXT, *turn("a", "word " * 3_000)), 6_000)

    anew = rebuild(minimal(), PROFILE, TOOLS, counter=O200K, outgrown=outgrown)
    alone = rebuild(minimal(), PROFILE, TOOLS, counter=O200K, outgrown=replace(outgrown, messages=CONTEXT))

    counted = sum(message_tokens(O200K, m) for m in anew.messages) - sum(
        message_tokens(O200K, m) for m in alone.messages
    )
    assert anew.tokens == alone.tokens + counted <= 6_000
    assert "characters left out" in anew.text


def test_closing_words_in_kept_calls_are_counted() -> None:
    """What the model wrote into its calls is its own wording too."""
    calls = (ToolCall("c", "update_working_checkpoint", '{"summary": "All tasks are done."}'),)
    outgrown = Outgrown((*CONTEXT, Assistant("", calls), ToolResult("c", "x", "saved")), 6_000)

    assert rebuild(minimal(), PROFILE, TOOLS, counter=O200K, outgrown=outgrown).completion_phrases == 1


def test_an_objective_larger_than_the_window_is_cut_or_refused() -> None:
    """It is shown head and tail; where not even that fits there is no context."""
    goal = make_goal(f"begin {'word ' * 30_000} end", work_window=6_000)
    snapshot = replace(minimal(), goal=goal)

    anew = rebuild(snapshot, PROFILE, TOOLS, counter=O200K, outgrown=Outgrown(CONTEXT, 6_000))

    assert anew.tokens <= context_share(6_000)
    assert "begin word" in anew.text
    assert "word  end" in anew.text
    with pytest.raises(ContextDoesNotFit):
        rebuild(snapshot, PROFILE, TOOLS, counter=O200K, outgrown=Outgrown(CONTEXT, 700))
