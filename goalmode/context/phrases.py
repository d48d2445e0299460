"""Closing prose: the phrases by which a model tells itself that there is nothing left to do.

A context that holds them makes the next reply a closing one, whatever is open. So what a model saved is searched
for them before it is shown again, and their number is stored with each wakeup. Nothing about the goal is ever
concluded from them: they end no wakeup and judge no claim.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from goalmode.context.closing import (
    ALONE,
    ALONE_ANCHORS,
    ANCHORS,
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
    # No character of the Chinese phrases' beginnings is ASCII but the 1 of 100 %: told first, it costs least.
    rf"|(?=[1\u0080-\U0010ffff]){_unless_after(CHINESE_DENIALS)}(?:{'|'.join(CHINESE)}){CHINESE_OPEN}"
)
_ALONE = re.compile(rf"[\W_]*(?:{'|'.join(ALONE)})[\W_]*")
_SENTENCE = re.compile(r".*?(?:[.!?;](?=\s|$)|[。！？；…]|\n|$)+", re.DOTALL)
_DROPPED = re.compile("[*\u200b-\u200d\u2060\ufeff]")
_SHORT = 400
"""Characters of a text whose claims are remembered."""
_TRADITIONAL = re.compile(f"[{''.join(map(chr, SIMPLIFIED))}]")


def completion_phrases(text: str) -> int:
    """How many closing phrases `text` holds, in English and Chinese. A phrase counts once, however it is made up."""
    # Plain words first: to try all phrases at every word of a text takes ten times as long.
    plain, found = _plain(text), 0
    if _holds_any(plain, ALONE_ANCHORS):
        found += sum(1 for sentence in sentences(text) if _ALONE.fullmatch(_plain(sentence)))
    if _holds_any(plain, ANCHORS):
        found += sum(1 for _ in _PHRASE.finditer(plain))
    return found


def _holds_any(plain: str, words: tuple[str, ...]) -> bool:
    return any(word in plain for word in words)


def claims_completion(text: str) -> bool:
    """Whether `text` holds a closing phrase."""
    return _short_claims(text) if len(text) <= _SHORT else completion_phrases(text) > 0


@lru_cache(maxsize=1_024)
def _short_claims(text: str) -> bool:
    """Remembered, because most actions and items of a context stood in the one before it too; at most about 1 MB."""
    return completion_phrases(text) > 0


def sentences(text: str) -> list[str]:
    """`text` cut into sentences and lines, each with what ends it: joined, they are `text` again."""
    return [piece for piece in _SENTENCE.findall(text) if piece]


def _plain(text: str) -> str:
    if text.isascii():  # Most texts are, and what else is done below leaves those alone.
        return " ".join(text.replace("*", "").lower().split())
    narrow = unicodedata.normalize("NFKC", _DROPPED.sub("", text)).lower().replace("’", "'")
    if _TRADITIONAL.search(narrow):
        narrow = narrow.translate(SIMPLIFIED)
    return " ".join(narrow.split())


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
