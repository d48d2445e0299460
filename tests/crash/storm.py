"""Servers that are killed again and again, the goals that they serve, and a provider that answers them all.

What is outside of the store bears witness: the tools' marks, and the results that came back in requests.
"""

from __future__ import annotations

import os
import random
import re
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from goalmode.cli.main import call as command_line
from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Goal, GoalSettings, GoalSpec
from goalmode.domain.wake import BACK_OFF
from goalmode.orchestrator.goals import create_goal, resume_goal
from goalmode.state import goals
from goalmode.state.store import Store
from goalmode.testing import Stub, steps
from goalmode.testing.server import Seen
from goalmode.testing.steps import Step
from tests import stores
from tests.crash.marks import FILE, SHELL, Marks
from tests.state.processes import PATIENCE, Other, another, until

SERVERS = 3
CONCURRENCY = 3
ACTIVE = 8
"""Goals that are under way as long as there are kills to come."""

TURNS = 6
"""Of a wakeup."""

PATIENCE_SECONDS = 3.0
"""For the requests that a kill waits for; where none come any more, it does not."""

SECONDS_TO_FINISH = 300.0

Plan = tuple[tuple[str, ...], ...]
"""What a goal has to do: the words that each reply is to mark, until all of them are."""


def serve(pipe: Connection, url: str, log: str, environment: Mapping[str, str]) -> None:
    """`goalmode serve`, in this process."""
    os.environ.update(environment)
    out = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for descriptor in (1, 2):
        os.dup2(out, descriptor)
    pipe.send("up")
    options = ("--poll", "0.1s", "--concurrency", str(CONCURRENCY), "--grace", "10s")
    os._exit(command_line(["serve", "--store", url, "--json", *options]))


@dataclass
class Provider:
    """Lets every goal do what its plan says next, by the marks that it has left; saves and claims in between.

    Attributes:
        came_back: the ids of the calls whose results were in a request: their outcomes had been committed.
        asked: requests so far.
    """

    seed: int
    workspaces: dict[int, Path] = field(default_factory=dict)
    came_back: set[str] = field(default_factory=set)
    asked: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _chance: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    def plan(self, goal: int) -> Plan:
        chance = random.Random(f"{self.seed}:{goal}")
        sizes = [chance.choice((1, 1, 1, 3)) for _ in range(chance.randrange(4, 9))]
        return tuple(tuple(f"{goal}-{n}-{i}" for i in range(size)) for n, size in enumerate(sizes))

    def see(self, seen: Seen) -> None:
        results = {m["tool_call_id"] for m in seen.body.get("messages", ()) if m["role"] == "tool"}
        with self._lock:
            self.came_back |= results

    def answer(self, request: Mapping[str, Any], _number: int) -> Step:
        with self._lock:
            self.asked += 1
            delay = self._chance.choice((None, None, 0.02, 0.1))
            work = f"sleep {self._chance.choice((0, 0, 0.02, 0.1))}"
        step = self._next(request, work)
        return step if delay is None else steps.stall(step, until=delay)

    def _next(self, request: Mapping[str, Any], work: str) -> steps.Completion:
        said = str([message.get("content") for message in request["messages"]])
        [number] = {int(found) for found in re.findall(r"marks of goal (\d+)\.", said)}
        save = steps.tool("update_working_checkpoint", {"key_info": f"goal {number} is under way"})
        if "shell" not in {tool["function"]["name"] for tool in request["tools"]}:
            return save
        done = Marks.of(self.workspaces[number]).done
        for words in self.plan(number):
            missing = [word for word in words if word not in done]
            if missing:
                made = [("shell", {"command": SHELL.format(word=word, work=work)}) for word in missing]
                return steps.tools(made)
        return steps.tool("complete", {"status": "success", "summary": "All marks are left."})


