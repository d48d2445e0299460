"""The floors: the least that a turn can cost. One request, one parsed reply, one tool result, one durable commit.

H does it with httpx, F with Python's own client. Their context is bounded: a system prompt and the last turns.
"""

from __future__ import annotations

import http.client
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from goalmode.bench import material
from goalmode.bench.measure import Reading, between

SYSTEM = "You pursue a goal over many turns. " * 60
KEPT_TURNS = 20
"""Turns in a request: with the system prompt about 12,000 tokens, as much as the narrow work window."""
MANY_TURNS = 75
"""Turns in a request that is as large as one of the default work window is on an average."""

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": material.LOOK,
            "description": "Look something up.",
            "parameters": {"type": "object", "properties": {"about": {"type": "string"}}},
        },
    }
]

Post = Callable[[bytes], bytes]


def floor(
    *,
    kind: Literal["F", "H"],
    base_url: str,
    directory: str,
    turns: int,
    warm: int,
    kept_turns: int = KEPT_TURNS,
) -> dict[str, float]:
    """Take `turns` turns after `warm` that are not counted; returns what they cost, see `goalmode.bench.measure`."""
    client = _httpx(base_url) if kind == "H" else _http_client(base_url)
    path = Path(directory) / f"floor-{kind}.sqlite"
    with client as post, closing(sqlite3.connect(path, isolation_level=None)) as store:
        for statement in ("PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL"):
            store.execute(statement)
        store.execute("CREATE TABLE turns (id INTEGER PRIMARY KEY, reply TEXT, result TEXT)")
        kept: list[list[dict[str, Any]]] = []
        start = Reading.now()
        for number in range(warm + turns):
            if number == warm:
                start = Reading.now()
            kept = [*kept[1 - kept_turns :], _turn(post, store, kept, number)]
        return between(start, Reading.now(), turns)


def _turn(
    post: Post, store: sqlite3.Connection, kept: list[list[dict[str, Any]]], number: int
) -> list[dict[str, Any]]:
    opening = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "Go on."}]
    messages = [*opening, *(message for turn in kept for message in turn)]
    request = {"model": "bench", "tools": TOOLS, "messages": messages, "max_tokens": 8_192}
    body = json.dumps(request, ensure_ascii=False, separators=(",", ":")).encode()
    reply = json.loads(post(body))["choices"][0]["message"]
    call = reply["tool_calls"][0]
    json.loads(call["function"]["arguments"])
    result = {"role": "tool", "tool_call_id": call["id"], "content": material.result(number)}
    store.execute("BEGIN IMMEDIATE")
    store.execute("INSERT INTO turns (reply, result) VALUES (?, ?)", (json.dumps(reply), json.dumps(result)))
    store.execute("COMMIT")
    return [reply, result]


@contextmanager
def _httpx(base_url: str) -> Iterator[Post]:
    import httpx

    url, headers = f"{base_url}/chat/completions", {"content-type": "application/json"}
    with httpx.Client(trust_env=False, verify=False) as client:
        yield lambda body: client.post(url, content=body, headers=headers).raise_for_status().content


@contextmanager
def _http_client(base_url: str) -> Iterator[Post]:
    parts = urlsplit(base_url)
    path, headers = f"{parts.path}/chat/completions", {"content-type": "application/json"}
    with closing(http.client.HTTPConnection(parts.hostname or "", parts.port)) as connection:

        def post(body: bytes) -> bytes:
            connection.request("POST", path, body, headers)
            return connection.getresponse().read()

        yield post
