"""Texts cut to a number of tokens. Pure."""

from __future__ import annotations

from collections.abc import Callable

from goalmode.domain.text import head_tail


def to_tokens(
    text: str, cap: int, count: Callable[[str], int], cut: Callable[[str, int], str] = head_tail
) -> str:
    """`text`, or as much of its head and tail as costs at most `cap` tokens.

    Where the remark about what is left out alone costs more, that remark.

    Args:
        cut: gives about so many characters of a text.
    """
    shown, limit = text, len(text)
    while (tokens := count(shown)) > cap and limit > 0:
        limit = min(limit * cap // tokens, limit - 1) * 9 // 10
        shown = cut(text, limit)
    return shown
