"""Small runs of what is measured: that it is goalmode's own path, forgets nothing, and copies what is alike."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.request import Request, urlopen

import pytest

import goalmode
import goalmode.state
from goalmode.bench import child, material
from goalmode.bench.bare import bare
from goalmode.bench.crowd import NOBODY, multiply
from goalmode.bench.floors import floor
from goalmode.bench.measure import (
    Failed,
    Reading,
    Spread,
    between,
    environment,
    high_water,
    in_child,
    peak_memory,
)
from goalmode.bench.path import Measured
from goalmode.bench.profile import shares
from goalmode.bench.provider import USAGE, Script, Server, prompted, provider
from goalmode.bench.recall import COUNT, answer_of, fact, facts_in, recalled, saved_facts
from goalmode.bench.syncs import between_requests, per_turn
from goalmode.inspection.show import show
from goalmode.inspection.turns import turns
from goalmode.state.goals import every
from goalmode.state.store import Store
from tests.bench.conftest import World


def test_facts_that_are_saved_early_come_back_late(world: Callable[..., World]) -> None:
    """Over teeth of a narrow work window and over wakeups: the late request holds all that the early one saved."""
    made = world(work_window=7_000)
    made.take(14)
    made.take(6)
    assert recalled(made.goal.tools.known) == 0

    made.script.ask()
    made.take(1)

    assert recalled(made.goal.tools.known) == COUNT


def test_the_recall_test_tells_what_was_forgotten() -> None:
    """It reads requests only, and each fact word by word."""
    body = json.dumps([fact(number) for number in range(0, COUNT, 2)]).encode()

    assert recalled(json.loads(answer_of(facts_in(body)))["known"]) == COUNT // 2
    assert recalled(fact(7).replace("07", "08")) == 0
    assert recalled("") == 0
    assert len(facts_in(json.dumps(saved_facts()).encode())) == COUNT


def test_measured_turns_are_turns_of_a_goal(world: Callable[..., World]) -> None:
    """Each is stored with its call, its result and its usage; no request is above its bound; what is streamed finely
    is the same.
    """
    made = world(bound=7_000, pieces=16, work_window=7_000)

    assert made.take(12) >= 12
    stored = turns(made.goal.store, made.goal.goal)
    worked = [one for one in stored if one["purpose"] == "work"]
    assert len(worked) == 12
    assert {call["outcome"] for one in worked for call in one["calls"]} == {"success"}
    found = made.ledger.summary()
    assert (found["requests"], found["over"]) == (len(stored), 0)


@contextmanager
def served(bodies: list[dict[str, Any]]) -> Iterator[str]:
    """The base URL of a provider in a thread; the requests to it are in `bodies`."""

    def note(body: bytes) -> Any:
        bodies.append(json.loads(body))
        return USAGE

    server = Server(Script(), note, {})
    threading.Thread(target=server.serve, daemon=True).start()
    try:
        yield server.base_url
    finally:
        server.close()


@pytest.mark.parametrize("kind", ["F", "H"])
def test_a_floor_makes_a_request_and_a_commit_a_turn(kind: Literal["F", "H"], tmp_path: Path) -> None:
    """With as many messages as its bound allows, and no more."""
    bodies: list[dict[str, Any]] = []

    with served(bodies) as url:
        found = floor(kind=kind, base_url=url, directory=str(tmp_path), turns=4, warm=2, kept_turns=3)

    assert [len(body["messages"]) for body in bodies] == [2, 4, 6, 8, 8, 8]
    assert found["cpu_ms"] >= 0


def test_the_libraries_floor_takes_the_steps_of_a_turn(tmp_path: Path) -> None:
    """Each reply and each result is said in the next request, and stored in two commits with what it cost."""
    bodies: list[dict[str, Any]] = []

    with served(bodies) as url:
        found = bare(base_url=url, directory=str(tmp_path), turns=4, warm=2)

    assert all(body["stream"] for body in bodies)
    assert [len(body["messages"]) for body in bodies] == [2, 4, 6, 8, 10, 12]
    assert bodies[5]["messages"][-1]["content"] == material.result(4)
    with closing(sqlite3.connect(tmp_path / "bare.sqlite")) as store:
        assert store.execute("SELECT count(*) FROM turns WHERE state = 'done'").fetchone() == (6,)
        assert store.execute("SELECT count(*), sum(outcome = 'success') FROM calls").fetchone() == (6, 6)
        assert store.execute("SELECT count(*) FROM bodies").fetchone() == (18,)
        assert store.execute("SELECT turns FROM wakeups").fetchone() == (6,)
    assert len((tmp_path / "lock").read_bytes().splitlines()) == 6
    assert found["cpu_ms"] >= 0


def test_a_turn_is_as_large_as_is_said() -> None:
    """Each text has its length, every turn another text, and P is the two kilobytes that targets speak of."""
    for number in (0, 1, 9_999):
        assert len(material.text(number)) == material.TEXT
        assert len(material.arguments(number)) == material.ARGUMENTS
        assert len(material.result(number)) == material.RESULT
        assert isinstance(json.loads(material.arguments(number))["about"], str)
    assert material.result(1) != material.result(2)
    assert 2_000 < material.mean_payload(50) < 2_300


@pytest.mark.parametrize(
    ("roles", "prompt"),
    [
        (["system", "user"], False),
        (["system", "user", "assistant", "tool"], False),
        (["system", "user", "assistant", "tool", "user"], True),
        (["system", "user", "assistant", "tool", "user", "assistant", "tool"], False),
    ],
)
def test_the_model_saves_when_it_is_asked_to(roles: list[str], prompt: bool) -> None:
    """A prompt stands behind a result; the context that begins a conversation is none."""
    text = 'says {"role":"user"}'
    body = json.dumps([{"role": role, "content": text} for role in roles], separators=(",", ":")).encode()

    assert prompted(body) is prompt


def test_a_provider_answers_whole_what_is_not_to_be_streamed() -> None:
    """And tells what it is asked of itself."""
    server = Server(Script(), lambda body: USAGE, {b"ledger": lambda: {"requests": 1}})
    threading.Thread(target=server.serve, daemon=True).start()
    try:
        with urlopen(
            Request(f"{server.base_url}/chat/completions", b'{"messages":[]}'), timeout=10
        ) as answer:
            said = json.load(answer)
        with urlopen(f"{server.base_url}/ledger", timeout=10) as answer:
            assert json.load(answer) == {"requests": 1}
    finally:
        server.close()

    assert said["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == material.LOOK


def test_fsyncs_are_counted_between_requests() -> None:
    """A call that another thread interrupts in the log is one; what comes before the first request is no turn's."""
    log = """\
1 fdatasync(5) = 0
1 sendto(9, "POST /v1/cha"..., 300, 0, NULL, 0) = 300
2 fsync(5 <unfinished ...>
1 sendto(8, "\\0", 1, 0, NULL, 0) = 1
2 <... fsync resumed>) = 0
1 sendto(9, "POST /v1/cha"..., 300, 0, NULL, 0) = 300
2 fdatasync(5) = 0
2 fdatasync(6) = 0
1 sendto(9, "POST /v1/cha"..., 300, 0, NULL, 0) = 300
2 fdatasync(5) = 0
"""

    assert between_requests(log.splitlines()) == [1, 2]
    assert per_turn([1, 1, 4, 1]) == (1, 1)


