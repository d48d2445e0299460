"""A provider on loopback that does no work, in a process of its own: its time is nobody's.

It speaks OpenAI's chat completions over kept connections, streamed or whole. What it says is a matter of the request's
last message: after a result it works on, after a prompt of the host it saves. With `--count` it also keeps a ledger of
the requests (`goalmode.bench.ledger`), and with `--facts` it saves facts early and is asked for them late.

As a program, `python -m goalmode.bench.provider` prints its base URL and serves until its standard input ends.
"""

from __future__ import annotations

import argparse
import itertools
import json
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any
from urllib.request import ProxyHandler, build_opener

from goalmode.bench import material
from goalmode.bench.recall import FACTS, answer_of, facts_in, saved_facts

USAGE = {"prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100}
"""Where nobody counts: a plausible figure."""

SAVED_AT = 5
"""The turn of work in which the facts are saved."""

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_SAVED = {
    "summary": "The records are read one by one; see the notes.",
    "next_steps": ["read the next record"],
}
_SAVE = "update_working_checkpoint"


@dataclass(frozen=True, slots=True)
class Said:
    """One reply."""

    text: str
    tool: str
    arguments: str


class Script:
    """What the model does with a request: it works, saves where it is asked to, and remembers where that is tested.

    Args:
        tool: that a turn of work calls.
        facts: save them in an early turn of work.

    Attributes:
        asked: the next turn of work tells the facts that its request holds.
    """

    def __init__(self, tool: str = material.LOOK, *, facts: bool = False) -> None:
        self._tool, self._facts = tool, facts
        self._turns, self._saves = itertools.count(1), itertools.count(1)
        self.asked = False

    def ask(self) -> None:
        self.asked = True

    def __call__(self, body: bytes) -> Said:
        if prompted(body):
            number = next(self._saves)
            saved = {**_SAVED, "summary": f"{_SAVED['summary']} Saved {number} times."}
            return Said(material.text(number), _SAVE, json.dumps(saved))
        number = next(self._turns)
        if self._facts and number == SAVED_AT:
            return Said(material.text(number), _SAVE, json.dumps(saved_facts()))
        if self.asked:
            self.asked = False
            return Said(material.text(number), FACTS, answer_of(facts_in(body)))
        return Said(material.text(number), self._tool, material.arguments(number))


def prompted(body: bytes) -> bool:
    """Whether the last message is a prompt behind a conversation, and not the context that begins one."""
    user, result = body.rfind(b'{"role":"user"'), body.rfind(b'{"role":"tool"')
    return user > result >= 0


class Server:
    """Answers on one thread for each connection.

    Args:
        note: told every request; returns the usage to report.
        told: what a GET of a path is answered with, by the path's last part.
        pieces: characters of text or arguments in one event of a stream; 0: all in one.
    """

    def __init__(
        self,
        say: Callable[[bytes], Said],
        note: Callable[[bytes], Any],
        told: Mapping[bytes, Callable[[], Any]],
        pieces: int = 0,
    ) -> None:
        self._say, self._note, self._told, self._pieces = say, note, told, pieces
        self._numbers, self._lock = itertools.count(1), threading.Lock()
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=128)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/v1"

    def serve(self) -> None:
        """Accept connections until `close`."""
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def close(self) -> None:
        """Accept no more connections."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _converse(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            for head, body in _requests(connection):
                connection.sendall(self._answer(head, body))

    def _answer(self, head: bytes, body: bytes) -> bytes:
        if head.startswith(b"GET"):
            path = head.split(maxsplit=2)[1]
            return _whole(json.dumps(self._told[path.rpartition(b"/")[2]]()).encode())
        with self._lock:
            said = self._say(body)
            number, usage = next(self._numbers), self._note(body)
        if b'"stream":true' not in body[:300]:
            return _whole(_completion(said, number, usage))
        return _streamed(said, number, usage, self._pieces)


def _requests(connection: socket.socket) -> Iterator[tuple[bytes, bytes]]:
    """Head and body of each request on a connection, until the client closes it."""
    buffer = b""
    while True:
        while b"\r\n\r\n" not in buffer:
            more = connection.recv(65_536)
            if not more:
                return
            buffer += more
        head, _, rest = buffer.partition(b"\r\n\r\n")
        found = _LENGTH.search(head)
        length = int(found[1]) if found else 0
        parts, have = [rest], len(rest)
        while have < length:
            parts.append(connection.recv(262_144))
            have += len(parts[-1])
        whole = b"".join(parts)
        yield head, whole[:length]
        buffer = whole[length:]


def _whole(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
        len(body),
        body,
    )


def _completion(said: Said, number: int, usage: Any) -> bytes:
    function = {"name": said.tool, "arguments": said.arguments}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    message = {"role": "assistant", "content": said.text, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    whole = {"id": f"chatcmpl-{number}", "object": "chat.completion", "choices": [choice], "usage": usage}
    return json.dumps(whole).encode()


def _streamed(said: Said, number: int, usage: Any, pieces: int) -> bytes:
    envelope = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": 0, "model": "bench"}

    def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
        return _event({**envelope, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

    def called(**call: Any) -> bytes:
        return event({"tool_calls": [{"index": 0, **call}]})

    head = {"name": said.tool, "arguments": ""}
    events = [
        event({"role": "assistant", "content": ""}),
        *(event({"content": piece}) for piece in _cut(said.text, pieces)),
        called(id=f"call_{number}", type="function", function=head),
        *(called(function={"arguments": piece}) for piece in _cut(said.arguments, pieces)),
        event({}, "tool_calls"),
        _event({**envelope, "choices": [], "usage": usage}),
        b"data: [DONE]\n\n",
    ]
    sent = b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in events)
    return (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n%b0\r\n\r\n"
        % sent
    )


def _event(value: dict[str, Any]) -> bytes:
    return b"data: %b\n\n" % json.dumps(value).encode()


def _cut(text: str, pieces: int) -> list[str]:
    return [text[at : at + pieces] for at in range(0, len(text), pieces)] if pieces else [text]


@dataclass(frozen=True, slots=True)
class Provider:
    """A running provider."""

    base_url: str


def told(base_url: str, what: str) -> Any:
    """What a provider says of itself: its `ledger`; or have it `ask` for the facts in the next turn."""
    with build_opener(ProxyHandler({})).open(f"{base_url}/{what}", timeout=60) as answer:
        return json.load(answer)


@contextmanager
def provider(*options: str) -> Iterator[Provider]:
    """A provider in a process of its own, for as long as the block lasts."""
    command = [sys.executable, "-m", "goalmode.bench.provider", *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Provider(process.stdout.readline().strip())
        finally:
            process.terminate()


def _uncounted(_body: bytes) -> Any:
    return USAGE


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until standard input ends."""
    parser = argparse.ArgumentParser(prog="python -m goalmode.bench.provider")
    parser.add_argument("--tool", default=material.LOOK)
    parser.add_argument("--pieces", type=int, default=0)
    parser.add_argument("--count", type=int, default=0, metavar="BOUND")
    parser.add_argument("--facts", action="store_true")
    given = parser.parse_args(arguments)
    script = Script(given.tool, facts=given.facts)
    answers: dict[bytes, Callable[[], Any]] = {b"ask": script.ask}
    note: Callable[[bytes], Any] = _uncounted
    if given.count:
        from goalmode.bench.ledger import Ledger

        ledger = Ledger(given.count)
        note, answers[b"ledger"] = ledger.note, ledger.summary
    server = Server(script, note, answers, given.pieces)
    sys.stdout.write(f"{server.base_url}\n")
    sys.stdout.flush()
    threading.Thread(target=server.serve, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
