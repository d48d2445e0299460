"""Closing prose: the phrases by which a model tells itself that there is nothing left to do.

A context that holds them makes the next reply a closing one, whatever is open. So what a model saved is searched
for them before it is shown again, and their number is stored with each wakeup. Nothing about the goal is ever
concluded from them: they end no wakeup and judge no claim.
"""

from __future__ import annotations

import re
import unicodedata

from goalmode.context.closing import (
    ALONE,
    CHINESE,
    CHINESE_DENIALS,
    CHINESE_OPEN,
    ENGLISH,
    ENGLISH_DENIALS,
    SIMPLIFIED,
)


def _unless_after(words: tuple[str, ...]) -> str:
    return "".join(f"(?<!{re.escape(word)})" for word in words)


_PHRASE = re.compile(
    rf"(?<![a-z0-9_-])(?=[a-z1]){_unless_after(ENGLISH_DENIALS)}(?:{'|'.join(ENGLISH)})"
    r"(?![a-z0-9_-]|\.[a-z0-9]|/)"
    rf"|{_unless_after(CHINESE_DENIALS)}(?:{'|'.join(CHINESE)}){CHINESE_OPEN}"
)
_ALONE = re.compile(rf"[\W_]*(?:{'|'.join(ALONE)})[\W_]*")
_SENTENCE = re.compile(r".*?(?:[.!?;](?=\s|$)|[。！？；…]|\n|$)+", re.DOTALL)
_DROPPED = re.compile("[*\u200b-\u200d\u2060\ufeff]")


def completion_phrases(text: str) -> int:
    """How many closing phrases `text` holds, in English and Chinese. A phrase counts once, however it is made up."""
    alone = sum(1 for sentence in sentences(text) if _ALONE.fullmatch(_plain(sentence)))
    return alone + sum(1 for _ in _PHRASE.finditer(_plain(text)))


def claims_completion(text: str) -> bool:
    """Whether `text` holds a closing phrase."""
    return completion_phrases(text) > 0


def sentences(text: str) -> list[str]:
    """`text` cut into sentences and lines, each with what ends it: joined, they are `text` again."""
    return [piece for piece in _SENTENCE.findall(text) if piece]


def _plain(text: str) -> str:
    narrow = unicodedata.normalize("NFKC", _DROPPED.sub("", text)).lower().replace("’", "'")
    return " ".join(narrow.translate(SIMPLIFIED).split())


def withhold(text: str, mark: str) -> tuple[str, int]:
    """`text` with `mark` in place of each sentence that holds a closing phrase, and how many those were.

    What stands beside them stays. A phrase that only shows across sentences takes the whole text with it.
    """
    if not claims_completion(text):
        return text, 0
    kept: list[str] = []
    withheld = 0
    for sentence in sentences(text):
        if not claims_completion(sentence):
            kept.append(sentence)
            continue
        withheld += 1
        core = sentence.strip()
        kept.append(sentence.replace(core, mark, 1))
    shown = "".join(kept)
    return (mark, max(withheld, 1)) if claims_completion(shown) else (shown, withheld)
