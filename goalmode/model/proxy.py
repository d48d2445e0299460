"""Through which proxy a model's server is reached."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import ip_address, ip_network
from urllib.request import getproxies, proxy_bypass

from yarl import URL

from goalmode.domain.address import is_web_address
from goalmode.domain.signals import ErrorKind
from goalmode.errors import ModelError
from goalmode.model.address import is_loopback


def proxy_for(url: URL) -> str | None:
    """The proxy that the environment, or the system, names for this address; none for this machine itself.

    Raises:
        ModelError: it is no proxy that HTTP can go through; nothing of it is repeated, since it may hold a password.
    """
    host, known = url.host or "", getproxies()
    if is_loopback(host) or proxy_bypass(f"{host}:{url.port}") or _is_within(host, known.get("no", "")):
        return None
    named = known.get(url.scheme) or known.get("all")
    if not named:
        return None
    proxy = named if "://" in named else f"http://{named}"
    if not is_web_address(proxy):
        raise ModelError(
            ErrorKind.BAD_REQUEST, "the proxy of the environment is not an http or https address"
        )
    return proxy


def _is_within(host: str, no_proxy: str) -> bool:
    """Whether an address of numbers is in one of the networks of NO_PROXY (`10.0.0.0/8`), of which Python knows none.

    As for curl and requests, a name is in no network, whatever it resolves to, and what is no network is passed over.
    """
    try:
        address = ip_address(host)
    except ValueError:
        return False
    for network in no_proxy.split(","):
        with suppress(ValueError):
            if address in ip_network(network.strip(), strict=False):
                return True
    return False
