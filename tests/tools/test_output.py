"""Large results within bounds."""

from __future__ import annotations

from goalmode.domain.redact import Redactor
from goalmode.tools.output import HeadTail, capped, shown


def test_what_fits_is_whole() -> None:
    """Bytes within the limit come back as they went in, those that are not UTF-8 replaced."""
    kept = HeadTail(100)
    for part in (b"caf", b"\xc3", b"\xa9 ", b"\xff", b"\x00"):
        kept.feed(part)

    assert kept.text() == ("café \ufffd\x00", 0)
    assert kept.size == 8


def test_what_does_not_fit_keeps_head_and_tail_and_tells_the_size() -> None:
    """The middle is left out, no character is split, and the whole size is told."""
    kept = HeadTail(1_000)
    for _ in range(10_000):
        kept.feed("ä€😀".encode())
    text, _ = kept.text()

    assert "\ufffd" not in text
    assert text.startswith("ä€😀")
    assert text.endswith("ä€😀")
    assert "left out of 90000" in text
    assert 500 < len(text.encode()) < 1_100


def test_no_half_of_a_secret_stays_at_a_cut() -> None:
    """Wherever a secret lies, the cut leaves no part of it that redaction would miss."""
    secret = "hunter2-hunter2-hunter2"
    for before in range(600, 700):
        kept = HeadTail(1_000)
        kept.feed(b"." * before + secret.encode() + b"." * 5_000 + secret.encode() + b"." * (before - 350))
        text, _ = kept.text(Redactor([secret]))

        assert "hunter2" not in text


def test_capped_bounds_the_bytes_of_a_text() -> None:
    """A text of many-byte characters is bounded in bytes."""
    assert capped("é" * 100, 400) == "é" * 100
    assert len(capped("€" * 10_000, 1_000).encode()) < 1_100


def test_shown_tells_the_whole_size() -> None:
    """What the model sees says that it was cut and how large the whole is (B59)."""
    text = shown("a" * 900 + "b" * 900, 300, 52_428_800)

    assert text.startswith("a" * 200 + "\n[… cut here: the whole result is 52428800 bytes")
    assert text.endswith("]\n" + "b" * 100)
    assert shown("short", 300, 5) == "short"
