"""Through which proxy a server is reached, and which are reached past it."""

from __future__ import annotations

import pytest
from yarl import URL

from goalmode.domain.profile import ModelProfile
from goalmode.errors import ModelError
from goalmode.model.proxy import proxy_for
from goalmode.model.wire.openai_chat import OpenAIChat


@pytest.mark.parametrize(
    ("named", "used"),
    [
        ("proxy.invalid:3128", "http://proxy.invalid:3128"),
        ("user:canary-word@proxy.invalid:3128", "http://user:canary-word@proxy.invalid:3128"),
        ("https://proxy.invalid", "https://proxy.invalid"),
        ("", None),
    ],
)
def test_a_proxy_may_be_named_without_its_scheme(
    monkeypatch: pytest.MonkeyPatch, named: str, used: str | None
) -> None:
    """As most people do."""
    monkeypatch.setenv("https_proxy", named)

    assert proxy_for(URL("https://provider.invalid/v1")) == used
    assert proxy_for(URL("https://127.0.0.1:8443/v1")) is None
    monkeypatch.setenv("no_proxy", "provider.invalid:443")
    assert proxy_for(URL("https://provider.invalid/v1")) is None


@pytest.mark.parametrize(
    "named", ["socks5://user:canary-word@proxy.invalid:1080", "http://", "http://u:canary-word@:1"]
)
def test_a_proxy_that_http_cannot_go_through_is_refused_unseen(
    monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    """When the model is made, and not as a connection that fails again and again."""
    monkeypatch.setenv("all_proxy", named)

    with pytest.raises(ModelError, match="proxy of the environment") as caught:
        OpenAIChat(ModelProfile("m", "openai", "m", "https://provider.invalid/v1"), None)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "past", "reached_past"),
    [
        ("10.0.0.0", "10.0.0.0/8", True),
        ("10.255.255.255", "internal.example, 10.0.0.0/8", True),
        ("11.0.0.0", "10.0.0.0/8", False),
        ("9.255.255.255", "10.0.0.0/8", False),
        ("10.1.2.3", "10.9.9.9/8", True),
        ("192.168.1.7", "192.168.1.7/32", True),
        ("192.168.1.8", "192.168.1.7/32", False),
        ("203.0.113.9", "0.0.0.0/0", True),
        ("[fd00::1]", "fd00::/8", True),
        ("[fdff:ffff::1]", "10.0.0.0/8,fd00::/8", True),
        ("[fe00::1]", "fd00::/8", False),
        ("[fd00::1]", "10.0.0.0/8", False),
        ("[fd00:0:0::1]", "fd00::1", True),
        ("10.1.2.3", "fd00::/8", False),
        ("10.1.2.3", "10.0.0.0/33", False),
        ("10.1.2.3", "/8", False),
        ("10.1.2.3", "10.0.0.0/", False),
        ("10.1.2.3", "ten/8,, 10.0.0.0/8 ", True),
        ("provider.invalid", "0.0.0.0/0,::/0", False),
        ("10.1.2.3.invalid", "10.0.0.0/8", False),
    ],
)
def test_networks_of_no_proxy_are_reached_past_it(
    monkeypatch: pytest.MonkeyPatch, host: str, past: str, reached_past: bool
) -> None:
    """By an address of numbers, as for curl and requests; a name is in none, and what is no network is passed over."""
    monkeypatch.setenv("https_proxy", "http://proxy.invalid:3128")
    monkeypatch.setenv("no_proxy", past)

    assert (proxy_for(URL(f"https://{host}:8443/v1")) is None) is reached_past
