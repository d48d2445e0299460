"""Addresses of servers, as users write them."""

from __future__ import annotations

from urllib.parse import urlsplit


def is_web_address(value: object) -> bool:
    """Whether it is an http or https URL that names a host, and no port that cannot be."""
    try:
        parts = urlsplit(value) if isinstance(value, str) and value.isprintable() else None
        return (
            parts is not None
            and parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0
        )
    except ValueError:
        return False
