"""What starting costs: the CPU of `goalmode --help` beside bare Python, and memory before there is any work."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from importlib import import_module

from goalmode.bench.measure import Spread, environment, high_water, in_child, own_directory, peak_memory

BARE = (sys.executable, "-c", "pass")
HELP = (sys.executable, "-m", "goalmode", "--help")
LIBRARIES = ("anyio", "sqlmodel", "aiohttp", "jinja2", "stamina", "tiktoken")
"""That every wakeup runs with."""


def help_cost(times: int) -> tuple[Spread, Spread, Spread]:
    """CPU of `--help` divided by that of bare Python, pair by pair; then both in milliseconds."""
    with own_directory() as home:
        pairs = [(_cpu_ms(HELP, home), _cpu_ms(BARE, home)) for _ in range(times + 1)][1:]
    ours, bare = zip(*pairs, strict=True)
    return Spread.of([mine / theirs for mine, theirs in pairs]), Spread.of(ours), Spread.of(bare)


def bare_memory() -> int:
    """Bytes that a Python which does nothing holds at its peak; where nothing tells, of one that can tell it."""
    tell = (sys.executable, "-c", "print(open('/proc/self/status').read())")
    done = subprocess.run(tell, capture_output=True, text=True, check=False)
    told = high_water(done.stdout)
    return int(in_child("memory")["memory"]) if told is None else told


def memory() -> dict[str, int]:
    """This process's peak."""
    return {"memory": peak_memory()}


def libraries() -> dict[str, int]:
    """This process's peak with the libraries, and then with the vocabulary that counts tokens, loaded by itself."""
    for name in LIBRARIES:
        import_module(name)
    imported = peak_memory()
    tokens = import_module("goalmode.context.tokens")
    tokens.O200k().count("once")
    return {"imported": imported, "counting": peak_memory()}


def _cpu_ms(command: Sequence[str], home: str) -> float:
    """CPU of one process and of what it waited for, by its own account at its end."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=environment(home))
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return (used.ru_utime + used.ru_stime) * 1000
