"""Streams cut into events, beside another implementation of the same standard."""

from __future__ import annotations

from itertools import pairwise

import pytest
from httpx_sse._decoders import SSEDecoder, SSELineDecoder
from hypothesis import given, settings
from hypothesis import strategies as st

from goalmode.model import sse
from goalmode.model.sse import Events, StreamTooLong

ENDS = ("\n", "\r\n", "\r")


def told(*pieces: bytes) -> list[str]:
    """The data of all events of a stream that arrives in these pieces."""
    events = Events()
    found = [data for piece in pieces for data in events.feed(piece)]
    return [*found, *events.end()]


def theirs(text: str) -> list[str]:
    """The same by httpx-sse, whose last event counts as ended too."""
    lines, events = SSELineDecoder(), SSEDecoder()
    found = [events.decode(line) for line in (*lines.decode(text + "\n\n\n"), *lines.flush())]
    return [event.data for event in found if event is not None and event.data.strip("\n")]


words = st.sampled_from(
    ["data", "data:", "data: ", "data:  x", ":", ": still", "event: a", "id: 1", "", " ", "é你"]
)
streams = st.lists(st.tuples(words, st.text(max_size=4), st.sampled_from(ENDS)), max_size=12).map(
    lambda lines: "".join("".join(line) for line in lines)
)


@settings(deadline=None)
@given(streams, st.lists(st.integers(0, 200), max_size=6))
def test_events_are_those_of_the_standard(text: str, cuts: list[int]) -> None:
    """Whatever lines, line ends and pieces there are, in the middle of a character too."""
    text = text.encode("utf-8", "replace").decode()
    whole = text.encode()
    places = sorted({0, *(cut for cut in cuts if cut < len(whole)), len(whole)})
    pieces = [whole[a:b] for a, b in pairwise(places)]

    assert told(*pieces) == told(whole)
    if not text.startswith("\ufeff"):
        assert told(whole) == theirs(text)


def test_a_mark_of_byte_order_is_no_part_of_the_first_line() -> None:
    """As the standard says."""
    assert told(b"\xef\xbb\xbfdata: a\n\n") == ["a"]


def test_an_event_is_told_as_soon_as_it_has_ended() -> None:
    """A reply is not held up by what may come behind it."""
    events = Events()

    assert events.feed(b"data: a\n") == []
    assert events.feed(b"\ndata: b\r\n\r") == ["a"]
    assert events.feed(b"\n") == ["b"]


@pytest.mark.parametrize("piece", [b"data: 0123456789", b"data: 01234567\n", b":234567890123456\n"])
def test_bounds_hold_on_both_sides(monkeypatch: pytest.MonkeyPatch, piece: bytes) -> None:
    """One event may have as many characters as its bound, and not one more; line ends do not count."""
    monkeypatch.setattr(sse, "MAX_EVENT", len(piece.rstrip(b"\n")))
    events = Events()
    assert events.feed(piece) == []

    with pytest.raises(StreamTooLong, match="in one piece"):
        events.feed(b"x")


def test_a_stream_is_bounded_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """However short its events are."""
    monkeypatch.setattr(sse, "MAX_STREAM", 100)
    events = Events()
    for _ in range(50):
        events.feed(b"\n\n")

    with pytest.raises(StreamTooLong, match="more than 100 characters"):
        events.feed(b"\n")
