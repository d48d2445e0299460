"""What holds for every test: no way beyond loopback, no trace of the user's own settings, no clock to wait for."""

from __future__ import annotations

import ipaddress
import itertools
import os
import socket
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests import stores

# A database asks for few of them again: what they look for is in Python.
_EXAMPLES = 10 if stores.SERVER else 50
settings.register_profile("local", deadline=None, max_examples=_EXAMPLES)
settings.register_profile("ci", deadline=None, max_examples=_EXAMPLES, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")

_PRIVATE = ("GOALMODE_", "OPENAI_", "ANTHROPIC_", "OTEL_")
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")
_HOMES = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")


def pytest_report_header() -> str:
    if stores.SERVER:
        return "stores: PostgreSQL; only tests that use one are run"
    return f"stores: SQLite {sqlite3.sqlite_version}"


_ELSEWHERE = {
    "sqlite": "it looks into SQLite's file",
    "postgres": "it needs the server of `make test-postgres`",
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Each test where its stores are; on a server, what uses none is left out, and what need not be run again."""
    elsewhere = "sqlite" if stores.SERVER else "postgres"
    used, unused = [], []
    for item in items:
        if item.get_closest_marker(elsewhere):
            item.add_marker(pytest.mark.skip(reason=_ELSEWHERE[elsewhere]))
        uses = "_stores" in getattr(item, "fixturenames", ()) or item.get_closest_marker("postgres")
        (used if uses and not item.get_closest_marker("once") else unused).append(item)
    if stores.SERVER:
        items[:] = used
        config.hook.pytest_deselected(items=unused)


@pytest.fixture(scope="session")
def _stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[stores.Stores]:
    yield from stores.made(tmp_path_factory.mktemp("blank"))


@pytest.fixture
def new_stores(_stores: stores.Stores) -> Iterator[stores.Stores]:
    """Makes stores: files, or with GOALMODE_TEST_STORE databases on that server. Ask for it to run on both."""
    yield _stores
    _stores.clear()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def _loopback_only() -> Iterator[None]:
    """Fails the test that connects to, or looks up, anything but this machine."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("connect", "connect_ex"):
            patch.setattr(socket.socket, name, _guarded(getattr(socket.socket, name)))
        look_up = socket.getaddrinfo

        def local_names(host: Any, *args: Any, **kwargs: Any) -> Any:
            _hold(host)
            return look_up(host, *args, **kwargs)

        patch.setattr(socket, "getaddrinfo", local_names)
        yield


def _guarded(original: Callable[[socket.socket, Any], Any]) -> Callable[[socket.socket, Any], Any]:
    def guarded(self: socket.socket, address: Any) -> Any:
        if self.family in (socket.AF_INET, socket.AF_INET6):
            _hold(address[0])
        return original(self, address)

    return guarded


def _hold(host: str | bytes | None) -> None:
    name = host.decode() if isinstance(host, bytes) else host
    if name in (None, "", "localhost"):
        return
    try:
        local = ipaddress.ip_address(name).is_loopback
    except ValueError:
        local = False
    if not local:
        pytest.fail(f"a test reaches for {name}: only this machine is allowed")


@pytest.fixture(scope="session")
def _homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A directory that does not exist yet, anew at each step."""
    base = tmp_path_factory.mktemp("homes")
    return (base / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def _own_environment(_homes: Iterator[Path]) -> Iterator[None]:
    """Keys, proxies and goalmode's settings are gone, and the user's directories are empty ones.

    What works here decides about no test: there is no sandbox but where a test asks for one.
    """
    home = next(_homes)
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(_PRIVATE) or name.upper() in _PROXIES:
                patch.delenv(name)
        for name in _HOMES:
            patch.setenv(name, str(home / name.lower()))
        patch.setenv("GOALMODE_SANDBOX", "none")
        yield
