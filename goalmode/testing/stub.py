"""A strict provider on loopback: `/v1/chat/completions`, `/v1/responses` and `/v1/messages`, streamed or not.

    with Stub([tool("shell", {"command": "make"}), text("Done.")]) as stub:
        ... a client of one of these formats at stub.base_url ...
    assert stub.rejected == []

Every request is held to the rules of its format first (`goalmode.model.lint`, …); an invalid one is refused in the
provider's own words, recorded, and uses up no step. `/v1/models` lists one model.

As a program, `python -m goalmode.testing.stub SCRIPT.json [--port N] [--log FILE]` prints its base URL as the first
line and serves until it is killed; with `--log` each request is one line of JSON in a file.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from goalmode.testing import anthropic_messages, completions, responses
from goalmode.testing.pieces import refused
from goalmode.testing.script import Rule, in_order, rule_from_json
from goalmode.testing.server import Seen, Server
from goalmode.testing.steps import Status, Step

WIRES = {wire.path: wire for wire in (completions.WIRE, responses.WIRE, anthropic_messages.WIRE)}


class Stub:
    """The provider, running inside the `with` block.

    Args:
        script: steps in order, or a rule over the request.
        forever: the last step answers all further requests.
        key: if given, a request without it (`Authorization: Bearer KEY`; Anthropic: `x-api-key: KEY`) gets a 401.
        also: further rules over a valid request: what a single server would refuse, see `goalmode.model.lint_dialects`.

    Attributes:
        requests: everything that arrived, in order.
        rejected: what was wrong with the requests that were refused.
    """

    def __init__(
        self,
        script: Sequence[Step] | Rule,
        *,
        forever: bool = False,
        key: str | None = None,
        port: int = 0,
        on_request: Callable[[Seen], None] | None = None,
        also: Callable[[Mapping[str, Any]], Sequence[str]] | None = None,
    ) -> None:
        self._rule = script if callable(script) else in_order(script, forever=forever)
        self._key, self._on_request, self._also = key, on_request, also
        self._port = port
        self._server: Server | None = None
        self._lock = threading.Lock()
        self._answered = 0
        self._stopping = threading.Event()
        self.requests: list[Seen] = []
        self.rejected: list[str] = []

    def __enter__(self) -> Self:
        self.listen()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stopping.set()
        self.refuse()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._port}/v1"

    def listen(self) -> None:
        """Accept connections; after `refuse`, on the same port again."""
        if self._server is None:
            self._server = Server(self._port, WIRES.values(), self.see, self.wait)
            self._port = self._server.port
            threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def refuse(self) -> None:
        """Drop all connections and refuse new ones, until `listen`."""
        server, self._server = self._server, None
        if server is not None:
            server.stop()

    def see(self, seen: Seen) -> tuple[Step, int]:
        """Record a request and choose its answer. The number counts valid requests, from 0."""
        with self._lock:
            self.requests.append(seen)
            if self._on_request is not None:
                self._on_request(seen)
            number = self._answered
            refusal = self._refusal(seen)
            if refusal is not None:
                return self._reject(refusal), number
            self._answered += 1
        step = self._rule(seen.body, number)
        if step is not None:
            return step, number
        with self._lock:
            ended = WIRES[seen.endpoint].refused(400, f"the stub's script has no step {number + 1}")
            return self._reject(ended), number

    def wait(self, until: float | threading.Event) -> None:
        """Stall.

        Raises:
            ConnectionAbortedError: the block has ended; there is nobody left to answer.
        """
        if isinstance(until, threading.Event):
            while not until.wait(0.02) and not self._stopping.is_set():
                pass
        else:
            self._stopping.wait(until)
        if self._stopping.is_set():
            raise ConnectionAbortedError

    def _reject(self, refusal: Status) -> Status:
        if isinstance(refusal.body, Mapping):
            self.rejected.append(refusal.body["error"]["message"])
        return refusal

    def _refusal(self, seen: Seen) -> Status | None:
        wire = WIRES.get(seen.endpoint)
        if wire is None:
            return refused(404, f"Invalid URL (POST {seen.path})")
        header, before = wire.key
        if self._key is not None and seen.headers.get(header) != f"{before}{self._key}":
            return wire.refused(401, "Incorrect API key provided.")
        if wire.needs and wire.needs not in seen.headers:
            return wire.refused(400, f"{wire.needs}: header is required")
        if not seen.body:
            return wire.refused(400, "We could not parse the JSON body of your request.")
        if not isinstance(seen.body.get("model"), str):
            return wire.refused(400, "you must provide a model parameter")
        refusal = wire.refusal(seen.body)
        if refusal is None and self._also is not None:
            refusal = next((wire.refused(400, said) for said in self._also(seen.body)), None)
        return refusal


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve a script until killed."""
    parser = argparse.ArgumentParser(
        prog="python -m goalmode.testing.stub", description="A scripted provider."
    )
    parser.add_argument("script", type=Path, help="the steps, as JSON")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", type=Path, help="append each request to this file, one line of JSON each")
    given = parser.parse_args(arguments)
    try:
        rule = rule_from_json(json.loads(given.script.read_text("utf-8")))
    except (OSError, ValueError) as wrong:
        parser.error(f"{given.script}: {wrong}")
    with contextlib.ExitStack() as stack:
        log = stack.enter_context(given.log.open("a", encoding="utf-8")) if given.log else None

        def write(seen: Seen) -> None:
            if log is not None:
                line = {"path": seen.path, "at": seen.at, "raw": seen.raw.decode("utf-8", "replace")}
                log.write(json.dumps(line) + "\n")
                log.flush()

        stub = stack.enter_context(Stub(rule, port=given.port, on_request=write))
        sys.stdout.write(f"{stub.base_url}\n")
        sys.stdout.flush()
        with contextlib.suppress(KeyboardInterrupt):
            threading.Event().wait()


if __name__ == "__main__":
    main()
