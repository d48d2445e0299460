"""Processes of their own, started in a clean environment and never left behind."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goalmode import Goal
from tests.acceptance.world import World

SECONDS = 120.0
"""How long anything is waited for before the test has failed: a machine may be busy with something else."""

_NUMBERS = itertools.count()

CHILD = Path(__file__).with_name("child.py")


@dataclass
class Child:
    """One process. Its output is read when it has ended."""

    process: subprocess.Popen[str]
    out: str = ""
    err: str = ""

    @property
    def pid(self) -> int:
        return self.process.pid

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait until something can be seen that this process brings about; its own end is no reason to wait on."""
        eventually(lambda: holds() or self.process.poll() is not None, what)
        if not holds():
            code = self.ended()
            raise AssertionError(f"{what}: the process ended with {code}\n{self.out}\n{self.err}")

    def said(self, word: str) -> None:
        """Wait for a line with that in it. What was read up to there is in `out` no more."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if word in line:
                return
        raise AssertionError(f"{word}: the process ended with {self.ended()}\n{self.err}")

    def kill(self) -> None:
        """kill -9, and be sure of it."""
        self.signal(signal.SIGKILL)
        self.killed()

    def killed(self) -> None:
        """It has died, or dies now, by kill -9."""
        assert self.ended() == -signal.SIGKILL, f"exit code {self.process.returncode}\n{self.err}"

    @property
    def json_lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    def ended(self, seconds: float = SECONDS) -> int:
        """Wait for its end; returns its exit code."""
        self.out, self.err = self.process.communicate(timeout=seconds)
        return self.process.returncode


def python_tools(children: Children, store: str, goal: str, url: str) -> Child:
    """One wakeup by a program that uses the library with Python tools of its own."""
    script = Path(__file__).with_name("tools_child.py")
    return children.start([sys.executable, str(script), store, goal, url])


class Children:
    """Starts processes, and ends those that a test leaves."""

    def __init__(self) -> None:
        self._all: list[Child] = []

    def start(self, arguments: Sequence[str | bytes], **environment: str) -> Child:
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="surrogateescape",
            env={**os.environ, **environment},
            start_new_session=True,
        )
        child = Child(process)
        self._all.append(child)
        return child

    def wake(self, world: World, goal: Goal, *, death: str = "") -> Child:
        """One wakeup by another process, which dies before the commit that `death` names."""
        own = [world.store.url, goal.uid, world.provider.url, *([death] if death else [])]
        return self.start([sys.executable, str(CHILD), *own])

    def end(self) -> None:
        for child in self._all:
            if child.process.poll() is None:
                child.process.kill()
            child.process.communicate()


def eventually(holds: Callable[[], bool], what: str, seconds: float = SECONDS) -> None:
    """Wait until something can be seen; it is looked at, not slept over."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"{what}: not within {seconds} s"
        time.sleep(0.01)


def odd_seconds() -> str:
    """A number of seconds that no other process on this machine sleeps for: by it a command is found again."""
    return f"98765.{os.getpid()}{next(_NUMBERS):03}"


def running(word: str) -> list[int]:
    """The processes whose command line holds `word`, zombies left out."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if word.encode() in line:
                found.append(int(entry.name))
    return found
