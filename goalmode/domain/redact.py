"""Secrets struck out of everything that is stored or shown: one choke point, applied before any cap or cut."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from urllib.parse import parse_qsl, quote, quote_plus, urlsplit

MARK = "[redacted]"

SHORTEST = 6
"""Characters of a known secret; a shorter one would strike out ordinary words."""

_PATTERNS = (
    re.compile(r"(?i)(\bauthorization[\"']?\s*[:=]\s*[\"']?(?:bearer|basic)\s+)[^\s\"',;]+"),
    re.compile(r"(?i)(\bbearer\s+)[A-Za-z0-9._~+/=-]{12,}"),
    re.compile(r"(?i)(\bx-api-key[\"']?\s*[:=]\s*[\"']?)[^\s\"',;]+"),
    re.compile(r"(?i)([?&](?:api[_-]?key|key|token|access_token|secret)=)[^&\s\"']+"),
    re.compile(r"(\b[a-z][a-z0-9+.-]{0,30}://)[^/\s:@\"']+:[^/\s@\"']+(?=@)", re.IGNORECASE),
    re.compile(r"()\bsk-[A-Za-z0-9_-]{16,}"),
)

_HINTS = re.compile(r"(?i)authorization|bearer|x-api-key|[?&]|://|sk-")
"""One of these is in every text that one of the patterns matches; most texts have none, and are done with at once."""

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
        self._known = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def __call__(self, text: str) -> str:
        return self.count(text)[0]

    def count(self, text: str) -> tuple[str, int]:
        """The text without secrets, and how many were struck out."""
        total = 0
        if self._known is not None:
            text, total = self._known.subn(MARK, text)
        for pattern in (*(_PATTERNS if _HINTS.search(text) else ()), *self._patterns):
            text, n = pattern.subn(lambda m: m.group(1) + MARK, text)
            total += n
        return text, total


class Redactors(Redactor):
    """Strikes out what any of several redactors knows of. It can learn of more at any time."""

    def __init__(self, *known: Redactor) -> None:
        super().__init__()
        self._each = known

    def add(self, redact: Redactor) -> None:
        if redact is not self and redact not in self._each:
            self._each = (*self._each, redact)

    def count(self, text: str) -> tuple[str, int]:
        text, total = super().count(text)
        for redact in self._each:
            text, more = redact.count(text)
            total += more
        return text, total


def url_secrets(url: str) -> tuple[str, ...]:
    """What in a URL lets somebody in: its password, a user name without one, and the keys in its query.

    Not every word in it: `user` and `api-version=preview` would be struck out of paths and of what tools print.
    """
    parts = urlsplit(url)
    keys = [
        value
        for name, value in parse_qsl(parts.query)
        if _LETS_IN.search(name) or len(value) >= _LONG_ENOUGH_FOR_A_KEY
    ]
    return tuple(text for text in (parts.password or parts.username, *keys) if text)


def _forms(secret: str) -> set[str]:
    encoded = base64.b64encode(secret.encode("utf-8", "surrogateescape")).decode()
    return {
        secret,
        quote(secret, safe=""),
        quote_plus(secret),
        json.dumps(secret)[1:-1],
        encoded,
        encoded.rstrip("="),
        encoded.replace("+", "-").replace("/", "_").rstrip("="),
    }