def test_a_profile_is_shared_out_over_libraries_and_rooms() -> None:
    """A room's and a library's own time is its own; that of built-in functions is their callers', or a library's."""
    room = (str(Path(goalmode.__file__).parent / "loop" / "turn.py"), 1, "ask")
    rows = (str(Path(goalmode.state.__file__).parent / "journal.py"), 1, "intent")
    library = (str(Path(pytest.__file__).parent.parent / "httpx" / "_client.py"), 1, "send")
    called_by_both = {room: (1, 1, 0.1, 0.1), library: (1, 1, 0.2, 0.2)}
    stats = {
        room: (1, 1, 0.1, 1.0, {}),
        rows: (1, 1, 0.2, 0.2, {room: (1, 1, 0.2, 0.2)}),
        library: (1, 1, 0.3, 0.3, {room: (1, 1, 0.3, 0.3)}),
        ("~", 0, "<built-in method builtins.len>"): (2, 2, 0.3, 0.3, called_by_both),
        ("~", 0, "<built-in method zlib.compress>"): (1, 1, 0.1, 0.1, {rows: (1, 1, 0.1, 0.1)}),
    }

    parts, functions = shares(stats)

    assert {name: round(share, 6) for name, share in parts.items()} == {
        "httpx": 0.5,
        "goalmode.loop": 0.2,
        "goalmode.state": 0.2,
        "zlib": 0.1,
    }
    assert next(iter(parts)) == "httpx"
    assert functions["goalmode.loop: turn.py ask"] == pytest.approx(0.1)


@pytest.mark.sqlite
def test_copied_goals_are_what_created_ones_are(tmp_path: Path) -> None:
    """Every copy shows what the first one shows, under an id of its own."""
    path = tmp_path / "goals.sqlite"
    with Store(str(path)) as store:
        Measured.new(store, str(tmp_path), NOBODY)
    multiply(path, 5)

    with Store(str(path)) as store:
        shown = [show(store, number) for number in range(1, 6)]
        assert len(every(store)) == 5
    assert len({one.pop("id") for one in shown}) == 5
    assert all(one == shown[0] for one in shown)


def test_readings_are_shared_out_over_turns() -> None:
    """In milliseconds and bytes; what /proc does not tell is not there."""
    start, end = Reading(1.0, 10.0, 100, 0, None), Reading(1.5, 12.0, 1_100, 0, None)

    assert between(start, end, 10) == {"cpu_ms": 50.0, "wall_ms": 200.0, "written": 100.0}
    assert Spread.of([3, 1, 2]) == Spread(2, 1, 3, 3)
    assert high_water("Name:\tpython\nVmHWM:\t   10240 kB\n") == 10 * 1024 * 1024
    assert high_water("Name:\tpython\n") is None
    assert peak_memory() > 1024 * 1024


def test_a_child_has_nothing_of_the_users_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No store, no key, no proxy, and directories of its own."""
    for name in ("GOALMODE_STORE", "OPENAI_API_KEY", "https_proxy"):
        monkeypatch.setenv(name, "theirs")

    found = environment(str(tmp_path))

    assert "theirs" not in found.values()
    assert found["XDG_DATA_HOME"].startswith(str(tmp_path))


def test_every_measurement_of_a_child_exists() -> None:
    """Each name leads to a function."""
    from importlib import import_module

    for place in child.MEASUREMENTS.values():
        module, _, function = place.partition(":")
        assert callable(getattr(import_module(module), function))


@pytest.mark.long
def test_a_measurement_that_fails_says_why(tmp_path: Path) -> None:
    """Measurements run in processes of their own; one that fails is no figure."""
    with provider("--tool", material.PUT) as there:
        cost = in_child(
            "floor", kind="H", base_url=there.base_url, directory=str(tmp_path), turns=3, warm=1, kept_turns=2
        )
    assert cost["wall_ms"] > 0
    with pytest.raises(Failed, match="FileNotFoundError"):
        in_child("resumed", base_url=NOBODY, store=str(tmp_path / "none.sqlite"), times=1)
