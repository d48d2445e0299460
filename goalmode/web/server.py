"""A process that shows the pages: where it listens, which names it answers to, and how it ends."""

from __future__ import annotations

import ipaddress
import re
import signal
import socket
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import FrameType

import uvicorn

from goalmode.errors import BadInput
from goalmode.web.app import app
from goalmode.web.keys import Keys
from goalmode.web.live import Streams
from goalmode.web.stores import Stores

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
"""Names of this machine that no other machine's owner can point elsewhere."""

CLOSING_SECONDS = 3
"""How long answers may still be sent when the process ends."""

BACKLOG = 128
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?(:[0-9]{1,5})?|\[[0-9a-f:.]+\](:[0-9]{1,5})?")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the pages are.

    Attributes:
        hosts: the Host headers that are served.
        private: whether only this machine reaches it.
    """

    listener: socket.socket
    url: str
    hosts: frozenset[str]
    private: bool

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])


def listen(host: str, port: int, allowed: Iterable[str] = ()) -> Place:
    """Listen on an address of this machine; port 0 is any that is free.

    Args:
        allowed: further names under which the pages are asked for, with a port where a proxy has another one.

    Raises:
        BadInput: an address that others reach without a name that is allowed, or that this machine does not have.
    """
    names = tuple(map(_name, allowed))
    address = _address(host)
    if not address.is_loopback and not names:
        expected = "127.0.0.1, localhost or ::1; for others to reach it, name it with --allow-host as they do"
        raise BadInput("host", host, expected)
    listener = socket.socket(socket.AF_INET6 if address.version == 6 else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((str(address), port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise BadInput("port", port, f"one that is free on {host} ({error.strerror})") from None
    bound = int(listener.getsockname()[1])
    own = (*LOOPBACK_NAMES, *([] if address.is_unspecified else [_bracketed(address)]))
    hosts = {one for name in own for one in _with_port(name, bound)}
    hosts |= {one for name in names for one in ((name,) if _has_port(name) else (name, f"{name}:{bound}"))}
    shown = "127.0.0.1" if address.is_unspecified else _bracketed(address)
    return Place(listener, f"http://{shown}:{bound}/", frozenset(hosts), address.is_loopback)


def show(stores: Stores, keys: Keys, place: Place, *, opened: Callable[[], None] = lambda: None) -> None:
    """Show the pages until SIGINT or SIGTERM.

    Args:
        opened: called once the pages can be asked for.

    Raises:
        StoreError: there is a store that this goalmode cannot read.
    """
    if stores.exist():
        with stores.reading():
            pass
    streams = Streams(stopping=lambda: server.should_exit)
    server = uvicorn.Server(
        uvicorn.Config(
            app(stores, keys, place.hosts, streams),
            http="h11",
            ws="none",
            lifespan="off",
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=CLOSING_SECONDS,
        )
    )

    def stop(number: int, frame: FrameType | None) -> None:
        server.should_exit = True

    # The main thread only waits, so that a signal ends the process in its own way and with its own exit code.
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    thread = threading.Thread(target=server.run, kwargs={"sockets": [place.listener]}, name="goalmode-web")
    try:
        thread.start()
        opened()
        while thread.is_alive():
            thread.join(0.2)
    finally:
        server.should_exit = True
        thread.join()
        for number, handler in before.items():
            signal.signal(number, handler)
        stores.close()


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        return ipaddress.ip_address("127.0.0.1" if host == "localhost" else host.strip("[]"))
    except ValueError:
        raise BadInput("host", host, "localhost, or an IP address of this machine") from None


def _name(text: str) -> str:
    name = text.strip().lower()
    if not _NAME.fullmatch(name):
        raise BadInput("allow-host", text, "a host name such as goals.example.org, if need be with its port")
    return name


def _has_port(name: str) -> bool:
    return re.search(r":[0-9]+$", name.rpartition("]")[2]) is not None


def _with_port(name: str, port: int) -> tuple[str, ...]:
    return (name, f"{name}:{port}") if port == 80 else (f"{name}:{port}",)


def _bracketed(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    return f"[{address}]" if address.version == 6 else str(address)
