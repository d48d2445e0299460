import socket

import pytest

from goalmode.context import tokens
from goalmode.context.tokens import (
    Remembered,
    UpperBound,
    counter,
    fits,
    message_tokens,
    request_tokens,
    tools_tokens,
)
from goalmode.domain.messages import Assistant, System, ToolCall, ToolResult, User
from goalmode.errors import ConfigError, GoalmodeError
from tests.context.builders import TOOLS

O200K = counter("o200k_base")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 0), ("hello world", 2), ("你好，世界", 3), ("<|endoftext|>", 7), ("\ud800", 1)],
)
def test_counts_are_those_of_o200k(text: str, expected: int) -> None:
    """Known texts have their known counts; special tokens in a text are ordinary text."""
    assert O200K.count(text) == expected


def test_pattern_is_tiktokens_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Text is split by the very pattern that tiktoken uses for o200k."""
    from tiktoken_ext import openai_public

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", lambda *a, **k: {})

    assert openai_public.o200k_base()["pat_str"] == tokens._PATTERN


def test_counting_needs_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """The vocabulary is loaded from the package alone."""

    def refuse(*args: object) -> None:
        raise AssertionError("network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    tokens._o200k.cache_clear()

    assert O200K.count("one two") == 2


def test_a_damaged_vocabulary_is_named() -> None:
    """A vocabulary with another hash, or one that cannot be unpacked, is refused by name."""
    import gzip

    with pytest.raises(GoalmodeError, match=r"o200k_base\.tiktoken\.gz is damaged: sha256"):
        tokens._ranks(gzip.compress(b"IQ== 0\n"))
    with pytest.raises(GoalmodeError, match="is damaged"):
        tokens._ranks(b"nothing packed")


def test_a_million_blanks_are_counted() -> None:
    """A run of blanks longer than tiktoken can take is counted in pieces."""
    assert O200K.count(" " * 1_000_100) > 0


def test_pieces_add_up_to_the_whole() -> None:
    """Counting in pieces differs from counting at once by less than one in a thousand, and loses no text."""
    text = "The tide rose 3.2 metres at 04:10.\n" * 3_000
    whole = len(tokens._o200k().encode_ordinary(text))

    assert "".join(tokens._chunks(text)) == text
    assert abs(O200K.count(text) - whole) <= whole / 1000


def test_unknown_encoding_counts_with_the_factor_rounded_up() -> None:
    """An empty encoding is o200k times the factor; a vocabulary that is not shipped is refused."""
    assert counter("", 1.3).count("hello world") == 3

    with pytest.raises(ConfigError, match="cl100k_base"):
        counter("cl100k_base")
    with pytest.raises(ConfigError, match="token_factor"):
        counter("", 0.0)


def test_bytes_are_an_upper_bound_and_need_no_vocabulary() -> None:
    """The upper bound is never below the count, and settles `fits` for short and for huge texts."""
    text = "你好 \U00020000 hello"

    class Never:
        factor = 1.0

        def count(self, text: str) -> int:
            raise AssertionError("counted")

    assert UpperBound().count(text) >= O200K.count(text)
    assert fits(Never(), text, len(text.encode())) is True
    assert fits(Never(), "x" * 10_000, 10) is False
    assert fits(O200K, "hello world", 2) is True
    assert fits(O200K, "hello world", 1) is False


def test_messages_cost_their_words_and_an_overhead() -> None:
    """Every kind of message costs more than its text, and a request its messages, tools and priming."""
    messages = (
        System("s"),
        User("hello world"),
        Assistant("", (ToolCall("c1", "shell", '{"command": "ls"}'),)),
        ToolResult("c1", "shell", "a"),
        Assistant("hi", extra={"reasoning": "long thoughts about it"}),
    )
    costs = [message_tokens(O200K, message) for message in messages]

    assert costs[:2] == [5, 6]
    assert min(costs) > 4
    assert request_tokens(O200K, messages, TOOLS) == sum(costs) + tools_tokens(O200K, TOOLS) + 3


def test_each_text_is_counted_once() -> None:
    """A remembering counter asks the one below it once a text."""
    asked: list[str] = []

    class Spy:
        factor = 1.0

        def count(self, text: str) -> int:
            asked.append(text)
            return 1

    remembered = Remembered(Spy())
    _ = [remembered.count("a"), remembered.count("b"), remembered.count("a")]

    assert asked == ["a", "b"]


def test_what_is_remembered_of_texts_is_little() -> None:
    """A counter that remembers stays small however many texts it is asked for, and its counts stay right."""
    remembered = Remembered(UpperBound())
    texts = [f"{number}" for number in range(tokens._REMEMBERED + 10)]

    assert [remembered.count(text) for text in texts] == [len(text) for text in texts]
    assert len(remembered._known) <= tokens._REMEMBERED
    assert remembered.count("\ud800") == 3


def test_a_counter_remembers_once() -> None:
    """One that remembers already is taken as it is, with all that it knows."""
    remembered = Remembered.of(O200K)

    assert Remembered.of(remembered) is remembered
    assert remembered.factor == O200K.factor


def test_tools_are_counted_anew_when_they_are_others() -> None:
    """Tokens of the tools are remembered for the very tools that were counted."""
    remembered = Remembered(O200K)

    for specs in (TOOLS, TOOLS, TOOLS[:1], (), TOOLS):
        assert remembered.tools_tokens(tuple(specs)) == tools_tokens(O200K, specs)
