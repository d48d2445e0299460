"""L, the floor that the libraries make: the steps of a turn, one after the other, with nothing of goalmode's.

One streamed request through aiohttp, its events parsed, a goal read, a reply and a result each packed and committed in
a thread, a lock and a fence before the tool, three texts counted. Nothing is checked, repaired, redacted, remembered or
told to anybody, no context is rendered anew, and a failure is a traceback.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
import sqlite3
import time
import zlib
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from goalmode.bench import material
from goalmode.bench.floors import KEPT_TURNS, SYSTEM, TOOLS
from goalmode.bench.measure import Reading, between
from goalmode.context.tokens import O200k

if TYPE_CHECKING:
    import aiohttp

_SCHEMA = """
CREATE TABLE goals (id INTEGER PRIMARY KEY, turns INT, input INT, output INT, fence INT, control TEXT, at TEXT);
CREATE TABLE wakeups (id INTEGER PRIMARY KEY, fence INT, ending TEXT, lease INT, reserved INT, turns INT, tokens INT);
CREATE TABLE turns (id INTEGER PRIMARY KEY, wakeup INT, seq INT, state TEXT, reply INT, results INT, usage TEXT);
CREATE TABLE calls (id INTEGER PRIMARY KEY, turn INT, call TEXT, tool TEXT, arguments TEXT, outcome TEXT, result INT);
CREATE TABLE bodies (id INTEGER PRIMARY KEY, data BLOB);
CREATE INDEX of_wakeup ON turns (wakeup, seq);
CREATE INDEX of_turn ON calls (turn);
INSERT INTO goals VALUES (1, 0, 0, 0, 1, 'none', '');
INSERT INTO wakeups VALUES (1, 1, NULL, 0, 0, 0, 0);
"""


def bare(*, base_url: str, directory: str, turns: int, warm: int) -> dict[str, float]:
    """Take `turns` turns after `warm` that are not counted; returns what they cost, see `goalmode.bench.measure`."""
    return asyncio.run(_turns(base_url, Path(directory), turns, warm))


async def _turns(base_url: str, directory: Path, turns: int, warm: int) -> dict[str, float]:
    import aiohttp

    kept: list[str] = []
    start = Reading.now()
    with closing(_Journal(directory)) as journal:
        async with aiohttp.ClientSession(trust_env=False) as session:
            for number in range(warm + turns):
                if number == warm:
                    start = Reading.now()
                said = await _turn(session, base_url, journal, kept, number)
                kept = [*kept, *said][-2 * KEPT_TURNS :]
            return between(start, Reading.now(), turns)


async def _turn(
    session: aiohttp.ClientSession, base_url: str, journal: _Journal, kept: Sequence[str], number: int
) -> tuple[str, str]:
    in_thread = partial(asyncio.get_running_loop().run_in_executor, None)
    await in_thread(journal.goal)
    reply = await _said(session, base_url, kept)
    [call] = reply["tool_calls"]
    arguments = call["function"]["arguments"]
    turn = await in_thread(journal.intent, number, reply)
    held = await in_thread(journal.enter, call["id"])
    json.loads(arguments)
    result = {"role": "tool", "tool_call_id": call["id"], "content": material.result(number)}
    for descriptor in held:
        os.close(descriptor)
    tokens = sum(map(O200k().count, (reply["content"], arguments, result["content"])))
    await in_thread(journal.outcome, turn, result, tokens)
    return _json(reply), _json(result)


async def _said(session: aiohttp.ClientSession, base_url: str, kept: Sequence[str]) -> dict[str, Any]:
    """One streamed reply. What was said before is not encoded again."""
    opening = _json({"role": "system", "content": SYSTEM}), _json({"role": "user", "content": "Go on."})
    head = _json({"model": "bench", "stream": True, "tools": TOOLS, "max_tokens": 8_192})
    body = f'{head[:-1]},"messages":[{",".join((*opening, *kept))}]}}'.encode()
    text, function, call_id = "", {"name": "", "arguments": ""}, ""
    url, headers = f"{base_url}/chat/completions", {"content-type": "application/json"}
    async with session.post(url, data=body, headers=headers) as response:
        async for event in _events(response.content):
            for choice in event.get("choices", ()):
                text += choice["delta"].get("content") or ""
                for call in choice["delta"].get("tool_calls", ()):
                    call_id = call.get("id") or call_id
                    for part in function:
                        function[part] += call["function"].get(part) or ""
    calls = [{"id": call_id, "type": "function", "function": function}]
    return {"role": "assistant", "content": text, "tool_calls": calls}


async def _events(content: aiohttp.StreamReader) -> AsyncIterator[dict[str, Any]]:
    left = b""
    async for piece in content.iter_any():
        *events, left = (left + piece).split(b"\n\n")
        for event in events:
            data = event.removeprefix(b"data: ")
            if data != b"[DONE]":
                yield json.loads(data)


class _Journal:
    """What of a turn is stored. Commits of two classes have connections of their own."""

    def __init__(self, directory: Path) -> None:
        path = directory / "bare.sqlite"
        self._full, self._normal, self._reader = (
            _connect(path, sync) for sync in ("FULL", "NORMAL", "NORMAL")
        )
        self._full.executescript(_SCHEMA)
        self._lock = directory / "lock"
        self._lock.touch(0o600)

    def close(self) -> None:
        for connection in (self._full, self._normal, self._reader):
            connection.close()

    def goal(self) -> Any:
        return self._reader.execute("SELECT * FROM goals WHERE id = 1").fetchone()

    def intent(self, seq: int, reply: dict[str, Any]) -> int:
        store, call = self._full, reply["tool_calls"][0]
        self._begin(store)
        usage = _json({"input": 1_000, "output": 100})
        values = (1, seq, "open", _put(store, _json(reply)), usage)
        row = store.execute(
            "INSERT INTO turns (wakeup, seq, state, reply, usage) VALUES (?, ?, ?, ?, ?)", values
        )
        digest = hashlib.sha256(call["function"]["arguments"].encode()).hexdigest()
        store.execute(
            "INSERT INTO calls (turn, call, tool, arguments) VALUES (?, ?, ?, ?)",
            (row.lastrowid, call["id"], call["function"]["name"], digest),
        )
        self._commit(store, turns=1)
        return int(row.lastrowid or 0)

    def enter(self, call_id: str) -> tuple[int, int]:
        """Lock, look at the fence again, note the call; returns the descriptors that hold the lock."""
        held = os.open(self._lock, os.O_RDONLY)
        fcntl.flock(held, fcntl.LOCK_SH)
        self._reader.execute("SELECT fence FROM goals WHERE id = 1").fetchone()
        noted = os.open(self._lock, os.O_WRONLY | os.O_APPEND)
        os.write(noted, f"{_json({'call': call_id})}\n".encode())
        return held, noted

    def outcome(self, turn: int, result: dict[str, Any], tokens: int) -> None:
        store = self._normal
        self._begin(store)
        store.execute(
            "UPDATE calls SET outcome = 'success', result = ? WHERE turn = ?",
            (_put(store, result["content"]), turn),
        )
        store.execute(
            "UPDATE turns SET state = 'done', results = ? WHERE id = ?", (_put(store, _json(result)), turn)
        )
        self._commit(store, turns=0, tokens=tokens)

    def _begin(self, store: sqlite3.Connection) -> None:
        """A transaction whose first statement is the guard."""
        store.execute("BEGIN IMMEDIATE")
        store.execute(
            "UPDATE wakeups SET lease = ?, reserved = ? WHERE id = 1 AND fence = 1 AND ending IS NULL",
            (time.monotonic_ns(), 8_192),
        )

    def _commit(self, store: sqlite3.Connection, *, turns: int, tokens: int = 1_100) -> None:
        """What the turn cost, and the end of the transaction."""
        store.execute(
            "UPDATE goals SET turns = turns + ?, input = input + 1000, output = output + 100, at = ? WHERE id = 1",
            (turns, str(time.time())),
        )
        store.execute(
            "UPDATE wakeups SET turns = turns + ?, tokens = tokens + ? WHERE id = 1", (turns, tokens)
        )
        store.execute("COMMIT")


def _connect(path: Path, sync: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    for pragma in ("page_size=1024", "journal_mode=WAL", f"synchronous={sync}"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _put(store: sqlite3.Connection, text: str) -> int | None:
    return store.execute("INSERT INTO bodies (data) VALUES (?)", (zlib.compress(text.encode()),)).lastrowid


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
