"""Where a model is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Provider:
    """Where a wire format is at home, and the environment variable in which its key is looked for."""

    base_url: str
    key: str


PROVIDERS: Mapping[str, Provider] = MappingProxyType(
    {
        "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY"),
        "openai-responses": Provider("https://api.openai.com/v1", "OPENAI_API_KEY"),
        "anthropic": Provider("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
    }
)
"""By wire format, which is also the scheme of a model's name: `anthropic:NAME`."""


def is_loopback(host: str) -> bool:
    """Whether a URL's host is this machine: such a server needs no key and is reached past any proxy."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
