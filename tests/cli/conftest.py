"""The command line as a user meets it, with a store, a workspace and a provider of its own."""

from __future__ import annotations

import hashlib
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import stamina

from goalmode.cli.main import call
from goalmode.state import migrate
from goalmode.state.engine import database_at
from goalmode.testing import Stub
from tests import stores
from tests.stores import Stores

ESCAPES = ("\x1b", "\r")

PATIENCE = 120.0
"""Seconds after which what should have happened has not: a machine may be busy with something else."""


@dataclass(frozen=True)
class Done:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    def line(self) -> str:
        """The one line on standard error."""
        assert self.err.count("\n") == 1, self.err
        assert self.err.startswith("goalmode: "), self.err
        return self.err.strip()


class CLI:
    """Runs commands in this process, with the store in `$GOALMODE_STORE`."""

    def __init__(
        self, root: Path, url: str, patch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.store, self.workspace = root / "store" / "goals.sqlite", root / "workspace"
        self.url = url
        self.workspace.mkdir()
        self._patch, self._capsys = patch, capsys
        patch.setenv("GOALMODE_STORE", url)
        patch.chdir(root)

    def __call__(self, *arguments: str, stdin: bytes = b"", traceback: bool = False) -> Done:
        self._capsys.readouterr()
        self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        code = call(arguments)
        said = self._capsys.readouterr()
        assert not any(escape in said.out + said.err for escape in ESCAPES)
        assert ("Traceback" in said.err) is traceback
        return Done(code, said.out, said.err)

    def new(self, *options: str, objective: str = "Write a.txt.", url: str = "http://127.0.0.1:9/v1") -> str:
        """Create a goal; its id."""
        workspace = ("--workspace", str(self.workspace))
        done = self("new", objective, *workspace, "--model", "openai:m", "--base-url", url, "-q", *options)
        assert (done.code, done.err) == (0, "")
        return done.out.strip()

    @property
    def name(self) -> str:
        """How messages call the store."""
        return database_at(self.url).name

    def rows(self) -> str:
        """Every row of every table, but for the version of the schema, which a server's database has beforehand."""
        if stores.SERVER:
            return "\n".join(line for line in stores.dump(self.url) if not line.startswith("alembic_version"))
        return "\n".join(stores.dump(self.url)) if self.store.exists() else ""

    def state(self) -> tuple[str, str]:
        """The store's file, as a hash, and its rows."""
        return (
            hashlib.sha256(self.store.read_bytes()).hexdigest() if self.store.exists() else "",
            self.rows(),
        )

    def sql(self, statement: str) -> None:
        """Change the store behind everybody's back."""
        if stores.SERVER:
            stores.rows(self.url, statement)
            return
        with closing(sqlite3.connect(self.store)) as connection:
            connection.execute("PRAGMA ignore_check_constraints=ON")
            connection.execute(statement)
            connection.commit()


@pytest.fixture
def cli(
    tmp_path: Path, new_stores: Stores, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> CLI:
    monkeypatch.setattr(
        migrate, "upgrade", new_stores.upgrade
    )  # A migration takes longer than most commands.
    return CLI(tmp_path, new_stores.unused(tmp_path / "store" / "goals.sqlite"), monkeypatch, capsys)


@pytest.fixture
def serve() -> Iterator[Callable[..., Stub]]:
    """Starts providers: `serve([step, …], key=…)`."""
    running: list[Stub] = []

    def start(script: Any, **options: Any) -> Stub:
        running.append(Stub(script, **options))
        running[-1].__enter__()
        return running[-1]

    yield start
    for stub in running:
        stub.__exit__()


@pytest.fixture
def no_retries() -> Iterator[None]:
    """A provider that fails is asked once."""
    with stamina.set_testing(True, attempts=1):
        yield


class Child:
    """A `goalmode` process, ended with the test whatever happens."""

    def __init__(self, arguments: Sequence[str], environment: dict[str, str], **options: Any) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "goalmode", *arguments],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **options,
        )

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def done(self) -> Done:
        out, err = self.process.communicate(timeout=PATIENCE)
        return Done(self.process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))


@pytest.fixture
def spawn() -> Iterator[Callable[..., Child]]:
    """Starts processes: `spawn("run", ID, LC_ALL="C")`."""
    started: list[Child] = []

    def start(*arguments: str, **environment: str) -> Child:
        started.append(Child(arguments, environment))
        return started[-1]

    yield start
    for child in started:
        with suppress(ProcessLookupError):
            child.process.kill()
        child.process.communicate()


def wait_until(true: Callable[[], bool], process: subprocess.Popen[bytes] | None = None) -> None:
    """Wait until something can be seen; what `process` brings about is not waited for when it has ended."""
    end = time.monotonic() + PATIENCE
    while not true():
        if process is not None and process.poll() is not None and not true():
            pytest.fail(f"it ended first, with {process.returncode}")
        if time.monotonic() > end:
            pytest.fail(f"it did not get there within {PATIENCE:g} s")
        time.sleep(0.02)
