"""The process: when `check` wakes the goal, waits or leaves; stops, reloads, other tasks, other processes."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from goalmode.domain.budget import Limits
from goalmode.domain.exits import GoalStatus
from goalmode.domain.goal import Control
from goalmode.domain.redact import Redactor
from goalmode.errors import StoreBusy
from goalmode.inspection import turns
from goalmode.orchestrator.goals import resume_goal, stop_goal
from goalmode.reflect import session
from goalmode.settings import Settings
from goalmode.state import goals
from goalmode.state.store import Store
from tests.reflect.conftest import FILE, SECONDS, World, wait_for
from tests.reflect.test_wakeups import CLAIM, DONE, WORK, WRITE
from tests.reflect.upstream import Handler, HookModule, Loader, Reply, StepOutcome, call, schema


class Busy:
    """A model that is silent until it is let go, or until GenericAgent is told to stop."""

    def __init__(self, reply: Reply = WORK) -> None:
        self.asked, self.free, self._reply = threading.Event(), threading.Event(), reply

    def __call__(self, client: Any) -> Reply:
        self.asked.set()
        assert self.free.wait(SECONDS)
        return self._reply


def in_background(loader: Loader) -> threading.Thread:
    thread = threading.Thread(target=loader.step, daemon=True)
    thread.start()
    return thread


def test_an_abort_in_genericagent_pauses_the_goal(make: Any, load: Any) -> None:
    """It would be woken again within seconds otherwise; `resume` lets it go on."""
    busy = Busy()
    world = make([busy, WRITE, CLAIM], deliverables=("a.txt",))
    loader = load(world)
    thread = in_background(loader)
    assert busy.asked.wait(SECONDS)

    world.agent.abort()
    busy.free.set()
    thread.join(SECONDS)

    assert world.reasons() == ["USER_ABORTED"]
    assert world.now.status is GoalStatus.PAUSED
    assert loader.step() is None
    resume_goal(world.store, world.now)
    loader.step()
    assert world.reasons() == ["USER_ABORTED", "CURRENT_TASK_DONE"]


@pytest.mark.parametrize(
    ("control", "status", "then"),
    [(Control.PAUSE, GoalStatus.PAUSED, None), (Control.ABORT, GoalStatus.ABORTED, "/exit")],
)
def test_a_stop_from_elsewhere_ends_what_genericagent_does(
    make: Any, load: Any, control: Control, status: GoalStatus, then: str | None
) -> None:
    """`goalmode pause` and `abort` are seen while the model is silent, and its call is ended."""
    busy = Busy()
    world = make([busy])
    loader = load(world)
    thread = in_background(loader)
    assert busy.asked.wait(SECONDS)

    stop_goal(world.store, world.now, control)
    wait_for(lambda: world.agent.stop_sig)
    busy.free.set()
    thread.join(SECONDS)

    assert world.reasons() == ["USER_ABORTED"]
    assert world.now.status is status
    assert loader.step() == then


def test_a_goal_that_is_deleted_meanwhile_ends_the_task_and_then_the_process(make: Any, load: Any) -> None:
    """Nothing can be stored of it any more; the agent does not work on for nobody."""
    busy = Busy()
    world = make([busy])
    loader = load(world)
    thread = in_background(loader)
    assert busy.asked.wait(SECONDS)

    goals.delete(world.store, world.now)
    wait_for(lambda: world.agent.stop_sig)
    busy.free.set()
    thread.join(SECONDS)

    assert loader.step() == "/exit"
    assert "deleted" in world.lines[-1]


def test_nothing_runs_after_a_tool_whose_goal_was_deleted(
    make: Any, load: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tool that runs is told to stop, and the rest of its reply is left undone."""
    started = threading.Event()

    def slow(handler: Handler, args: Any, response: Any) -> StepOutcome:
        started.set()
        wait_for(lambda: bool(handler.code_stop_signal))
        return StepOutcome({"status": "error"}, "stopped")

    monkeypatch.setattr(Handler, "do_code_run", slow)
    world = make([Reply("", [*WORK.calls, *WRITE.calls])])
    loader = load(world)
    thread = in_background(loader)
    assert started.wait(SECONDS)

    goals.delete(world.store, world.now)
    thread.join(SECONDS)

    assert not (world.workspace / "a.txt").exists()
    assert loader.step() == "/exit"


