"""A cage: a home with keys in it, a store, a workspace, and commands that are run there in a real sandbox."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import anyio
import pytest

from goalmode.domain.contract import Requirement
from goalmode.domain.goal import Goal, GoalSettings, GoalSpec
from goalmode.domain.sandbox import SandboxMode, SandboxSettings
from goalmode.orchestrator.goals import create_goal
from goalmode.state.locks import LockGate
from goalmode.state.store import Store
from goalmode.tools import bwrap, landlock
from goalmode.tools.confinement import Confinement
from goalmode.tools.launch import CommandResult, run_command
from goalmode.tools.sandbox import Sandbox, sandbox_for
from tests.held import Begun

SECRET = "a-canary-that-nobody-may-see"
MODES = (SandboxMode.BWRAP, SandboxMode.LANDLOCK)


def missing(mode: SandboxMode, *, network: bool = True) -> str:
    """Why a mode cannot be tested here."""
    return bwrap.problem(network=network) if mode is SandboxMode.BWRAP else landlock.problem()


def until(true: Callable[[], bool], seconds: float = 120) -> bool:
    """Wait for a process to get somewhere; whether it did."""
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.01)
    return true()


@dataclass
class Cage:
    root: Path
    mode: SandboxMode
    network: bool = True
    read: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    store_in: str = "store"
    opened: list[Confinement] = field(default_factory=list)

    def __post_init__(self) -> None:
        for name in (".ssh", ".config/goalmode", "work/my project", self.store_in, "other"):
            (self.root / "home" / name).mkdir(parents=True, exist_ok=True)
        (self.home / ".ssh/id_ed25519").write_text(SECRET)
        (self.home / ".netrc").write_text(SECRET)
        self.config.write_text("[defaults]\n")
        (self.home / "other/file").write_text(SECRET)
        self.store = Store(str(self.home / self.store_in / "goals.sqlite"))
        self.goal = self._goal()
        self.sandbox = self._sandbox()
        self.confinement = self.sandbox.confinement()
        self.opened.append(self.confinement)

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def workspace(self) -> Path:
        return self.home / "work/my project"

    @property
    def config(self) -> Path:
        return self.home / ".config/goalmode/goalmode.toml"

    @property
    def environ(self) -> dict[str, str]:
        return {**os.environ, "HOME": str(self.home), "MY_TOKEN": SECRET, "AWS_SECRET_ACCESS_KEY": SECRET}

    def _goal(self) -> Goal:
        human = Requirement("", "a person likes it", human=True)
        settings = GoalSettings(sandbox=self.mode.value, network=self.network)
        return create_goal(self.store, GoalSpec("x", str(self.workspace), (human,), settings=settings))

    def _sandbox(self) -> Sandbox:
        configured = SandboxSettings(read=self.read, env=self.env, private=(str(self.config),))
        made = sandbox_for(self.workspace, self.goal.settings, configured, self.environ)
        return made.keeping_store(self.store.path)

    def gate(self) -> LockGate:
        return LockGate(self.store.lock_file(self.goal.id, 1), 1, lambda: 1)

    def run(
        self, command: str, *, seconds: float = 120, max_bytes: int = 1_000_000, begun: str = ""
    ) -> CommandResult:
        """Run a command as a tool does: behind the gate, in its own process group.

        Args:
            begun: a file of the workspace that the command makes: its time runs from then on.
        """

        async def body() -> CommandResult:
            with self.gate().enter("call") as hold:
                return await run_command(
                    command,
                    cwd=self.workspace,
                    environment=self.environ,
                    hold=Begun(self.workspace / begun, hold) if begun else hold,
                    timeout_seconds=seconds,
                    max_bytes=max_bytes,
                    confinement=self.confinement,
                )

        return anyio.run(body)

    def python(self, code: str, **more: float) -> CommandResult:
        (self.workspace / "act.py").write_text(code)
        return self.run(f"'{sys.executable}' -I act.py", **more)  # type: ignore[arg-type]

    def close(self) -> None:
        for confinement in self.opened:
            confinement.close()
        self.store.close()


@pytest.fixture(scope="module", params=MODES, ids=lambda mode: mode.value)
def mode(request: pytest.FixtureRequest) -> SandboxMode:
    why = missing(request.param)
    if why:
        pytest.skip(f"{request.param}: {why}")
    found: SandboxMode = request.param
    return found


@pytest.fixture(scope="module")
def cage(tmp_path_factory: pytest.TempPathFactory, mode: SandboxMode) -> Iterator[Cage]:
    made = Cage(tmp_path_factory.mktemp(mode.value), mode)
    yield made
    made.close()


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process of the same user that has nothing to do with it."""
    with subprocess.Popen(["/bin/sleep", "600"], env={"MY_TOKEN": SECRET}) as process:
        yield process
        process.kill()
