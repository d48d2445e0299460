"""The real package from PyPI, its loop, clients and tools, against a provider on loopback: make test-genericagent."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
import pytest

from goalmode.domain.exits import Exit, ExitReason, GoalStatus
from goalmode.domain.goal import Control, Goal, GoalSettings, GoalSpec
from goalmode.inspection import contexts, turns
from goalmode.inspection.show import show
from goalmode.inspection.why import why
from goalmode.orchestrator.goals import create_goal, stop_goal
from goalmode.orchestrator.skip import Skip
from goalmode.reflect.installed import Driver, load
from goalmode.settings import Settings
from goalmode.state import goals
from goalmode.state.store import Store
from goalmode.testing import Stub, steps
from goalmode.testing.script import CLOSING, closing_after

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("genericagent") is None, reason="the package is not installed here"),
    pytest.mark.filterwarnings("ignore"),
]

LONG = {"error": {"message": "The server is on fire. " * 30}}


def tool(name: str, said: str = "", /, **arguments: Any) -> steps.Step:
    """A call in the text protocol in which it talks to a model without native calls."""
    called = json.dumps({"name": name, "arguments": arguments})
    return steps.text(f"<summary>{said or name}</summary>\n<tool_use>\n{called}\n</tool_use>")


WRITE = steps.text(
    '<summary>write</summary>\n<file_content>\nhello\n</file_content>\n<tool_use>\n'
    '{"name": "file_write", "arguments": {"path": "a.txt"}}\n</tool_use>'
)  # fmt: skip
CLAIM = tool("complete", status="success", summary="a.txt is there", evidence=["a.txt"])
SAVE = tool("update_working_checkpoint", key_info="port 8080")
DONE = steps.text(CLOSING)


def read(number: int) -> steps.Step:
    said = "sub-item: all done" if number % 4 == 0 else "reading"
    return tool("file_read", said, path=f"f{number}.txt")


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """It reads its configuration when it is imported."""
    path = tmp_path_factory.mktemp("mykey") / "mykey.json"
    path.write_text("{}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GENERICAGENT_MYKEY", str(path))
        return load()


class World:
    """A goal, the package, and the provider that its clients talk to."""

    def __init__(self, package: Any, store: Store, goal: Goal, stub: Stub) -> None:
        self.package, self.store, self.goal, self.stub = package, store, goal, stub

    def wake(self, stop: Callable[[], Exit | None] = lambda: None) -> Exit | Skip:
        driver = Driver(self.package, self.store, self.now, Settings())
        self.events: list[Any] = []

        async def run() -> Exit | Skip:
            return await driver.wake(only_if_due=False, sink=self.events.append, stop=stop)

        return anyio.run(run)

    @property
    def now(self) -> Goal:
        return goals.get(self.store, self.goal.id)


@pytest.fixture
def make(package: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., World]]:
    opened: list[Any] = []

    def build(script: Any, *, deliverables: tuple[str, ...] = (), **settings: Any) -> World:
        stub = Stub(script)
        stub.__enter__()
        store = Store(str(tmp_path / "goals.sqlite"))
        opened.extend([stub, store])
        llmcore = __import__("genericagent.llmcore", fromlist=["mykeys"])
        config = {
            "apikey": "sk-test-0123456789abcdef",
            "apibase": stub.base_url,
            "model": "m",
            "max_retries": 0,
        }
        monkeypatch.setattr(llmcore, "mykeys", {"oai_config": config})
        workspace = tmp_path / "workspace"
        workspace.mkdir(exist_ok=True)
        spec = GoalSpec(
            "Write a.txt.", str(workspace), (), deliverables, settings=replace(GoalSettings(), **settings)
        )
        return World(package, store, create_goal(store, spec), stub)

    yield build
    for one in opened:
        one.close() if isinstance(one, Store) else one.__exit__()


def test_a_goal_is_worked_on_and_its_claim_ends_it(make: Any) -> None:
    """Its own tools do the work, ours save and claim; every page about goals shows it like any other."""
    world = make([tool("file_read", path="a.txt"), WRITE, SAVE, CLAIM], deliverables=("a.txt",))
    ending = world.wake()

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert world.stub.rejected == []
    found = turns.turns(world.store, world.now, full=True)
    assert [[(c["tool"], c["outcome"]) for c in turn["calls"]] for turn in found] == [
        [("file_read", "failed")],
        [("file_write", "success")],
        [("update_working_checkpoint", "success")],
        [("complete", "success")],
    ]
    assert show(world.store, world.goal.id)["status"] == "DONE"
    assert why(world.store, world.goal.id)["ending"]["exit_reason"] == "CURRENT_TASK_DONE"
    _, shown = contexts.stored_contexts(world.store, world.now, None, later=False)
    assert "Write a.txt." in shown[0].text
    assert "Write a.txt." in json.dumps(world.stub.requests[0].body)


def test_later_wakeups_keep_their_quota(make: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """A provider that closes as soon as it sees 10 completion phrases: alone it collapses, with goalmode not."""
    quota, limit = 12, 10
    world = make(closing_after(limit, lambda request, number: read(number)), max_turns=quota)
    alone = _alone(world)
    for _ in range(3):
        world.wake()

    kept = [
        row["turns"] for row in sorted(show(world.store, world.goal.id)["wakeups"], key=lambda r: r["seq"])
    ]
    with capsys.disabled():
        print(f"\nturns in each of three wakeups: GenericAgent 1.0.7 alone {alone}, with goalmode {kept}")  # noqa: T201
    assert kept == [quota] * 3
    assert alone[0] > 3
    assert alone[1:] == [1, 1]


def _alone(world: World) -> list[int]:
    """Requests of three tasks in a row, by its own agent: the history is kept from task to task."""
    agent = world.package.GeneraticAgent()
    agent.verbose = False
    threading.Thread(target=agent.run, daemon=True).start()
    counted = []
    for _ in range(3):
        before = len(world.stub.requests)
        shown = agent.put_task("Go on with the goal.")
        while "done" not in shown.get(timeout=60):
            pass
        counted.append(len(world.stub.requests) - before)
    return counted


@pytest.mark.parametrize(
    ("script", "settings", "reason", "status"),
    [
        ([DONE] * 3, {}, ExitReason.EARLY_NO_TOOL, GoalStatus.ACTIVE),
        ([read(1), read(2), SAVE], {"max_turns": 2}, ExitReason.MAX_TURNS_EXCEEDED, GoalStatus.ACTIVE),
        ([steps.Status(500, {"error": {"message": "no"}})], {}, ExitReason.BACKEND_ERROR, GoalStatus.ACTIVE),
        ([steps.Status(500, LONG)], {}, ExitReason.BACKEND_ERROR, GoalStatus.ACTIVE),
        ([steps.Status(401, LONG)], {}, ExitReason.BACKEND_ERROR, GoalStatus.BLOCKED),
        ([steps.text("<summary>cut</summary>")] * 3, {}, ExitReason.BACKEND_ERROR, GoalStatus.ACTIVE),
        (
            [tool("ask_user", question="Which port?", candidates=["80", "8080"])],
            {}, ExitReason.NEEDS_USER_INPUT, GoalStatus.WAITING_USER,
        ),
    ],
)  # fmt: skip
def test_each_ending_is_stored_with_its_reason(
    make: Any, script: Any, settings: Any, reason: ExitReason, status: GoalStatus
) -> None:
    world = make(script, **settings)
    ending = world.wake()

    assert (ending.reason, world.now.status) == (reason, status), ending


def test_a_tool_that_raises_blocks_the_goal(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its loop catches nothing; what was raised is stored."""

    def broken(self: Any, args: Any, response: Any) -> None:
        raise ValueError("the tool is broken")

    world = make([read(1)])
    monkeypatch.setattr(world.package.GenericAgentHandler, "do_file_read", broken)
    ending = world.wake()

    assert ending.reason is ExitReason.ENGINE_ERROR
    assert "the tool is broken" in ending.detail


@pytest.mark.parametrize(("count", "calls"), [(14, 0), (15, 1)])
def test_settlement_comes_at_15_turns_and_not_at_14(make: Any, count: int, calls: int) -> None:
    world = make([WRITE, *map(read, range(count - 2)), CLAIM, *[DONE] * calls], deliverables=("a.txt",))
    ending = world.wake()

    assert ending.reason is ExitReason.CURRENT_TASK_DONE
    assert len(world.stub.requests) == count + calls


def test_a_stop_ends_a_silent_model(make: Any) -> None:
    """`goalmode abort` from elsewhere is seen while its client waits for the provider."""
    world = make([steps.stall(steps.text("Late."), until=threading.Event())])
    asked: list[bool] = []

    def stop() -> Exit | None:
        if world.stub.requests and not asked:
            asked.append(True)
            stop_goal(world.store, world.now, Control.ABORT)
        return None

    ending = world.wake(stop)
    assert ending.reason is ExitReason.USER_ABORTED
    assert world.now.status is GoalStatus.ABORTED
