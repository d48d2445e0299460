"""Other processes for tests: real ones, told what to do through a pipe, killed at the end whatever happens."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

PATIENCE = 120.0
"""Seconds after which something that should have happened has not: a machine may be busy with something else."""

# A process forked from this one would share what SQLite thinks it has locked.
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["goalmode.state.journal", "goalmode.state.goals", "goalmode.state.snapshot"])


@dataclass
class Other:
    """A running process and this end of the pipe to it."""

    process: BaseProcess
    pipe: Connection

    @property
    def pid(self) -> int:
        assert self.process.pid is not None
        return self.process.pid

    def hear(self) -> Any:
        """The next thing it says; the test fails if it says nothing."""
        assert self.pipe.poll(PATIENCE), "the other process says nothing"
        return self.pipe.recv()

    def tell(self, value: object = None) -> None:
        self.pipe.send(value)

    def kill(self) -> None:
        """kill -9, and gone when this returns."""
        self.process.kill()
        self.process.join(PATIENCE)


def _run(target: Callable[..., None], environment: dict[str, str], *args: object) -> None:
    os.environ.clear()
    os.environ.update(environment)
    target(*args)


@contextmanager
def another(target: Callable[..., None], *args: object) -> Iterator[Other]:
    """A process that runs `target(pipe, *args)` in the environment of now."""
    ours, theirs = _CONTEXT.Pipe()
    process = _CONTEXT.Process(target=_run, args=(target, dict(os.environ), theirs, *args), daemon=True)
    process.start()
    theirs.close()
    other = Other(process, ours)
    try:
        yield other
    finally:
        other.kill()
        ours.close()


def until(true: Callable[[], object], *, what: str) -> None:
    """Wait until something can be observed."""
    deadline, pause = time.monotonic() + PATIENCE, threading.Event()
    while not true():
        assert time.monotonic() < deadline, f"still not: {what}"
        pause.wait(0.01)