def test_a_second_process_waits(make: Any, load: Any, tmp_path: Path) -> None:
    """Two processes on one goal: one works, the other is told who does and starts no task."""
    busy, lines = Busy(), []
    world = make([busy, WRITE, CLAIM], deliverables=("a.txt",))
    thread = in_background(load(world))
    assert busy.asked.wait(SECONDS)

    idle = SimpleNamespace(agent=SimpleNamespace(**_idle()), TOOLS_SCHEMA=schema())
    with Store(world.store.url, clock=world.clock) as other:
        second = session.Session(
            session.Host(idle, HookModule()), other, world.goal.uid, Settings(), lines.append
        )
        assert second.check() is None
    busy.free.set()
    thread.join(SECONDS)

    assert "waits (leased)" in lines[0]
    assert world.reasons() == ["CURRENT_TASK_DONE"]


def _idle() -> dict[str, Any]:
    client = SimpleNamespace(backend=SimpleNamespace(history=[], model="m"))
    queue = SimpleNamespace(empty=lambda: True)
    return {
        "llmclient": client,
        "llmclients": [client],
        "is_running": False,
        "task_queue": queue,
        "abort": lambda: None,
    }


def test_a_back_off_is_waited_out(make: Any, load: Any) -> None:
    """A goal that is not due makes no task, and says so once."""
    world = make([DONE, DONE, DONE, WRITE, CLAIM], deliverables=("a.txt",))
    loader = load(world)
    loader.step()

    assert [loader.step(), loader.step()] == [None, None]
    assert [line for line in world.lines if "not_due" in line] == [world.lines[-1]]
    world.clock.advance(60)
    assert loader.step() == f"[goalmode {world.goal.uid} wakeup 2]"
    assert world.reasons()[-1] == "CURRENT_TASK_DONE"


def test_a_reload_in_the_middle_changes_nothing(make: Any, load: Any, tmp_path: Path) -> None:
    """The file is run again into the same namespace when it changes: hooks stay registered once."""
    copy = tmp_path / "module.py"
    shutil.copy(FILE, copy)
    world = make([WORK, WRITE, CLAIM], deliverables=("a.txt",), max_turns=1)
    loader = load(world, copy)
    loader.step()
    before = {event: len(found) for event, found in world.checkout.hooks.registry.items()}

    copy.write_text(copy.read_text() + "\n# changed\n")
    loader.step()

    assert {event: len(found) for event, found in world.checkout.hooks.registry.items()} == before
    assert set(before.values()) == {1}
    assert len(world.reasons()) == 2


def test_a_task_that_is_no_longer_waited_for_goes_on(make: Any, load: Any) -> None:
    """After 2,200 s of silence GenericAgent gives a result that is an error, while the task still runs."""
    busy = Busy(WRITE)
    world = make([busy, CLAIM], deliverables=("a.txt",))
    loader = load(world, drain_seconds=0.3)
    loader.step()

    assert busy.asked.wait(SECONDS)
    assert world.reasons() == ["None"]
    assert loader.step() is None
    busy.free.set()
    wait_for(lambda: world.reasons() == ["CURRENT_TASK_DONE"] and not world.agent.is_running)
    assert loader.step() == "/exit"


def test_a_reload_in_the_middle_of_a_wakeup_keeps_it(make: Any, load: Any, tmp_path: Path) -> None:
    """The file changes while a task runs that is no longer waited for: it is the same wakeup, and ends as such."""
    copy = tmp_path / "module.py"
    shutil.copy(FILE, copy)
    busy = Busy(WRITE)
    world = make([busy, CLAIM], deliverables=("a.txt",))
    loader = load(world, copy, drain_seconds=0.3)
    loader.step()
    assert busy.asked.wait(SECONDS)
    copy.write_text(copy.read_text() + "\n# changed\n")

    assert loader.step() is None
    assert len(world.checkout.hooks.registry["agent_before"]) == 1
    busy.free.set()
    wait_for(lambda: world.reasons() == ["CURRENT_TASK_DONE"] and not world.agent.is_running)
    assert loader.step() == "/exit"