@dataclass
class Storm:
    """The whole of it. All that is random comes from `seed`.

    Attributes:
        kept: what was committed before some kill: turns that were done, and calls with an outcome.
        resumed: goals that somebody had to resume: their processes had died too often in a row.
    """

    url: str
    root: Path
    seed: int
    kills: int = 0
    resumed: int = 0
    kept: dict[str, dict[int, Any]] = field(default_factory=lambda: defaultdict(dict))
    stopped: list[int | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)
        self.provider = Provider(self.seed)
        self._logs: dict[int, Path] = {}

    def rage(self, kills: int) -> None:
        """Kill servers at random points, each of them replaced at once; then let the rest finish everything."""
        with ExitStack() as stack:
            stub = stack.enter_context(Stub(self.provider.answer, on_request=self.provider.see))
            store = stack.enter_context(Store(self.url))
            servers = [stack.enter_context(self._server(n)) for n in range(SERVERS)]
            while self.kills < kills:
                self._tend(store, stub.base_url, more=True)
                self._wait_for_some_requests()
                self._keep()
                victim = self.chance.randrange(SERVERS)
                servers[victim].kill()
                self.kills += 1
                servers[victim] = stack.enter_context(self._server(SERVERS + self.kills))
            end = time.monotonic() + SECONDS_TO_FINISH
            while self._tend(store, stub.base_url, more=False):
                assert time.monotonic() < end, f"not finished: {stores.rows(self.url, UNFINISHED)}"
                time.sleep(0.1)
            for server in servers:
                until(partial(self._serves, server), what="it serves, and can be told to stop")
                os.kill(server.pid, signal.SIGTERM)
                server.process.join(PATIENCE)
                self.stopped.append(server.process.exitcode)
            assert stub.rejected == []

    @contextmanager
    def _server(self, number: int) -> Iterator[Other]:
        log = self.root / f"serve-{number}.log"
        with another(serve, self.url, str(log), {}) as server:
            assert server.hear() == "up"
            self._logs[server.pid] = log
            yield server

    def _serves(self, server: Other) -> bool:
        return '"serving"' in self._logs[server.pid].read_text()

    def _wait_for_some_requests(self) -> None:
        target = self.provider.asked + self.chance.randrange(1, 12)
        end = time.monotonic() + PATIENCE_SECONDS
        while self.provider.asked < target and time.monotonic() < end:
            time.sleep(0.002)
        time.sleep(self.chance.uniform(0, 0.05))

    def _tend(self, store: Store, url: str, *, more: bool) -> int:
        """What a user does meanwhile: resume what waits or is blocked, ask for new goals. Returns how many are open."""
        open_ones = [goals.get(store, number) for number in stores.rows(self.url, OPEN)]
        for goal in open_ones:
            if goal.status is GoalStatus.BLOCKED or goal.wake_reason == BACK_OFF:
                resume_goal(store, goal)
                self.resumed += 1
        missing = ACTIVE - len(open_ones) if more else 0
        for _ in range(missing):
            self._new_goal(store, url)
        return len(open_ones) + missing

    def _new_goal(self, store: Store, url: str) -> Goal:
        number = len(self.provider.workspaces) + 1
        workspace = self.root / f"goal-{number}"
        workspace.mkdir()
        self.provider.workspaces[number] = workspace
        settings = replace(
            GoalSettings(), model="openai:stub", base_url=url, max_turns=TURNS, user_tools=False
        )
        objective = f"Leave the marks of goal {number}."
        return create_goal(store, GoalSpec(objective, str(workspace), (), (FILE,), settings=settings))

    def _keep(self) -> None:
        """Remember what is committed now; of the older rows that was done before."""
        for table, statement in COMMITTED.items():
            known = self.kept[table]
            newest = max(known, default=0)
            for id, *rest in stores.rows(self.url, f"{statement} AND id > ?", newest - RECENT):
                known[id] = rest


OPEN = "SELECT id FROM goals WHERE status <> 'DONE'"

UNFINISHED = """SELECT g.uid, g.status, g.control, g.wake_reason, g.next_wakeup_at, w.seq, w.owner, w.started_at
FROM goals g LEFT JOIN wakeups w ON w.goal = g.id AND w.exit_reason IS NULL WHERE g.status <> 'DONE'"""

COMMITTED = {
    "turns": "SELECT id, wakeup, seq, purpose, state, input, cached, output, reply, results FROM turns "
    "WHERE state = 'done'",
    "tool_calls": "SELECT id, wakeup, turn, position, idem_key, outcome, exit_code, result FROM tool_calls "
    "WHERE outcome IS NOT NULL",
}
"""What must be there for ever."""

RECENT = 200
"""Rows below the newest one that may still have been under way when it was looked last."""
