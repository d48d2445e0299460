"""Text from outside, made safe to send and to show."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goalmode.domain.text import counted, head_tail, one_line, safe, same_name, sendable

_anything = st.text(st.characters())  # Lone surrogates included.


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain\n\tärger 文", "plain\n\tärger 文"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("a\rb", "a\\x0db"),
        ("\x9b2J", "\\x9b2J"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("abc\u202etxt.exe", "abc\\u202etxt.exe"),
        ("a\u2028b\ufeff", "a\\u2028b\\ufeff"),
        ("\x00\x7f", "\\x00\\x7f"),
        ("\ud800", "\\ud800"),
    ],
)
def test_safe_shows_what_could_move_a_cursor(text: str, expected: str) -> None:
    """B73: controls, bidirectional marks and OSC sequences become visible escapes; newline and tab stay."""
    assert expected == safe(text)


@given(_anything)
def test_safe_leaves_nothing_that_acts(text: str) -> None:
    """No control character but newline and tab, no format character that reorders, nothing unprintable by UTF-8."""
    shown = safe(text)

    assert not {c for c in shown if unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\t"}
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029")
    assert shown == safe(shown)
    shown.encode()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain \x1b 文 😀", "plain \x1b 文 😀"),
        ("a\x00b", "a␀b"),
        ("\ud83d\ude00", "😀"),
        ("x\ud800y", "x\ufffdy"),
    ],
)
def test_sendable_keeps_every_real_character(text: str, expected: str) -> None:
    """NUL and lone surrogates become visible; two escapes of one character are joined to it."""
    assert expected == sendable(text)


@given(_anything)
def test_sendable_is_accepted_everywhere(text: str) -> None:
    """What comes out encodes as UTF-8, holds no NUL, and comes out again unchanged."""
    sent = sendable(text)

    assert "\x00" not in sent
    assert sent == json.loads(json.dumps(sent, ensure_ascii=False).encode())
    assert sent == sendable(sent)


def test_one_line_is_one_line() -> None:
    """Newlines are shown, and a cut is marked within the limit."""
    assert one_line("a\nb\tc") == "a\\nb c"
    assert one_line("abcdefgh", 5) == "abcd…"
    assert one_line("abcde", 5) == "abcde"


@given(st.text(), st.integers(1, 60))
def test_head_tail_keeps_both_ends_and_says_what_is_gone(text: str, limit: int) -> None:
    """B59: an uncut text is itself; a cut one has its head, its tail and both sizes."""
    cut = head_tail(text, limit)

    if len(text) <= limit:
        assert text == cut
        return
    head = limit * 2 // 3
    assert cut.startswith(text[:head])
    assert cut.endswith(text[-(limit - head) :])
    assert f"{len(text) - limit} characters left out of {len(text)}" in cut


def test_names_are_equal_across_unicode_forms() -> None:
    """A composed and a decomposed name are the same; different names are not."""
    assert same_name("Bericht-ü.md", "Bericht-u\u0308.md")
    assert not same_name("a", "A")


@pytest.mark.parametrize(
    ("number", "told"), [(0, "0 turns"), (1, "1 turn"), (2, "2 turns"), (12_345, "12,345 turns")]
)
def test_one_is_not_many(number: int, told: str) -> None:
    """The noun goes with its number, whose thousands stand apart."""
    assert counted(number, "turn") == told
    assert counted(1, "sign of progress", "signs of progress") == "1 sign of progress"
    assert counted(2, "sign of progress", "signs of progress") == "2 signs of progress"