def test_a_stopped_task_that_hangs_is_told(make: Any, load: Any) -> None:
    """A tool of its that cannot be ended keeps its only thread: nothing else is begun, and a line says why."""
    busy = Busy()
    world = make([busy, WRITE, CLAIM], deliverables=("a.txt",))
    loader = load(world, drain_seconds=0.3)
    loader.step()
    assert busy.asked.wait(SECONDS)
    stop_goal(world.store, world.now, Control.PAUSE)
    wait_for(lambda: world.reasons() == ["USER_ABORTED"])
    resume_goal(world.store, world.now)

    wait_for(lambda: loader.step() is None and "still busy" in world.lines[-1])
    busy.free.set()
    wait_for(lambda: not world.agent.is_running)
    loader.step()
    assert world.reasons() == ["USER_ABORTED", "CURRENT_TASK_DONE"]


def test_a_task_that_ends_unheard_is_no_wakeup_for_ever(make: Any, load: Any) -> None:
    """It ended by an exception after nobody waited for it any more: the next look closes the wakeup."""
    busy = Busy(Reply("", [call("breaks")]))
    world = make([busy])
    loader = load(world, drain_seconds=0.3)
    loader.step()
    assert busy.asked.wait(SECONDS)
    busy.free.set()
    wait_for(lambda: not world.agent.is_running)

    assert loader.step() is None
    assert world.reasons() == ["ENGINE_ERROR"]


def test_other_tasks_of_the_same_agent_are_left_alone(make: Any, load: Any) -> None:
    """Its hub may give it tasks: they get its own tools, and none of our words."""
    world = make([WRITE, CLAIM, Reply("Hello.")], deliverables=("a.txt",))
    original = [tool["function"]["name"] for tool in world.checkout.main.TOOLS_SCHEMA]
    load(world).step()
    world.agent.put_task("Say hello.").get(timeout=SECONDS)

    assert world.client.requests[-1]["tools"] == original
    assert "goalmode" not in world.client.requests[-1]["history"][-1]["content"]
    assert world.reasons() == ["CURRENT_TASK_DONE"]


def test_a_busy_agent_is_not_given_a_second_task(make: Any, load: Any) -> None:
    """Its queue would keep the goal leased while it does something else."""
    busy = Busy(Reply("Hello."))
    world = make([busy, WRITE, CLAIM], deliverables=("a.txt",))
    shown = world.agent.put_task("Say hello.")
    assert busy.asked.wait(SECONDS)
    loader = load(world)

    assert loader.step() is None
    busy.free.set()
    while "done" not in shown.get(timeout=SECONDS):
        pass
    wait_for(lambda: not world.agent.is_running)
    assert loader.step() is not None


def test_a_process_that_ends_leaves_its_goal_due(make: Any, load: Any) -> None:
    """Ctrl-C on the scheduler interrupts the wakeup, and does not count against the goal."""
    busy = Busy()
    world = make([busy])
    in_background(load(world))
    assert busy.asked.wait(SECONDS)

    assert session._session is not None
    session._session.close()
    busy.free.set()

    assert world.reasons() == ["INTERRUPTED"]
    assert (world.now.status, world.now.failures) == (GoalStatus.ACTIVE, 0)


