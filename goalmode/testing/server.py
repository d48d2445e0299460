"""The stub provider's HTTP: requests in, steps out, with every way to stall, spoil and drop a connection."""

from __future__ import annotations

import contextlib
import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from typing import Any, assert_never

from goalmode.model import strict_json
from goalmode.testing.pieces import Mark, Wire
from goalmode.testing.steps import Completion, Raw, Status, Step


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it arrived. `at` is in seconds of the monotonic clock; `body` is empty if it was not JSON."""

    path: str
    headers: Mapping[str, str]
    raw: bytes
    body: Mapping[str, Any]
    at: float

    @property
    def endpoint(self) -> str:
        """The path without its query."""
        return self.path.partition("?")[0]


Wait = Callable[[float | threading.Event], None]


class Server(ThreadingMixIn, TCPServer):
    """Listens on 127.0.0.1.

    Args:
        wires: the formats it speaks.
        answer: the step for a request, and a number that makes its ids unique.
        wait: how to stall.
    """

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(
        self, port: int, wires: Iterable[Wire], answer: Callable[[Seen], tuple[Step, int]], wait: Wait
    ) -> None:
        self.wires = {wire.path: wire for wire in wires}
        self.answer, self.wait = answer, wait
        self._open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", port), _Handler)

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def stop(self) -> None:
        """Listen no longer, and drop every connection."""
        self.shutdown()
        self.server_close()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news; anything else is a fault of a rule, and is told."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_GET(self) -> None:
        if self.path.partition("?")[0] == "/v1/models":
            self._send_json(200, {"object": "list", "data": [{"id": "stub", "object": "model"}]})
        else:
            self._send_json(404, {"error": {"message": f"Invalid URL (GET {self.path})"}})

    def do_POST(self) -> None:
        length = int(self.headers.get("content-length", 0))
        raw = self.rfile.read(length)
        if len(raw) < length:  # The client died in the middle: nothing was asked.
            self._drop()
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        seen = Seen(self.path, headers, raw, _parsed(raw), time.monotonic())
        step, number = self.server.answer(seen)
        match step:
            case Status(code, body):
                self._send_json(code, _echoed(seen) if step.echo else body, step.headers)
            case Raw(data):
                self.wfile.write(data)
                self._drop()
            case Completion():
                if step.stall is not None and step.stall_after is None:
                    self.server.wait(step.stall)
                wire = self.server.wires[seen.endpoint]
                if seen.body.get("stream"):
                    self._send_stream(wire, step, seen.body, number)
                else:
                    self._send_whole(wire, step, seen.body, number)
            case _:
                assert_never(step)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""

    def _send_stream(self, wire: Wire, step: Completion, request: Mapping[str, Any], number: int) -> None:
        self._head(200, {"content-type": "text/event-stream", "transfer-encoding": "chunked"})
        for event in wire.stream(step, request, number):
            if event is Mark.STALL and step.stall is not None:
                self.wfile.flush()
                self.server.wait(step.stall)
            elif event is Mark.CUT:
                self._drop()
                return
            elif not isinstance(event, Mark):
                line = _sse(event).encode("utf-8", "replace")
                self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
        self.wfile.write(b"0\r\n\r\n")

    def _send_whole(self, wire: Wire, step: Completion, request: Mapping[str, Any], number: int) -> None:
        body = json.dumps(wire.whole(step, request, number)).encode()
        self._head(200, {"content-type": "application/json", "content-length": str(len(body))})
        if step.cut_after is None:
            self.wfile.write(body)
        else:
            self.wfile.write(body[: len(body) // 2])
            self._drop()

    def _send_json(
        self, code: int, body: Mapping[str, Any] | str, headers: Mapping[str, str] | None = None
    ) -> None:
        data = (body if isinstance(body, str) else json.dumps(body)).encode("utf-8", "replace")
        kind = "text/plain; charset=utf-8" if isinstance(body, str) else "application/json"
        self._head(code, {"content-type": kind, "content-length": str(len(data)), **(headers or {})})
        self.wfile.write(data)

    def _head(self, code: int, headers: Mapping[str, str]) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _drop(self) -> None:
        self.wfile.flush()
        self.close_connection = True


def _sse(event: Mapping[str, Any] | str) -> str:
    if isinstance(event, str):
        return f"data: {event}\n\n"
    name = f"event: {event['type']}\n" if "type" in event else ""
    return f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n"


def _parsed(raw: bytes) -> Mapping[str, Any]:
    try:
        body = strict_json.loads(raw.decode())
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


def _echoed(seen: Seen) -> Mapping[str, Any]:
    said = {"path": seen.path, "headers": dict(seen.headers), "body": seen.raw.decode("utf-8", "replace")}
    return {"error": {"message": f"cannot process {json.dumps(said)}", "request": said}}
