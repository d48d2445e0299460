"""A whole wakeup in a real sandbox: its shell and its checks, and what is stored of it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from goalmode.domain.contract import Requirement
from goalmode.domain.exits import Exit, ExitReason
from goalmode.domain.goal import Goal, GoalSettings, GoalSpec
from goalmode.domain.profile import ModelProfile
from goalmode.domain.sandbox import SandboxMode
from goalmode.inspection.show import show
from goalmode.orchestrator.goals import create_goal
from goalmode.orchestrator.wake import Wake
from goalmode.state.store import Store
from goalmode.testing import ScriptedModel, call
from goalmode.wiring import begin_wakeup, run_wakeup, workshop
from tests.sandbox.conftest import SECRET

pytestmark = pytest.mark.slow

PROFILE = ModelProfile("scripted", "openai", "scripted", "http://127.0.0.1:9/v1")
SUCCESS = call("complete", status="success", summary="Done as wanted.")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(str(tmp_path / "store/goals.sqlite")) as made:
        yield made


def goal_of(store: Store, place: Path, mode: SandboxMode, check: str) -> Goal:
    workspace = place / "workspace"
    workspace.mkdir()
    settings = GoalSettings(sandbox=mode.value)
    return create_goal(
        store, GoalSpec("x", str(workspace), (Requirement("", check, check),), settings=settings)
    )


def wake(store: Store, goal: Goal, steps: list[object]) -> tuple[Exit, ScriptedModel]:
    model = ScriptedModel(steps)  # type: ignore[arg-type]
    shop = workshop(goal, PROFILE, environ={**os.environ, "MY_TOKEN": SECRET})
    begun = begin_wakeup(store, goal, profile=PROFILE, only_if_due=False, shop=shop)
    assert isinstance(begun, Wake)
    return anyio.run(run_wakeup, begun, model), model


def test_shell_and_checks_run_in_it(
    store: Store, tmp_path: Path, mode: SandboxMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both find the workspace and what calls before left in TMPDIR, and neither the store nor a secret."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    look = f"cat '{store.path}' || cat '{store.path.parent}'/*; test -z \"$MY_TOKEN\""
    goal = goal_of(
        store, tmp_path, mode, f"! cat '{store.path}' && test -z \"$MY_TOKEN\" && cat $TMPDIR/x out.txt"
    )
    ending, model = wake(
        store, goal, [call("shell", command=f"{look} && echo x | tee $TMPDIR/x > out.txt"), SUCCESS]
    )

    assert ending.reason is ExitReason.CURRENT_TASK_DONE, ending
    assert (tmp_path / "workspace/out.txt").read_text() == "x\n"
    assert [w["sandbox"] for w in show(store, goal.id)["wakeups"]] == [mode]
    told = str(model.requests[-1].messages)
    assert "exit code: 0" in told
    assert "SQLite" not in told
    assert list(place.iterdir()) == []


def test_the_agent_cannot_make_its_check_hold_from_outside(
    store: Store, tmp_path: Path, mode: SandboxMode
) -> None:
    """A check that asks for a file outside of the workspace is not met by a command that writes one."""
    wanted = tmp_path / "outside/file"
    wanted.parent.mkdir()
    goal = goal_of(store, tmp_path, mode, f"test -s '{wanted}'")
    wait = call("wait", seconds=60, reason="stuck")
    ending, _ = wake(store, goal, [call("shell", command=f"echo x > '{wanted}'; echo tried"), SUCCESS, wait])

    assert ending.reason is ExitReason.YIELDED
    assert list(wanted.parent.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="Linux only")
def test_goalmodes_own_memory_is_hidden() -> None:
    """Once it holds a key, no other process of the same user can read its environment or its memory."""
    script = (
        "import os, time, sys\n"
        "from goalmode.tools.capabilities import hide_memory\n"
        "from goalmode.tools.syscall import prctl\n"
        "from goalmode.state.owner import Owner\n"
        "if os.geteuid() == 0: os.setuid(65534); prctl(4, 1)\n"
        "hide_memory()\n"
        "print(prctl(3), open('/proc/self/stat').read().split()[0] == str(os.getpid()), flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "0 True\n"
        reader = f"open('/proc/{process.pid}/environ').read()"
        become = "import os; os.geteuid() == 0 and os.setuid(65534); "
        seen = subprocess.run([sys.executable, "-c", become + reader], capture_output=True, check=False)
        process.kill()

    assert (seen.returncode, b"PermissionError" in seen.stderr) == (1, True)