def test_a_store_that_is_busy_is_looked_at_again(
    make: Any, load: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make([WRITE, CLAIM], deliverables=("a.txt",))
    loader = load(world)

    def busy(*_: object) -> None:
        raise StoreBusy("another process holds it")

    with monkeypatch.context() as patch:
        patch.setattr(goals, "get", busy)
        assert [loader.step(), loader.step()] == [None, None]
    assert world.lines == ["cannot go on just now: another process holds it"]
    assert loader.step() is not None


def test_a_failure_of_our_own_is_told_once(make: Any, load: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """GenericAgent would print it every few seconds, for ever."""
    world = make([WRITE, CLAIM], deliverables=("a.txt",))
    loader = load(world)

    def fails(*_: object) -> None:
        raise ZeroDivisionError("oops")

    with monkeypatch.context() as patch:
        patch.setattr(goals, "get", fails)
        assert [loader.step(), loader.step()] == [None, None]
    assert world.lines == ["cannot go on: goalmode itself failed: ZeroDivisionError: oops"]
    assert loader.step() is not None


def test_a_key_that_is_new_is_struck_out_too(make: Any, load: Any) -> None:
    """GenericAgent reads its keys again when their file changes."""
    key = "sk-new-key-9876543210fedcba"
    world = make([Reply(f"The key is {key}.", WRITE.calls), CLAIM], deliverables=("a.txt",))
    world.client.backend.api_key = key
    load(world).step()

    assert world.reasons() == ["CURRENT_TASK_DONE"]
    assert key not in str(turns.turns(world.store, world.now, full=True))


def test_what_the_store_knew_before_is_struck_out_still(make: Any, load: Any) -> None:
    """GenericAgent's keys are learned beside it."""
    world = make([Reply("ok", WRITE.calls), CLAIM], deliverables=("a.txt",))
    world.store.redact = Redactor(["known-before"])
    world.client.backend.api_key = "sk-new-key-9876543210fedcba"
    load(world).step()

    assert world.store.redact("known-before sk-new-key-9876543210fedcba") == "[redacted] [redacted]"


def test_a_limit_of_money_without_a_price_is_told(make: Any, load: Any) -> None:
    """The goal waits until its model has a price; GenericAgent is not asked."""
    world = make([], limits=Limits(cost_micro=1_000))

    assert load(world).step() is None
    assert "price" in world.lines[0]
    assert world.reasons() == []


@pytest.mark.parametrize("client", [None, {"mixin_cfg": {}}])
def test_an_agent_without_a_model_is_given_nothing(make: Any, load: Any, client: Any) -> None:
    """It has none, or one whose configuration is wrong: then there is a dictionary in its place."""
    world = make([])
    world.agent.llmclient = client

    assert load(world).step() is None
    assert "mykey.py" in world.lines[0]


def test_where_goalmode_is_not_installed_its_file_says_so() -> None:
    """GenericAgent may run in another Python: one line, which names that one."""
    command = [sys.executable, "-I", "-S", str(FILE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f"{sys.executable} -m pip install goalmode" in done.stderr


@pytest.fixture
def main(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """GenericAgent as the main program, before any session."""
    found = SimpleNamespace(agent=SimpleNamespace(**_idle()), TOOLS_SCHEMA=schema())
    monkeypatch.setitem(sys.modules, "__main__", found)  # type: ignore[arg-type]
    plugins, hooks = ModuleType("plugins"), ModuleType("plugins.hooks")
    hooks.register = HookModule().register  # type: ignore[attr-defined]
    plugins.hooks = hooks  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "plugins", plugins)
    monkeypatch.setitem(sys.modules, "plugins.hooks", hooks)
    monkeypatch.setattr(session, "_session", None)
    return found


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "--goal ID"),
        ({"goal": "nope"}, "nope"),
        ({"goal": "nope", "store": "ftp://x"}, "store"),
    ],
)
def test_what_it_cannot_work_with_is_one_line(
    main: Any, arguments: dict[str, str], told: str, make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first load ends the process; a line says why."""
    with pytest.raises(SystemExit) as raised:
        session.start(arguments)
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_store_is_not_made_by_looking_for_a_goal(
    main: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOALMODE_STORE", str(tmp_path / "none.sqlite"))
    with pytest.raises(SystemExit, match="there is no store"):
        session.start({"goal": "abc"})
    assert not (tmp_path / "none.sqlite").exists()


def test_a_checkout_without_hooks_is_refused(
    main: Any, world_of: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An old one would run the goal as if it were any task."""
    monkeypatch.setitem(sys.modules, "plugins", None)
    monkeypatch.delitem(sys.modules, "plugins.hooks")
    with pytest.raises(SystemExit, match=r"no plugins/hooks\.py"):
        session.start({"goal": world_of.goal.uid, "store": world_of.store.url})


def test_it_starts_once(main: Any, world_of: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The id may stand in the environment, and a second `init` after a reload keeps the session."""
    monkeypatch.setenv("GOALMODE_GOAL", world_of.goal.uid[:5])
    session.start({"store": world_of.store.url})
    first = session._session
    session.start({"store": world_of.store.url})

    assert first is not None
    assert session._session is first


@pytest.fixture
def world_of(make: Any, main: Any, monkeypatch: pytest.MonkeyPatch) -> World:
    made: World = make([])
    monkeypatch.setattr(session, "_session", None)
    return made
