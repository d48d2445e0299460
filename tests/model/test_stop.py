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


ALARM_ROWS = {
    **{word: stop for word, stop in ROWS.items() if stop not in (S.END_TURN, S.TOOL_USE, S.MISSING)},
    # Anthropic and OpenAI's Responses
    "max_tokens": S.MAX_TOKENS,
    "compaction": S.PAUSE,
    "refusal": S.REFUSAL,
    "max_output_tokens": S.MAX_TOKENS,
    "max_messages": S.MAX_TOKENS,
    "failed": S.PROVIDER_ERROR,
    # Gemini
    "safety": S.CONTENT_FILTER,
    "recitation": S.CONTENT_FILTER,
    "language": S.CONTENT_FILTER,
    "blocklist": S.CONTENT_FILTER,
    "prohibited_content": S.CONTENT_FILTER,
    "spii": S.CONTENT_FILTER,
    "image_safety": S.CONTENT_FILTER,
    "image_prohibited_content": S.CONTENT_FILTER,
    "image_recitation": S.CONTENT_FILTER,
    "escalation": S.CONTENT_FILTER,
    "model_armor": S.CONTENT_FILTER,
    "malformed_function_call": S.MALFORMED_TOOL_CALL,
    "unexpected_tool_call": S.MALFORMED_TOOL_CALL,
    "too_many_tool_calls": S.PROVIDER_ERROR,
    "malformed_response": S.PROVIDER_ERROR,
    "missing_thought_signature": S.PROVIDER_ERROR,
    "other": S.PROVIDER_ERROR,
    "image_other": S.PROVIDER_ERROR,
    "no_image": S.PROVIDER_ERROR,
    "pup_limited_disabled": S.PROVIDER_ERROR,
    "continuation": S.PAUSE,
    "finish_reason_unspecified": S.MISSING,
    # Bedrock
    "guardrail_intervened": S.CONTENT_FILTER,
    "content_filtered": S.CONTENT_FILTER,
    "malformed_tool_use": S.MALFORMED_TOOL_CALL,
    "malformed_model_output": S.PROVIDER_ERROR,
}


@pytest.mark.parametrize(("word", "stop"), ALARM_ROWS.items())
def test_each_word_behind_a_gateway_has_its_meaning(word: str, stop: StopReason) -> None:
    """Other providers' words are heard beside `stop`, in either case, and where a gateway lets them through."""
    assert {stop} == {
        read("stop", word),
        read("stop", word.upper()),
        read(word, None),
        read(word.upper(), None),
    }


def test_the_tables_hold_these_rows_and_no_other() -> None:
    """A row added to a table is added to the test."""
    assert (set(ROWS), set(ALARM_ROWS)) == (set(FINISH), set(ALARMS))


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
