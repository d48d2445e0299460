"""How an Anthropic message ended: the table, its drift from the official client, and word against content."""

from __future__ import annotations

import typing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goalmode.domain.messages import Reply, Usage
from goalmode.domain.signals import StopReason
from goalmode.model.wire.anthropic_reply import MessageAssembly
from goalmode.model.wire.anthropic_stop import STOPS, detail, read
from goalmode.model.wire.openai_stop import ALARMS

S = StopReason

ROWS = {
    "end_turn": S.END_TURN,
    "max_tokens": S.MAX_TOKENS,
    "stop_sequence": S.STOP_SEQUENCE,
    "tool_use": S.TOOL_USE,
    "pause_turn": S.PAUSE,
    "compaction": S.PAUSE,
    "refusal": S.REFUSAL,
    "model_context_window_exceeded": S.CONTEXT_OVERFLOW,
}


@pytest.mark.parametrize(("word", "stop"), ROWS.items())
def test_each_stop_reason_has_its_meaning(word: str, stop: StopReason) -> None:
    """Every word of the format is read as the table says."""
    assert read(word) is stop


def test_the_table_holds_these_rows_and_no_other() -> None:
    """A row added to the table is added to the test."""
    assert set(ROWS) == set(STOPS)


@pytest.mark.parametrize("word", [None, ""])
def test_no_word_is_missing(word: str | None) -> None:
    """A message without a stop reason was cut."""
    assert read(word) is S.MISSING


@pytest.mark.parametrize("word", ["banana", "END_TURN", "stop", "tool_calls", "end_turn "])
def test_an_unknown_word_fails_closed(word: str) -> None:
    """A word that is in no table is UNKNOWN, also another provider's word for an ordinary ending."""
    assert read(word) is S.UNKNOWN


@pytest.mark.parametrize(
    ("word", "stop"),
    [
        ("length", S.MAX_TOKENS),
        ("content_filter", S.CONTENT_FILTER),
        ("SAFETY", S.CONTENT_FILTER),
        ("guardrail_intervened", S.CONTENT_FILTER),
        ("malformed_tool_use", S.MALFORMED_TOOL_CALL),
        ("error", S.PROVIDER_ERROR),
        ("abort", S.CANCELLED),
    ],
)
def test_a_gateways_word_is_heard_when_it_warns(word: str, stop: StopReason) -> None:
    """What another provider calls a failure is that failure here too."""
    assert read(word) is stop


STOP_TYPES = [
    "anthropic.types.stop_reason.StopReason",
    "anthropic.types.beta.beta_stop_reason.BetaStopReason",
]


@pytest.mark.parametrize("name", STOP_TYPES)
def test_the_anthropic_sdk_knows_no_word_that_we_do_not(name: str) -> None:
    """The official client's Literals are covered by the table: a new value shows up here by its name."""
    module, _, literal = name.rpartition(".")
    words = typing.get_args(getattr(__import__(module, fromlist=[literal]), literal))

    assert words
    assert [word for word in words if word not in STOPS] == []


@pytest.mark.parametrize(
    ("details", "said"),
    [
        ({"type": "refusal", "category": "cyber", "explanation": "Not this."}, "cyber: Not this."),
        ({"type": "refusal", "category": "bio", "explanation": None}, "bio"),
        ({"type": "refusal", "category": None, "explanation": "Not this."}, "Not this."),
        ({"type": "refusal", "category": None}, ""),
        ({"category": 7, "explanation": []}, ""),
        ("cyber", ""),
        (None, ""),
    ],
)
def test_a_refusals_details_are_one_text(details: object, said: str) -> None:
    """Category and explanation are kept, whichever of them there is (B92)."""
    assert detail(details) == said


def ended(word: str | None, *, calls: int = 0, text: str = "", output: int | None = 10) -> Reply:
    content: list[dict[str, object]] = [{"type": "text", "text": text}] if text else []
    content += [{"type": "tool_use", "id": f"t{n}", "name": "shell", "input": {}} for n in range(calls)]
    made = MessageAssembly()
    made.absorb({"type": "message", "content": content, "stop_reason": word})
    usage = Usage(5, output=output or 0, estimated=output is None)
    return made.reply(used_ids=(), usage=usage, max_output=100)


@pytest.mark.parametrize(
    ("reply", "stop"),
    [
        (ended("end_turn"), S.END_TURN),
        (ended("end_turn", calls=1), S.TOOL_USE),
        (ended("stop_sequence", calls=1), S.TOOL_USE),
        (ended("tool_use"), S.MALFORMED_TOOL_CALL),
        (ended("tool_use", text="I will."), S.MALFORMED_TOOL_CALL),
        (ended("tool_use", calls=2), S.TOOL_USE),
        (ended("max_tokens", calls=1), S.MAX_TOKENS),
        (ended("tool_use", calls=1, output=100), S.MAX_TOKENS),
        (ended("end_turn", calls=1, output=101), S.MAX_TOKENS),
        (ended("end_turn", text="Done.", output=100), S.END_TURN),
        (ended("tool_use", calls=1, output=None), S.TOOL_USE),
        (ended("pause_turn", text="So far"), S.PAUSE),
        (ended("pause_turn", calls=1), S.TOOL_USE),
        (ended("refusal", calls=1), S.REFUSAL),
        (ended("model_context_window_exceeded", calls=1), S.CONTEXT_OVERFLOW),
        (ended("banana", calls=1), S.UNKNOWN),
        (ended(None, calls=1), S.MISSING),
    ],
)
def test_word_and_content_are_reconciled(reply: Reply, stop: StopReason) -> None:
    """Content decides where the word cannot be right; a limit wins over calls that look whole (B84, B89)."""
    assert reply.stop is stop


words = st.one_of(st.none(), st.text(), st.sampled_from([*STOPS, *ALARMS]))


@given(words, st.integers(0, 3), st.sampled_from(["", "text"]), st.one_of(st.none(), st.integers(0, 200)))
def test_no_reply_without_calls_is_tool_use(
    word: str | None, calls: int, text: str, output: int | None
) -> None:
    """Whatever comes together, TOOL_USE has calls, END_TURN has none, and the raw word is kept."""
    reply = ended(word, calls=calls, text=text, output=output)

    assert calls or reply.stop is not S.TOOL_USE
    assert not calls or reply.stop is not S.END_TURN
    assert len(reply.calls) == calls
