"""Secrets struck out of everything that is stored or shown: one choke point, applied before any cap or cut."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus, unquote, unquote_plus, urlsplit

MARK = "[redacted]"

SHORTEST = 6
"""Characters of a known secret; a shorter one would strike out ordinary words."""

_PATTERNS = (
    (("author",), re.compile(r"(?i)(\bauthorization[\"']?\s*[:=]\s*[\"']?(?:bearer|basic)\s+)[^\s\"',;]+")),
    (("bearer",), re.compile(r"(?i)(\bbearer\s+)[A-Za-z0-9._~+/=-]{12,}")),
    (("x-ap",), re.compile(r"(?i)(\bx-api-key[\"']?\s*[:=]\s*[\"']?)[^\s\"',;]+")),
    (
        ("key=", "token=", "ecret="),
        re.compile(r"(?i)([?&](?:api[_-]?key|key|token|access_token|secret)=)[^&\s\"']+"),
    ),
    (
        ("://",),
        re.compile(r"(\b[a-z][a-z0-9+.-]{0,30}://)[^/\s:@\"']+:[^/\s@\"']+(?=@)", re.IGNORECASE),
    ),
    (("sk-",), re.compile(r"()\bsk-[A-Za-z0-9_-]{16,}")),
)
"""Each behind its hints: what it matches holds one of them in lower case. Most texts hold none, and are done with.

The hints of a pattern that ignores case have no i and no s: to `(?i)`, ı is an i and ſ an s; to `lower`, they are not.
"""

_AT_ONCE, _OVERLAP = 65_536, 16
"""Characters that are looked at together for hints, and those that are looked at twice: more than a hint has."""

_LETS_IN = re.compile(r"(?i)key|token|secret|sig|pass|auth|cred|code")
"""In the name of a URL's parameter."""

_LONG_ENOUGH_FOR_A_KEY = 20


class Redactor:
    """Strikes out exact known secrets first (also as base64, URL and JSON text), then patterns of keys.

    Args:
        secrets: exact values; those shorter than `SHORTEST` are ignored.
        patterns: further regular expressions, each of which matches a whole secret.
    """

    def __init__(self, secrets: Iterable[str] = (), patterns: Iterable[str] = ()) -> None:
        self._patterns = tuple(re.compile(f"()(?:{pattern})") for pattern in patterns)
        forms = {form for secret in secrets if len(secret) >= SHORTEST for form in _forms(secret)}
        longest_first = sorted(forms, key=len, reverse=True)
        self._forms = tuple(longest_first)
        self._known = re.compile("|".join(map(re.escape, longest_first)))

    def __call__(self, text: str) -> str:
        return self.count(text)[0]

    def is_like(self, other: Redactor) -> bool:
        """Whether both strike out the same."""
        return (self._known, self._patterns) == (other._known, other._patterns)

    def count(self, text: str) -> tuple[str, int]:
        """The text without secrets, and how many were struck out."""
        total = 0
        if any(form in text for form in self._forms):
            text, total = self._known.subn(MARK, text)
        # What is struck out from here on brings no hint into the text. All patterns need a character that no word has.
        hinted = [] if text.isidentifier() else _hinted(text)
        for pattern in (*hinted, *self._patterns):
            text, n = pattern.subn(lambda m: m.group(1) + MARK, text)
            total += n
        return text, total


def _hinted(text: str) -> list[re.Pattern[str]]:
    """The patterns that may match a text, by its hints."""
    found = []
    rest = list(_PATTERNS)
    for start in range(0, len(text), _AT_ONCE):  # In lower case piece by piece: a text may have megabytes.
        lower = text[start : start + _AT_ONCE + _OVERLAP].lower()
        for one in rest[:]:
            for hint in one[0]:  # Not `any`: asked for every text that is stored.
                if hint in lower:
                    found.append(one)
                    rest.remove(one)
                    break
    return [pattern for _, pattern in sorted(found, key=_PATTERNS.index)]


class Redactors(Redactor):
    """Strikes out what any of several redactors knows of. It can learn of more at any time, and forgets nothing."""

    def __init__(self, *known: Redactor) -> None:
        super().__init__()
        self._each = list(known)

    def is_like(self, other: Redactor) -> bool:
        return other is self

    def add(self, redact: Redactor) -> None:
        """Learn of one more; from any thread. Configuration is read often, and mostly says what it said before."""
        if redact is not self and not any(one.is_like(redact) for one in self._each):
            self._each.append(redact)

    def count(self, text: str) -> tuple[str, int]:
        text, total = super().count(text)
        for redact in self._each:
            text, more = redact.count(text)
            total += more
        return text, total


def learned(known: Redactor, more: Redactor) -> Redactors:
    """`known`, which strikes out from now on what `more` does too. It is the same one if it can learn."""
    found = known if isinstance(known, Redactors) else Redactors(known)
    found.add(more)
    return found


def url_secrets(url: str, *, every: bool = False) -> tuple[str, ...]:
    """What in a URL lets somebody in: its password, a user name without one, and the keys in its query.

    Not every word in it: `user` and `api-version=preview` would be struck out of paths and of what tools print.

    Args:
        every: all values of the query, for what only that server says.
    """
    parts = urlsplit(url)
    found = [parts.password or parts.username or ""]
    for written in parts.query.split("&"):
        name, equals, value = written.partition("=")
        named = _LETS_IN.search(name) and (value or not equals)
        value = value or name  # A word alone, which may end as base64 does.
        if every or named or len(value) >= _LONG_ENOUGH_FOR_A_KEY:
            found.append(value)
    # As it is written, and as it is meant: a server that takes it tells of the latter.
    told = [form for text in found for form in (text, unquote(text), unquote_plus(text))]
    return tuple(dict.fromkeys(text for text in told if text))


def _forms(secret: str) -> set[str]:
    encoded = base64.b64encode(secret.encode("utf-8", "surrogateescape")).decode()
    return {
        secret,
        quote(secret),
        quote(secret, safe=""),
        quote_plus(secret),
        json.dumps(secret)[1:-1],
        encoded,
        encoded.rstrip("="),
        encoded.replace("+", "-").replace("/", "_").rstrip("="),
    }
