"""Addresses of servers, as users write them."""

from __future__ import annotations

from urllib.parse import urlsplit


def is_web_address(value: object) -> bool:
    """Whether it is an http or https URL that names a host, and neither it nor the port is one that cannot be."""
    try:
        parts = urlsplit(value) if isinstance(value, str) and value.isprintable() else None
        return (
            parts is not None
            and parts.scheme in ("http", "https")
            and _can_be_a_host(parts.hostname or "")
            and parts.port != 0
        )
    except ValueError:
        return False


def _can_be_a_host(name: str) -> bool:
    """By the lengths of its labels (RFC 1035, 2.3.4)."""
    return all(0 < len(label) < 64 for label in name.removesuffix(".").split("."))
