"""How a chat completion ended: the tables, and the comparison of word and content."""

from __future__ import annotations

import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goalmode.domain.signals import StopReason
from goalmode.model.wire.openai_stop import ALARMS, FINISH, read, reconcile

S = StopReason

ROWS = {
    "stop": S.END_TURN,
    "length": S.MAX_TOKENS,
    "tool_calls": S.TOOL_USE,
    "function_call": S.TOOL_USE,
    "content_filter": S.CONTENT_FILTER,
    "null": S.MISSING,
    "insufficient_system_resource": S.PROVIDER_ERROR,
    "sensitive": S.CONTENT_FILTER,
    "network_error": S.PROVIDER_ERROR,
    "model_context_window_exceeded": S.CONTEXT_OVERFLOW,
    "model_length": S.CONTEXT_OVERFLOW,
    "abort": S.CANCELLED,
    "cancelled": S.CANCELLED,
    "repetition": S.PROVIDER_ERROR,
    "time_limit": S.PROVIDER_ERROR,
    "error": S.PROVIDER_ERROR,
    "pause_turn": S.PAUSE,
}


@pytest.mark.parametrize(("word", "stop"), ROWS.items())
def test_each_finish_reason_has_its_meaning(word: str, stop: StopReason) -> None:
    """Every word that a server of this format uses is read as the table says."""
    assert stop == read(word, None)


def test_the_table_holds_these_rows_and_no_other() -> None:
    """A row added to the table is added to the test."""
    assert set(ROWS) == set(FINISH)


@pytest.mark.parametrize("word", [None, ""])
def test_no_word_is_missing(word: str | None) -> None:
    """A reply without a finish reason was cut."""
    assert read(word, None) is S.MISSING


@pytest.mark.parametrize("word", ["banana", "STOP", "end_turn", "eos", "Length "])
def test_an_unknown_word_fails_closed(word: str) -> None:
    """A word that is in no table is UNKNOWN, never an ordinary ending."""
    assert read(word, None) is S.UNKNOWN


@pytest.mark.parametrize(
    ("raw", "native", "stop"),
    [
        ("stop", "MALFORMED_FUNCTION_CALL", S.MALFORMED_TOOL_CALL),
        ("stop", "SAFETY", S.CONTENT_FILTER),
        ("stop", "refusal", S.REFUSAL),
        ("tool_calls", "max_tokens", S.MAX_TOKENS),
        ("length", "pause_turn", S.PAUSE),
        ("stop", "length", S.MAX_TOKENS),
        ("stop", "STOP", S.END_TURN),
        ("error", "stop", S.PROVIDER_ERROR),
        ("banana", "stop", S.UNKNOWN),
        (None, "stop", S.MISSING),
        ("stop", "banana", S.END_TURN),
        ("refusal", None, S.REFUSAL),
        ("max_tokens", None, S.MAX_TOKENS),
    ],
)
def test_a_native_word_is_heard_when_it_warns(raw: str | None, native: str | None, stop: StopReason) -> None:
    """What the server behind a gateway says counts when something went wrong, never when all is well."""
    assert stop == read(raw, native)


def test_alarms_never_mean_an_ordinary_ending() -> None:
    """No word of another provider can turn into END_TURN or TOOL_USE."""
    assert {S.END_TURN, S.TOOL_USE, S.STOP_SEQUENCE}.isdisjoint(ALARMS.values())


def _reconcile(
    stop: StopReason, calls: int = 0, refused: bool = False, output: int | None = 10
) -> StopReason:
    return reconcile(stop, calls=calls, refused=refused, output_tokens=output, max_output=100)


@pytest.mark.parametrize(
    ("found", "stop"),
    [
        (_reconcile(S.END_TURN, calls=1), S.TOOL_USE),
        (_reconcile(S.END_TURN), S.END_TURN),
        (_reconcile(S.TOOL_USE), S.MALFORMED_TOOL_CALL),
        (_reconcile(S.TOOL_USE, calls=2), S.TOOL_USE),
        (_reconcile(S.MAX_TOKENS, calls=2), S.MAX_TOKENS),
        (_reconcile(S.TOOL_USE, calls=1, output=100), S.MAX_TOKENS),
        (_reconcile(S.END_TURN, calls=1, output=100), S.MAX_TOKENS),
        (_reconcile(S.END_TURN, output=100), S.END_TURN),
        (_reconcile(S.TOOL_USE, calls=1, output=None), S.TOOL_USE),
        (_reconcile(S.END_TURN, refused=True), S.REFUSAL),
        (_reconcile(S.TOOL_USE, calls=1, refused=True), S.REFUSAL),
        (_reconcile(S.MISSING, refused=True), S.MISSING),
        (_reconcile(S.PAUSE), S.PAUSE),
        (_reconcile(S.PAUSE, calls=1), S.TOOL_USE),
        (_reconcile(S.UNKNOWN, calls=1), S.UNKNOWN),
        (_reconcile(S.CONTENT_FILTER, calls=1), S.CONTENT_FILTER),
    ],
)
def test_word_and_content_are_reconciled(found: StopReason, stop: StopReason) -> None:
    """Content decides where the word cannot be right (B84, B89, vllm#58228)."""
    assert stop == found


@given(
    st.one_of(st.none(), st.text(), st.sampled_from([*FINISH, *ALARMS])),
    st.one_of(st.none(), st.text(), st.sampled_from([*FINISH, *ALARMS])),
    st.integers(0, 3),
    st.booleans(),
    st.one_of(st.none(), st.integers(0, 200)),
)
def test_no_reply_without_calls_is_tool_use(
    raw: str | None, native: str | None, calls: int, refused: bool, output: int | None
) -> None:
    """Whatever words and content come together, TOOL_USE has calls, and END_TURN has none."""
    stop = reconcile(read(raw, native), calls=calls, refused=refused, output_tokens=output, max_output=100)

    assert calls or stop is not S.TOOL_USE
    assert not calls or stop is not S.END_TURN


def test_the_openai_sdk_knows_no_word_that_we_do_not() -> None:
    """The official client's Literal is covered by the table: a new value shows up here."""
    from openai.types.chat.chat_completion import Choice
    from openai.types.chat.chat_completion_chunk import Choice as ChunkChoice

    leaves = [
        leaf
        for choice in (Choice, ChunkChoice)
        for leaf in _flat(choice.model_fields["finish_reason"].annotation)
    ]
    words = {leaf for leaf in leaves if isinstance(leaf, str)}

    assert words
    assert words <= set(FINISH)


def _flat(annotation: typing.Any) -> list[typing.Any]:
    inner = typing.get_args(annotation)
    return [leaf for part in inner for leaf in _flat(part)] if inner else [annotation]
