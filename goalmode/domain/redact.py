"""Secrets struck out of everything that is stored or shown: one choke point, applied before any cap or cut."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

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


class Redactor:
    """Strikes out exact known secrets first (also as base64, URL and JSON text), then patterns of keys.

    Args:
        secrets: exact values; those shorter than `SHORTEST` are ignored.
        patterns: further regular expressions, each of which matches a whole secret.
    """

    def __init__(self, secrets: Iterable[str] = (), patterns: Iterable[str] = ()) -> None:
        self._patterns = (*_PATTERNS, *(re.compile(f"()(?:{pattern})") for pattern in patterns))
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
        for pattern in self._patterns:
            text, n = pattern.subn(lambda m: m.group(1) + MARK, text)
            total += n
        return text, total


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
