"""Where a turn's CPU goes: by library and room, and by function, over all threads of a goal's wakeup."""

from __future__ import annotations

import cProfile
import pstats
import sys
import sysconfig
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from goalmode import state
from goalmode.bench.path import turns as take_turns

TOLD = 25
"""Parts and functions that are told, the dearest ones."""

Function = tuple[str, int, str]
"""As `pstats` names one: file, line and name."""

_PACKAGE, _STATE = Path(__file__).parent.parent, Path(str(state.__file__)).parent
_LIBRARIES, _STANDARD = (Path(sysconfig.get_path(name)) for name in ("purelib", "stdlib"))
_BUILT_IN = {"sqlite3": "sqlite3", "CoreBPE": "tiktoken", "zlib": "zlib", "_json": "json"}
"""Words in a built-in function's name, and whose it is. The time of others is their callers'."""


def profiled(*, base_url: str, directory: str, turns: int, window: int) -> dict[str, Any]:
    """Take a goal's turns under a profiler. Returns shares of the CPU, the largest first: `parts` and `functions`."""
    given: dict[str, Any] = {"base_url": base_url, "window": window, "warm": 1}
    first, second = (Path(directory) / name for name in ("first", "second"))
    for place in (first, second):
        place.mkdir()
    take_turns(directory=str(first), turns=5, **given)  # What every process loads once.
    with _all_threads() as profiles:
        take_turns(directory=str(second), turns=turns, **given)
    found = pstats.Stats(*profiles)
    parts, functions = shares(found.stats)  # type: ignore[attr-defined]
    return {"parts": parts, "functions": functions}


def shares(stats: dict[Function, Any]) -> tuple[dict[str, float], dict[str, float]]:
    """What `pstats` holds, as shares of the whole, the largest first: by part, and by function."""
    parts: Counter[str] = Counter()
    functions: Counter[str] = Counter()
    for function, (_, _, own, _, callers) in stats.items():
        part = part_of(function)
        functions[": ".join(filter(None, (part, _named(function))))] += own
        if part or not callers:
            parts[part or "python"] += own
            continue
        for caller, (_, _, spent, _) in callers.items():
            parts[part_of(caller) or "python"] += spent
    whole = sum(parts.values()) or 1.0
    return _divided(parts, whole), _divided(functions, whole)


def _divided(seconds: Counter[str], whole: float) -> dict[str, float]:
    """Shares, the largest first."""
    return {name: spent / whole for name, spent in seconds.most_common(TOLD)}


def part_of(function: Function) -> str:
    """The library or the room that a function belongs to; empty for a built-in one that is nobody's in particular."""
    file, _, name = function
    if file == "~":
        return next((whose for word, whose in _BUILT_IN.items() if word in name), "")
    path = Path(file)
    if path.is_relative_to(_STATE):
        return "goalmode.state"
    for folder, before in ((_PACKAGE, "goalmode."), (_LIBRARIES, ""), (_STANDARD, "")):
        if path.is_relative_to(folder):
            return f"{before}{Path(path.relative_to(folder).parts[0]).stem}"
    return "python"  # Frozen, or made at run time.


def _named(function: Function) -> str:
    file, _, name = function
    return name if file == "~" else f"{Path(file).name} {name}"


@contextmanager
def _all_threads() -> Iterator[list[cProfile.Profile]]:
    """Profile this thread and those that it starts; each has a profiler of its own."""
    profiles: list[cProfile.Profile] = []

    def begin(*_: object) -> None:
        sys.setprofile(None)
        profiles.append(cProfile.Profile(time.thread_time))
        profiles[-1].enable()

    threading.setprofile(begin)
    begin()
    try:
        yield profiles
    finally:
        threading.setprofile(None)
        for one in profiles:
            one.disable()
